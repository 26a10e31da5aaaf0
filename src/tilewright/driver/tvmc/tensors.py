"""What is known about a model's inputs and outputs before it runs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilewright.driver.tvmc.errors import TVMCException
from tilewright.ir.module import IRModule
from tilewright.ir.tensor_type import TensorType
from tilewright.ir.type import TupleType, Type
from tilewright.relay.dimension_names import all_dimension_names
from tilewright.relay.infer import infer_module
from tilewright.relay.output_names import output_names, unnamed_output
from tilewright.runtime.ndarray import numpy_dtype
from tilewright.support.dtype import DataType
from tilewright.support.wording import argument


@dataclass(frozen=True)
class TensorInfo:
    """A tensor: name, element type, and sizes, of which those that are not known are None. ``dimensions`` are the
    model's names of the dimensions, empty for those without one; there are none, or one each."""

    name: str
    shape: tuple[int | None, ...]
    dtype: str
    dimensions: tuple[str, ...] = ()

    @property
    def array_dtype(self) -> np.dtype[Any]:
        """The element type as NumPy has it, bfloat16 included."""
        return numpy_dtype(DataType(self.dtype))

    @property
    def is_static(self) -> bool:
        """True if every size is known."""
        return None not in self.shape

    def text(self) -> str:
        """As a person would write it: ``image float32[1, 3, 224, 224]``."""
        return f"{self.name} {self.dtype}[{', '.join(self.sizes())}]"

    def sizes(self) -> list[str]:
        """Each size, or the model's name of the dimension, or ?."""
        names = self.dimensions or ("",) * len(self.shape)
        return [
            (name or "?") if size is None else str(size) for size, name in zip(self.shape, names, strict=True)
        ]

    def as_json(self) -> dict[str, Any]:
        """As it is stored."""
        stored = {"name": self.name, "shape": list(self.shape), "dtype": self.dtype}
        return {**stored, "dimensions": list(self.dimensions)} if self.dimensions else stored

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> TensorInfo:
        """The reverse."""
        shape = tuple(None if one is None else int(one) for one in stored["shape"])
        names = tuple(str(one) for one in stored.get("dimensions", ()))
        return tensor_info(str(stored["name"]), shape, str(stored["dtype"]), {str(stored["name"]): names})


def tensor_info(
    name: str, shape: Sequence[int | None], dtype: str, names: Mapping[str, Sequence[str]]
) -> TensorInfo:
    """A tensor, with the names that its dimensions have among those of all tensors."""
    own = tuple(names.get(name, ()))
    return TensorInfo(name, tuple(shape), dtype, own if any(own) and len(own) == len(shape) else ())


def _info(name: str, kind: TensorType, names: Mapping[str, Sequence[str]]) -> TensorInfo:
    extents = [getattr(extent, "value", None) for extent in kind.shape]
    return tensor_info(name, [None if one is None else int(one) for one in extents], str(kind.dtype), names)


def _tensors(kind: Type) -> list[TensorType]:
    if isinstance(kind, TensorType):
        return [kind]
    if isinstance(kind, TupleType):
        return [tensor for part in kind.fields for tensor in _tensors(part)]
    raise TVMCException(f"a value of type {kind} is not a tensor; models take and return tensors")


def module_inputs(mod: IRModule, params: Mapping[str, Any]) -> list[TensorInfo]:
    """The parameters of ``main`` that have no value."""
    main = infer_module(mod)["main"]
    names = all_dimension_names(main)
    found: list[TensorInfo] = []
    for parameter in main.params:
        if parameter.name_hint in params:
            continue
        kinds = _tensors(parameter.checked_type)
        for position, kind in enumerate(kinds):
            name = parameter.name_hint if len(kinds) == 1 else f"{parameter.name_hint}_{position}"
            found.append(_info(name, kind, names))
    return found


def module_outputs(mod: IRModule) -> list[TensorInfo]:
    """The outputs of ``main`` under the model's names, or as ``output_0`` and so on."""
    main = infer_module(mod)["main"]
    kinds = _tensors(main.checked_type.ret_type)
    names = output_names(main, len(kinds)) or [output_name(position) for position in range(len(kinds))]
    dimensions = all_dimension_names(main)
    return [_info(name, kind, dimensions) for name, kind in zip(names, kinds, strict=True)]


def output_name(position: int) -> str:
    """What a result is called that the model has no name for."""
    return unnamed_output(position)


def graph_tensors(graph: str, params: Sequence[str]) -> tuple[list[TensorInfo], list[TensorInfo]]:
    """The inputs, without the parameters, and the outputs of a graph in the executor's JSON."""
    try:
        parsed = json.loads(graph)
        rows = parsed["node_row_ptr"]
        shapes, dtypes = parsed["attrs"]["shape"][1], parsed["attrs"]["dltype"][1]
        nodes = parsed["nodes"]

        def tensor(name: str, node: int, output: int) -> TensorInfo:
            entry = rows[node] + output
            return TensorInfo(name, tuple(int(one) for one in shapes[entry]), str(dtypes[entry]))

        taken = set(params)
        inputs = [
            tensor(nodes[node]["name"], node, 0)
            for node in parsed["arg_nodes"]
            if nodes[node]["name"] not in taken
        ]
        heads = parsed["heads"]
        made_up = [output_name(position) for position in range(len(heads))]
        names = parsed.get("metadata", {}).get("output_names") or made_up
        outputs = [tensor(str(name), head[0], head[1]) for name, head in zip(names, heads, strict=True)]
    except (ValueError, KeyError, IndexError, TypeError, AttributeError) as problem:
        raise TVMCException(f"the model's graph is damaged: {problem!r}") from problem
    return inputs, outputs


def require_static(inputs: Sequence[TensorInfo], executor: str) -> None:
    """An error that says what to write, for inputs whose sizes the executor has to know."""
    unknown = [one for one in inputs if not one.is_static]
    if executor != "vm" and unknown:
        shapes = {one.name: [1 if size is None else size for size in one.shape] for one in unknown}
        raise TVMCException(
            f"the {executor} executor needs static shapes, but some sizes of the model are unknown: "
            f"{'; '.join(one.text() for one in unknown)}. Fix them, as in "
            f"{argument('shape_dict', shapes)}, or compile with {argument('executor', 'vm')}"
        )


__all__ = [
    "TensorInfo",
    "graph_tensors",
    "module_inputs",
    "module_outputs",
    "output_name",
    "require_static",
]
