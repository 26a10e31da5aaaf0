"""The inputs of a script module: types from what the user says of them, and from the graph."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, Final

from tilewright.ir.base import RelayExpr
from tilewright.ir.expr import Any as UnknownDimension
from tilewright.ir.expr import PrimExpr
from tilewright.ir.module import IRModule
from tilewright.ir.tensor_type import TensorType
from tilewright.ir.type import TupleType, Type, TypeCall
from tilewright.relay.expr import TupleGetItem, Var
from tilewright.relay.frontend.common import ShapeNeeded, check_size
from tilewright.relay.frontend.torch.dtypes import dtype_name
from tilewright.relay.frontend.torch.script.store import Store
from tilewright.relay.frontend.torch.script.values import InputList
from tilewright.relay.prelude import Prelude
from tilewright.support.errors import ModelError

_NAMES: Final = {
    "float": "float32",
    "double": "float64",
    "half": "float16",
    "long": "int64",
    "int": "int32",
    "short": "int16",
    "char": "int8",
    "byte": "uint8",
}
"""PyTorch's names of element types that are not those of Relay."""
_NUMBERS: Final = {"IntType": "int", "FloatType": "float", "BoolType": "bool"}
_NUMBER_TYPES: Final = {"int": "int64", "float": "float64", "bool": "bool"}


def checked_infos(input_infos: Any, graph_inputs: Sequence[Any]) -> list[tuple[str, Any]]:
    """The pairs of name and shape for the inputs of a graph; trailing optional inputs may be left out."""
    if not isinstance(input_infos, (list, tuple)) or not all(
        isinstance(info, (list, tuple)) and len(info) == 2 and isinstance(info[0], str)
        for info in input_infos
    ):
        raise ModelError(
            "input_infos is a list of pairs, one for each input: [('data', (1, 3, 224, 224))], or with an element "
            f"type [('data', ((1, 3, 224, 224), 'float32'))], not {input_infos!r}"
        )
    infos = [(str(name), shape) for name, shape in input_infos]
    for value in graph_inputs[len(infos) :]:
        if value.type().kind() not in ("OptionalType", "NoneType"):
            names = ", ".join(str(one.debugName()) for one in graph_inputs)
            raise ShapeNeeded(
                f"the model has {len(graph_inputs)} inputs ({names}), input_infos lists {len(infos)}: give a name "
                "and a shape for each, in their order"
            )
    if len(infos) > len(graph_inputs):
        raise ModelError(f"the model has {len(graph_inputs)} inputs, input_infos lists {len(infos)}")
    duplicates = {name for name, _ in infos if [one for one, _ in infos].count(name) > 1}
    if duplicates:
        raise ModelError(f"two inputs have the name {sorted(duplicates)[0]!r}")
    return infos


class Inputs:
    """Makes the variables of inputs."""

    def __init__(self, module: IRModule, store: Store, default_dtype: str) -> None:
        self.module = module
        self.store = store
        self.default_dtype = default_dtype
        self.variables: list[Var] = []

    def add(self, name: str, info: Any, kind: Any) -> Any:
        """The value of an input of a type of PyTorch, for what the user says of it."""
        if kind.kind() == "OptionalType":
            return None if info is None else self.add(name, info, kind.getElementType())
        if isinstance(info, (bool, int, float)) and kind.kind() in (*_NUMBERS, "NumberType"):
            # A number that is given is known.
            return info
        variable = Var(name, self.type_of(name, info, kind))
        self.variables.append(variable)
        if kind.kind() in _NUMBERS:
            return self.store.tensor(variable, _NUMBERS[kind.kind()])
        return self.value(variable, variable.type_annotation)

    def value(self, expr: RelayExpr, kind: Any) -> Any:
        """An expression of an input's type as a value of the graph."""
        if isinstance(kind, TensorType):
            return self.store.tensor(expr)
        if isinstance(kind, TupleType):
            return tuple(
                self.value(TupleGetItem(expr, place), inner) for place, inner in enumerate(kind.fields)
            )
        return self.store.list_of(InputList(expr, kind.args[0]))

    def type_of(self, name: str, info: Any, kind: Any) -> Type:
        """The type in Relay."""
        which = kind.kind()
        if which == "TupleType":
            inner = kind.elements()
            if not isinstance(info, (list, tuple)) or len(info) != len(inner):
                raise ModelError(
                    f"the input {name!r} is a tuple of {len(inner)}: give as many shapes, not {info!r}"
                )
            return TupleType([self.type_of(name, one, each) for one, each in zip(info, inner, strict=True)])
        if which == "ListType":
            return self._list_type(name, info, kind)
        if which in _NUMBERS:
            return TensorType((), _NUMBER_TYPES[_NUMBERS[which]])
        if which not in ("TensorType", "AnyType"):
            raise ModelError(
                f"the input {name!r} is a {kind}, which is not supported: tensors, tuples and lists are"
            )
        shape, dtype = self._shape_and_dtype(name, info, kind)
        made = TensorType(
            [UnknownDimension() if extent is None or _is_open(extent) else extent for extent in shape], dtype
        )
        check_size(f"the input {name!r}", made)
        return made

    def _list_type(self, name: str, info: Any, kind: Any) -> Type:
        if not isinstance(info, (list, tuple)) or not info:
            raise ModelError(f"the input {name!r} is a list: give the shapes of its elements, not {info!r}")
        found = [self.type_of(name, one, kind.getElementType()) for one in info]
        if any(one != found[0] for one in found):
            raise ModelError(f"the elements of the list {name!r} have to have one type, they have {found}")
        Prelude(self.module)
        return TypeCall(self.module.get_global_type_var("List"), [found[0]])

    def _shape_and_dtype(self, name: str, info: Any, kind: Any) -> tuple[Sequence[Any], str]:
        own = kind.dtype() if kind.kind() == "TensorType" else None
        if isinstance(info, (list, tuple)) and len(info) == 2 and isinstance(info[1], str):
            wanted = _NAMES.get(info[1], info[1])
            if own is not None and dtype_name(own) != wanted:
                warnings.warn(
                    f"the input {name!r} was traced with the element type {dtype_name(own)}: {info[1]} is ignored",
                    stacklevel=5,
                )
                wanted = dtype_name(own)
            return info[0], wanted
        if not isinstance(info, (list, tuple)) and not hasattr(info, "__iter__"):
            raise ModelError(f"the shape of the input {name!r} is {info!r}: give a tuple of sizes")
        return list(info), self.default_dtype if own is None else dtype_name(own)


def _is_open(extent: Any) -> bool:
    return isinstance(extent, UnknownDimension) or (
        isinstance(extent, PrimExpr) and not hasattr(extent, "value")
    )
