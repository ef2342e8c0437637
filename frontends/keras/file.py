"""A recurrent layer out of a .keras file, without Keras: nothing in the file is run."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pyrnnx.errors import ArgumentError, FormatError, printable, shortened, shown
from pyrnnx.files import open_regular
from pyrnnx.stack import Stack

from .archive import Archive
from .config import DEPTH, RECURRENT, UniqueNames, is_layer_of_keras, read_config
from .process import read_weights
from .weights import build_stack, read_arrays

LISTED = 10  # names that a message lists


NO_NUMBERS = {  # what a call of a model passes through as it is, but for training
    "InputLayer",
    "Identity",
    "ActivityRegularization",
    *("Dropout", "AlphaDropout", "SpatialDropout1D", "SpatialDropout2D", "SpatialDropout3D"),
    *("GaussianDropout", "GaussianNoise"),
}


@dataclass(frozen=True)
class _Found:
    """A layer in the configuration of a model.

    `parents`: of each model that it is in, from the outermost, the name, and what Keras calls its group of weights
    where it stores no names; the layer's own come last.
    """

    class_name: str
    config: Any
    parents: tuple[tuple[str, str], ...]
    is_of_keras: bool = True

    @property
    def path(self) -> str:
        return "/".join(name for name, _ in self.parents)

    @property
    def name(self) -> str:
        return self.parents[-1][0]

    @property
    def is_recurrent(self) -> bool:
        return self.class_name in RECURRENT and self.is_of_keras


def from_file(
    path: str | os.PathLike[str], layer: str | None = None, *, name: str | None = None, weight_dtype: str | None = None
) -> Stack:
    """A recurrent layer of a model in a .keras file, as Keras 3 writes it; h5py is needed, Keras is not.

    Parameters
    ----------
    path : path
        Of the file. Nothing in it is run, whatever else the model holds.
    layer : str, optional
        Name of the layer; of one in a model inside the model, "inner/name" or, where that says which, the name. It may
        be left out where there is one recurrent layer only.
    name : str, optional
        Of the stack, for errors. Default: that of the layer.
    weight_dtype : str, optional
        "bfloat16" or "int8": keep W and R in fewer bits, see `pyrnnx.Layer`. Default: that of the weights.

    Returns
    -------
    Stack
        As of `from_layer`.

    Raises
    ------
    ArgumentError
        A file that cannot be opened; a layer that the model does not have, or that leaves open which.
    FormatError
        A file that is broken: no zip file, or one whose parts are missing, too large, or contradict each other. HDF5
        reads the weights in another process, as it may crash, or loop for ever, on damaged ones.
    UnsupportedError
        As of `from_layer`; a file of Keras 2.
    PyrnnxError
        h5py is not installed, or no process can be started.

    Source: the .keras format of Keras 3.
    """
    if not isinstance(path, (str, os.PathLike)) or not isinstance(os.fspath(path), str):
        raise ArgumentError(f"from_file: path is {shown(path)}; expected the path of a .keras file")
    if layer is not None and not isinstance(layer, str):
        raise ArgumentError(f"from_file: layer is {shown(layer)}; expected a name, or None")
    label = printable(shortened(os.fspath(path)))
    with open_regular("from_file", path, expected="a .keras file") as file:
        archive = Archive(label, file)
        config = archive.config()
        found = _chosen(label, layer, [one for one in _layers(label, config, (), 0) if one.is_recurrent])
        label = f"{label}: {found.class_name} {shown(found.path)}"
        read = read_config(label, found.class_name, found.config)
        contents = archive.weights()
    arrays = read_weights(
        label, contents, found.parents, [(cell.path, 3 if cell.use_bias else 2) for cell in read.cells]
    )
    return build_stack(label, read, read_arrays(label, arrays), found.name if name is None else name, weight_dtype)


def other_layers(path: str, layer: str | None) -> list[tuple[str, str]]:
    """Class and path of all layers of a .keras file but for the recurrent one of that name, and `NO_NUMBERS`.

    Raises
    ------
    PyrnnxError
        As of `from_file`.
    """
    label = printable(shortened(path))
    with open_regular("from_file", path, expected="a .keras file") as file:
        found = list(_layers(label, Archive(label, file).config(), (), 0))
    own = _chosen(label, layer, [one for one in found if one.is_recurrent])
    others = (one for one in found if one is not own and not (one.is_of_keras and one.class_name in NO_NUMBERS))
    return [(one.class_name, one.path) for one in others]


def _layers(label: str, model: Mapping[str, Any], parents: tuple[tuple[str, str], ...], depth: int) -> Iterator[_Found]:
    """The layers of a model, and of models in it instead of these."""
    config = model.get("config")
    layers = config.get("layers") if isinstance(config, dict) else None
    if not isinstance(layers, list):
        return
    if depth > DEPTH:
        raise FormatError(f"{label}: has models in models, {depth} deep; expected at most {DEPTH}")
    names = UniqueNames()
    for one in layers:
        if not isinstance(one, dict) or not isinstance(one.get("class_name"), str):
            raise FormatError(f"{label}: has {shown(one)} among its layers; expected objects with a class_name")
        class_name, own = one["class_name"], one.get("config")
        name = own.get("name") if isinstance(own, dict) else None
        here = (*parents, (name if isinstance(name, str) else class_name, names.of(class_name)))
        found = _Found(class_name, own, here, is_layer_of_keras(one))
        if not found.is_recurrent and isinstance(own, dict) and isinstance(own.get("layers"), list):
            yield from _layers(label, one, here, depth + 1)
        else:
            yield found


def _chosen(label: str, layer: str | None, found: list[_Found]) -> _Found:
    if not found:
        raise ArgumentError(f"{label}: has no recurrent layer; expected one of {', '.join(RECURRENT)}")
    fitting = [one for one in found if layer in (None, one.path)]
    fitting = fitting or [one for one in found if layer == one.name]
    if len(fitting) == 1:
        return fitting[0]
    names = ", ".join(shown(one.path) for one in found[:LISTED])
    more = "" if len(found) <= LISTED else f" and {len(found) - LISTED} more"
    given = "was not given" if layer is None else f"is {shown(layer)}"
    raise ArgumentError(f"{label}: layer {given}; expected one of {names}{more}")
