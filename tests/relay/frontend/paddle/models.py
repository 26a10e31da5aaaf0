"""PaddlePaddle's files made by hand: programs operator by operator, and files of parameters."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from tests.relay.frontend.common.messages import encoded
from tests.relay.frontend.interpreting import interpreted

from tilewright import relay
from tilewright.relay.frontend.paddle.program import DTYPES, SCHEMA

Array = np.ndarray[Any, Any]
_KINDS = {name: kind for kind, name in DTYPES.items()}


class Builder:
    """A program in the making. Results get names by their number."""

    def __init__(self) -> None:
        self.variables: list[dict[str, Any]] = []
        self.operators: list[dict[str, Any]] = []
        self.parameters: dict[str, Array] = {}
        self.results = 0

    def _declare(self, name: str, dtype: str, shape: Sequence[int], persistable: bool) -> None:
        tensor = {"data_type": _KINDS[dtype], "dims": list(shape)}
        kind = {"type": "LOD_TENSOR", "lod_tensor": {"tensor": tensor}}
        self.variables.append({"name": name, "type": kind, "persistable": persistable})

    def input(self, name: str, shape: Sequence[int], dtype: str = "float32") -> str:
        """An input of the program."""
        self._declare(name, dtype, shape, False)
        self._add(
            "feed",
            {"X": ["feed"]},
            {"Out": [name]},
            {"col": sum(o["type"] == "feed" for o in self.operators)},
        )
        return name

    def parameter(self, name: str, value: Array) -> str:
        """A tensor in the file of parameters."""
        self._declare(name, str(value.dtype), value.shape, True)
        self.parameters[name] = value
        return name

    def operator(
        self, kind: str, inputs: Mapping[str, Sequence[str]], outputs: Mapping[str, int], **attributes: Any
    ) -> list[str]:
        """An operator; the names of its results, as many as each output has."""
        made: dict[str, list[str]] = {}
        for output, count in outputs.items():
            made[output] = [f"result{self.results + place}" for place in range(count)]
            self.results += count
        self._add(kind, inputs, made, attributes)
        return [name for names in made.values() for name in names]

    def _add(
        self,
        kind: str,
        inputs: Mapping[str, Sequence[str]],
        outputs: Mapping[str, Sequence[str]],
        attributes: Mapping[str, Any],
    ) -> None:
        sides = [
            [{"parameter": name, "arguments": list(names)} for name, names in side.items()]
            for side in (inputs, outputs)
        ]
        listed = [{"name": name, **_attribute(value)} for name, value in attributes.items()]
        self.operators.append({"type": kind, "inputs": sides[0], "outputs": sides[1], "attrs": listed})

    def program(self, *results: str) -> bytes:
        """The content of a .pdmodel file with these results."""
        for column, name in enumerate(results):
            self._add("fetch", {"X": [name]}, {"Out": ["fetch"]}, {"col": column})
        block = {"idx": 0, "parent_idx": 0, "vars": self.variables, "ops": self.operators}
        return encoded(
            SCHEMA, "ProgramDesc", {"blocks": [block], "version": {"version": 2006002}}, packed=False
        )

    def parameters_file(self) -> bytes:
        """The content of a .pdiparams file."""
        return b"".join(_tensor(self.parameters[name]) for name in sorted(self.parameters))


def _attribute(value: Any) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"type": "BOOLEAN", "b": value}
    if isinstance(value, int):
        return {"type": "INT", "i": value}
    if isinstance(value, float):
        return {"type": "FLOAT", "f": value}
    if isinstance(value, str):
        return {"type": "STRING", "s": value}
    if all(isinstance(one, int) for one in value):
        return {"type": "INTS", "ints": value}
    return {"type": "FLOATS", "floats": value}


def _tensor(value: Array) -> bytes:
    described = encoded(
        SCHEMA, "TensorDesc", {"data_type": _KINDS[str(value.dtype)], "dims": value.shape}, packed=False
    )
    return struct.pack("<IQIi", 0, 0, 0, len(described)) + described + value.tobytes()


def single(
    kind: str,
    inputs: Mapping[str, Array | Sequence[Array]],
    outputs: Mapping[str, int] | None = None,
    **attributes: Any,
) -> list[Array]:
    """The results of a program of one operator, for its inputs by their names."""
    builder = Builder()
    names: dict[str, list[str]] = {}
    values: dict[str, Array] = {}
    for read, given in inputs.items():
        arrays = [given] if isinstance(given, np.ndarray) else list(given)
        names[read] = []
        for array in arrays:
            name = f"input{len(values)}"
            values[name] = array
            names[read].append(builder.input(name, array.shape, str(array.dtype)))
    results = builder.operator(kind, names, outputs or {"Out": 1}, **attributes)
    return interpreted(*relay.frontend.from_paddle(builder.program(*results)), values)
