"""Files in the format of Keras 3, written without Keras, which the default suite does not have."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from keras_weights import Case, random_weights

from pyrnnx.testing.numbers import Array

Groups = Mapping[str, tuple[str, Sequence[Array]]]  # the name of each layer, and its variables, by path


def layer_config(case: Case, name: str, **changes: Any) -> dict[str, Any]:
    """A layer of a model's configuration; of both directions a Bidirectional."""
    gru = {"reset_after": "True" in case.kind} if case.cell == "GRU" else {}
    own = {
        "name": name,
        "units": case.units,
        "use_bias": len(case.weights) // case.directions == 3,
        "activation": case.options.get("activation", "tanh"),
        "go_backwards": case.options["direction"] == "reverse",
        **({} if case.cell == "RNN" else {"recurrent_activation": case.options.get("recurrent_activation", "sigmoid")}),
        **gru,
        **changes,
    }
    if case.directions == 1:
        return serialized(case.class_name, own)
    sides = [serialized(case.class_name, own | {"go_backwards": back}) for back in (False, True)]
    return serialized(
        "Bidirectional", {"name": name, "merge_mode": "concat", "layer": sides[0], "backward_layer": sides[1]}
    )


def serialized(class_name: str, config: Any, module: str = "keras.layers") -> dict[str, Any]:
    return {"module": module, "class_name": class_name, "config": config, "registered_name": None}


def model_config(*layers: Any, class_name: str = "Sequential", name: str = "model") -> dict[str, Any]:
    return serialized(class_name, {"name": name, "layers": list(layers)}, "keras")


def groups(case: Case, name: str, path: str) -> dict[str, tuple[str, Sequence[Array]]]:
    """A layer's groups in the file of weights."""
    if case.directions == 1:
        return {path: (name, []), f"{path}/cell": ("cell", case.weights)}
    count = len(case.weights) // 2
    return {
        path: (name, []),
        f"{path}/forward_layer/cell": ("cell", case.weights[:count]),
        f"{path}/backward_layer/cell": ("cell", case.weights[count:]),
    }


def weights_file(given: Groups, *, names: bool = True) -> bytes:
    """HDF5 in bytes; files of the first versions of Keras 3 have no names."""
    import h5py

    contents = io.BytesIO()
    with h5py.File(contents, "w") as file:
        for path, (name, arrays) in given.items():
            variables = file.create_group(f"{path}/vars")
            if names:
                variables.attrs["name"] = name
            for k, array in enumerate(arrays):
                variables[str(k)] = array
    return contents.getvalue()


def write(
    path: Path, config: Any, weights: bytes | None, *, metadata: Any = None, compression: int = zipfile.ZIP_STORED
) -> Path:
    """A .keras file; a member that is None is left out, and bytes are written as they are."""
    members = {
        "metadata.json": {"keras_version": "3.15.1"} if metadata is None else metadata,
        "config.json": config,
        "model.weights.h5": weights,
    }
    with zipfile.ZipFile(path, "w", compression) as file:
        for name, member in members.items():
            if member is not None:
                file.writestr(name, member if isinstance(member, bytes) else json.dumps(member))
    return path


LSTM = Case("LSTM", 5, random_weights("LSTM", 3, 5), {"direction": "forward"})
LAMBDA = serialized("Lambda", {"name": "lambda", "function": {"class_name": "__lambda__", "config": {"code": "x"}}})


def good_groups() -> Groups:
    return groups(LSTM, "first", "layers/lstm")


def good_config(**changes: Any) -> dict[str, Any]:
    return model_config(layer_config(LSTM, "first", **changes))
