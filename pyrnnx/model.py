"""What the models of every front-end have in common: named inputs and outputs, recurrent layers, one way of calling."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from pyrnnx.model_inputs import output_names, read_inputs
from pyrnnx.tensor_info import TensorInfo


class Model(ABC):
    """A whole model of one of the formats, ready to be called.

    Attributes
    ----------
    label : str
        How errors name the model.
    inputs, outputs : tuple of TensorInfo
        In the model's order.
    layers : mapping
        Recurrent layers by their names: bound to their constant weights, or, where weights are computed at run time,
        as they are declared.
    """

    label: str
    inputs: tuple[TensorInfo, ...]
    outputs: tuple[TensorInfo, ...]

    @property
    @abstractmethod
    def layers(self) -> Mapping[str, Any]:
        """Recurrent layers by their names."""

    @abstractmethod
    def _run(self, inputs: dict[str, Any], outputs: tuple[str, ...]) -> dict[str, Any]:
        """Checked inputs to the values with these names."""

    def _again(self, arrays: tuple[Any, ...]) -> dict[str, Any] | None:
        """The outputs, where a call with arrays of the same dtypes and shapes has been checked before; else None."""
        return None

    def __call__(self, /, *arrays: Any, outputs: Sequence[str] | None = None, **named: Any) -> dict[str, Any]:
        """Run the whole model: ``model(*arrays)`` in the order of `inputs`, or by their names.

        Those are given as ``model({name: array})`` or ``model(name=array)``.

        Parameters
        ----------
        *arrays : array_like, or one mapping of them
            Of the dtypes and shapes that `inputs` declares.
        outputs : sequence of str, optional
            Names of the values to return, intermediate ones too. Default: the model's outputs.
        **named : array_like
            Inputs by their names; one that is called "outputs" has to stand in a mapping.

        Returns
        -------
        dict
            {name: array}, in the model's or the given order.

        Raises
        ------
        PyrnnxError
            Inputs that are missing, unknown or do not fit; an unknown output; an operation that cannot be run.
        """
        if outputs is None and not named:
            results = self._again(arrays)
            if results is not None:
                return results
        given = read_inputs(self.label, self.inputs, arrays, named)
        if outputs is None:
            return self._run(given, tuple([info.name for info in self.outputs]))
        return self._run(given, output_names(self.label, outputs))

    def __repr__(self) -> str:
        inputs, outputs = (", ".join(info.name for info in infos) for infos in (self.inputs, self.outputs))
        return f"<{type(self).__name__} {self.label}: ({inputs}) -> ({outputs})>"
