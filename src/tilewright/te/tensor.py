"""Tensors and the operations that give them.

An operation reads tensors and gives one or more. A tensor is one output of an operation;
``operation.output(0)`` is always the same object, so tensors are compared by identity.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tilewright.ir import operators
from tilewright.ir.container import Array, Map
from tilewright.ir.expr import (
    DataProducer,
    EqualOp,
    ExprLike,
    ExprOp,
    IntImm,
    IterVar,
    ManyElements,
    PrimExpr,
    ProducerLoad,
)
from tilewright.support.dtype import DataType
from tilewright.support.errors import ExpressionError
from tilewright.support.node import Node, node
from tilewright.support.slot import Slot
from tilewright.support.span import Span

if TYPE_CHECKING:
    TensorMap = Mapping["Tensor", "Tensor"]


class TensorSlice(ExprOp):
    """A tensor with some or all of its indices; with all of them it stands for an element."""

    __slots__ = ("indices", "tensor")
    __hash__ = object.__hash__

    def __init__(self, tensor: Tensor, indices: ExprLike | Sequence[ExprLike]) -> None:
        self.tensor = tensor
        self.indices = tuple(indices) if isinstance(indices, (tuple, list)) else (indices,)

    def __getitem__(self, indices: ExprLike | Sequence[ExprLike]) -> TensorSlice:
        more = tuple(indices) if isinstance(indices, (tuple, list)) else (indices,)
        return TensorSlice(self.tensor, self.indices + more)

    def __iter__(self) -> Any:
        raise ExpressionError(f"part of tensor {self.tensor.name} cannot be iterated: index it with axes")

    def asobject(self) -> PrimExpr:
        """The element as an expression."""
        return self.tensor(*self.indices)

    @property
    def dtype(self) -> DataType:
        """The type of the element."""
        return self.tensor.dtype


@node
class Tensor(DataProducer, ManyElements):
    """One output of an operation."""

    op: Operation
    value_index: int
    shape: tuple[PrimExpr, ...]
    dtype: DataType

    def __call__(self, *indices: ExprLike) -> PrimExpr:
        if len(indices) != len(self.shape):
            raise ExpressionError(
                f"tensor {self.name} has {len(self.shape)} dimensions, it was given {len(indices)} indices"
            )
        exprs = [operators.as_expr(index) for index in indices]
        for position, index in enumerate(exprs):
            if not index.dtype.is_integral:
                raise ExpressionError(
                    f"index {position} of tensor {self.name} has type {index.dtype}, it must be an integer: {index}"
                )
        return ProducerLoad(self, exprs)

    def __getitem__(self, indices: ExprLike | Sequence[ExprLike]) -> TensorSlice:
        return TensorSlice(self, indices)

    def __iter__(self) -> Any:
        raise ExpressionError(f"tensor {self.name} cannot be iterated: index it with axes")

    def asobject(self) -> PrimExpr:
        """A tensor without dimensions stands for its one element."""
        return self.op.scalar(self.value_index) if not self.shape else self()

    def __neg__(self) -> Any:
        return UNARY.value("negative", operators.negative, self)

    def astype(self, dtype: str, span: Span | None = None) -> Any:
        """A tensor of the elements converted to another type."""
        return UNARY.value("cast", lambda value: operators.cast(dtype, value, span), self)

    def __hash__(self) -> int:
        return object.__hash__(self)

    def __eq__(self, other: object) -> Any:
        if isinstance(other, Tensor):
            return self is other
        return EqualOp(self, other) if isinstance(other, ExprOp) else False

    def __ne__(self, other: object) -> Any:
        if isinstance(other, Tensor):
            return self is not other
        return ExprOp.__ne__(self, other) if isinstance(other, ExprOp) else True

    def loaded(self) -> Tensor:
        """The tensor that its operation has."""
        return self.op.output(self.value_index)

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    @property
    def axis(self) -> tuple[IterVar, ...]:
        """The axes of the operation."""
        return self.op.axis

    @property
    def name(self) -> str:
        """The operation's name, with the number of the output where there are several."""
        return self.op.name if self.op.num_outputs == 1 else f"{self.op.name}.v{self.value_index}"

    @property
    def name_hint(self) -> str:
        return self.name

    def __repr__(self) -> str:
        shape = ", ".join(str(extent) for extent in self.shape)
        return f"Tensor(shape=[{shape}], op.name={self.op.name})"


BINARY: Slot[Callable[[str, Callable[..., Any], Any, Any], Any]] = Slot(
    "functions of two elements (name, function, operands)"
)
UNARY: Slot[Callable[[str, Callable[..., Any], Tensor], Any]] = Slot(
    "functions of one element (name, function, tensor)"
)


def _attribute(value: Any) -> Any:
    """An attribute of an operation as programs read it: numbers as constants, sequences as containers."""
    if isinstance(value, (bool, int, float)):
        return operators.const(value)
    if isinstance(value, (list, tuple)):
        return Array([_attribute(item) for item in value])
    if isinstance(value, Mapping):
        return Map({key: _attribute(item) for key, item in value.items()})
    return value


def _infix(method: str, name: str, function: Callable[..., Any], turned: bool) -> Callable[..., Any]:
    """An operator of whole tensors, those without dimensions included."""
    plain = getattr(ExprOp, method)

    def operator(self: Tensor, other: Any) -> Any:
        operands = (other, self) if turned else (self, other)
        return BINARY.value(name, function, *operands)

    operator.__name__, operator.__doc__ = method, plain.__doc__
    return operator


for _method, _name, _function in (
    ("add", "add", operators.add),
    ("sub", "subtract", operators.subtract),
    ("mul", "multiply", operators.multiply),
    ("truediv", "divide", operators.div),
):
    setattr(Tensor, f"__{_method}__", _infix(f"__{_method}__", _name, _function, turned=False))
    setattr(Tensor, f"__r{_method}__", _infix(f"__r{_method}__", _name, _function, turned=True))


class Operation(Node):
    """Base of operations. ``outputs`` holds the tensors it gives; ``span`` is the line of Python that made it."""

    __slots__ = ("attrs", "name", "outputs", "span", "tag")

    name: str
    tag: str
    attrs: Mapping[str, Any]
    outputs: tuple[Tensor, ...]
    span: Span | None

    def _finish(
        self,
        name: str,
        tag: str,
        attrs: Mapping[str, Any] | None,
        span: Span | None,
        shapes: Sequence[Sequence[PrimExpr]],
        dtypes: Sequence[DataType],
    ) -> None:
        """Set what all operations have."""
        self.name = name
        self.tag = tag
        self.attrs = Map({key: _attribute(value) for key, value in (attrs or {}).items()})
        self.span = span
        for shape in shapes:
            _check_shape(name, shape, span)
        self.outputs = tuple(
            Tensor(self, index, tuple(shape), dtype)
            for index, (shape, dtype) in enumerate(zip(shapes, dtypes, strict=True))
        )

    def saved_slot(self, name: str) -> Any:
        """The tensors refer to the operation: their types are written in their place."""
        if name == "outputs":
            return tuple((tensor.shape, tensor.dtype) for tensor in self.outputs)
        return super().saved_slot(name)

    def loaded(self) -> Operation:
        types: Any = self.outputs
        outputs = [Tensor(self, index, shape, dtype) for index, (shape, dtype) in enumerate(types)]
        object.__setattr__(self, "outputs", tuple(outputs))
        object.__setattr__(self, "attrs", Map({key: _attribute(value) for key, value in self.attrs.items()}))
        return self

    def output(self, index: int) -> Tensor:
        """The tensor of this number."""
        if not 0 <= index < len(self.outputs):
            raise ExpressionError(f"operation {self.name} has {len(self.outputs)} outputs, no number {index}")
        return self.outputs[index]

    def scalar(self, index: int) -> PrimExpr:
        """The element of an output without dimensions, as part of another computation."""
        return self.output(index)()

    @property
    def num_outputs(self) -> int:
        """How many tensors it gives."""
        return len(self.outputs)

    @property
    def input_tensors(self) -> tuple[Tensor, ...]:
        """The tensors it reads, each once, in the order of the first read."""
        return ()

    @property
    def axis(self) -> tuple[IterVar, ...]:
        """The axes of the output."""
        return ()

    @property
    def reduce_axis(self) -> tuple[IterVar, ...]:
        """The axes of the reduction."""
        return ()

    @property
    def root_iter_vars(self) -> tuple[IterVar, ...]:
        """The axes from which a schedule starts."""
        return self.axis + self.reduce_axis

    def replace_inputs(self, mapping: TensorMap) -> Operation:
        """This operation reading other tensors; itself if it reads none of those replaced."""
        return self

    def prepare_schedule(self, schedule: Any) -> None:
        """Adjust a new schedule that this operation is part of; a scan ties the stages of its update to itself."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name})"


def _check_shape(name: str, shape: Sequence[PrimExpr], span: Span | None) -> None:
    """Extents are integers that are not negative."""
    for position, extent in enumerate(shape):
        if not extent.dtype.is_integral:
            raise ExpressionError(f"dimension {position} of {name} is {extent}, not an integer", span=span)
        if isinstance(extent, IntImm) and extent.value < 0:
            raise ExpressionError(f"dimension {position} of {name} is negative: {extent.value}", span=span)


def as_shape(shape: ExprLike | Sequence[ExprLike]) -> tuple[PrimExpr, ...]:
    """A shape from a number, an expression or a sequence of them; a float that is a whole number counts as that."""
    dimensions = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
    return tuple(
        operators.as_expr(int(extent) if isinstance(extent, float) and extent.is_integer() else extent)
        for extent in dimensions
    )
