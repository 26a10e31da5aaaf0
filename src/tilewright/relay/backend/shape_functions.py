"""Shape functions: small kernels that compute the shapes of a primitive function's results before it runs.

What the operators' type relations derive for symbolic dimensions becomes a program on the vectors of the parameters'
shapes. Where a relation leaves a dimension unknown, because it depends on values, the operator's own shape function
computes it, from the parameters themselves where it needs them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tilewright import te
from tilewright.compile import get_binds, lower
from tilewright.ir import operators
from tilewright.ir.base import RelayExpr
from tilewright.ir.expr import Any as UnknownDimension
from tilewright.ir.expr import IntImm, PrimExpr, SizeVar, Var
from tilewright.ir.functor import free_vars
from tilewright.ir.module import IRModule
from tilewright.ir.op import Op
from tilewright.ir.tensor_type import TensorType
from tilewright.relay import expr as relay_expr
from tilewright.relay.analysis.symbolic_types import SymbolicTypes, has_constant_shape, tensor_types
from tilewright.relay.expr import Call, Constant
from tilewright.relay.function import Function
from tilewright.relay.op.definition import RelationError
from tilewright.relay.op.transform.support import as_int64, require, shape_program
from tilewright.support.errors import LoweringError
from tilewright.support.recursion import recursion_room
from tilewright.target import Target
from tilewright.te.tensor import Tensor
from tilewright.tir.functor import substitute


@dataclass(frozen=True)
class ShapeInput:
    """An argument of a shape function: a tensor among those of the parameters, tuples flattened, or the vector of its
    shape."""

    position: int
    is_data: bool


@dataclass(frozen=True)
class ShapeFunction:
    """A shape function as tensor expressions. It writes one vector for each result whose shape is not constant."""

    inputs: list[ShapeInput]
    arguments: list[Tensor]
    outputs: list[Tensor]


class _Shapes(SymbolicTypes):
    """The types of a function, with dimensions as expressions of elements of the shape function's inputs."""

    def __init__(self, function: Function) -> None:
        self.placeholders: dict[ShapeInput, Tensor] = {}
        self.elements: dict[Var, tuple[Tensor, int]] = {}
        super().__init__(function, "int64")

    def _infer(self) -> None:
        self.placeholders.clear()
        self.elements.clear()
        super()._infer()

    def first_position(self, parameter: int) -> int:
        """The position of a parameter's first tensor among all of them."""
        before = self.function.params[:parameter]
        return sum(len(tensor_types(one.checked_type)) for one in before)

    def placeholder(self, position: int, is_data: bool) -> Tensor:
        """The tensor expression of an input."""
        wanted = ShapeInput(position, is_data)
        if wanted not in self.placeholders:
            kinds = [kind for one in self.function.params for kind in tensor_types(one.checked_type)]
            kind = kinds[position]
            shape: Sequence[Any] = [
                extent if isinstance(extent, IntImm) else te.size_var("any_dim", "int32")
                for extent in kind.shape
            ]
            made = (
                te.placeholder(shape, kind.dtype, name=f"data{position}")
                if is_data
                else te.placeholder((len(shape),), "int64", name=f"shape{position}")
            )
            self.placeholders[wanted] = made
        return self.placeholders[wanted]

    def element(self, variable: Var) -> tuple[Tensor, int]:
        """The tensor that holds a variable's value, and the index in it."""
        if variable not in self.elements:
            for (parameter, part, axis), known in self._dimensions.items():
                if known is variable:
                    tensor = self.placeholder(self.first_position(parameter) + part, is_data=False)
                    self.elements[variable] = (tensor, axis)
                    break
        return self.elements[variable]

    def cannot_relate(self, call: Call, error: RelationError) -> None:
        if self._own_function(call) is None:
            assert isinstance(call.op, Op)
            raise LoweringError(f"{call.op.name}: {error.message}", span=call.span) from error

    @staticmethod
    def _own_function(call: Call) -> Any:
        assert isinstance(call.op, Op)
        return call.op.get_attr("FShapeFunc")

    def unknown_results(self, call: Call, results: Sequence[TensorType]) -> list[TensorType]:
        """By the operator's own shape function."""
        function = self._own_function(call)
        assert isinstance(call.op, Op)
        if function is None:
            raise LoweringError(
                f"the shape of {call.op.name} cannot be computed: its type relation leaves dimensions unknown, and it "
                "has no shape function; give it one with relay.op.register_shape_func",
                span=call.span,
            )
        declared = call.op.get_attr("TShapeDataDependent")
        depends = list(declared) if isinstance(declared, (list, tuple)) else [bool(declared)] * len(call.args)
        inputs = [
            tensor
            for argument, is_data in zip(call.args, depends, strict=True)
            for tensor in (self._data(call, argument) if is_data else self._shape_vectors(argument))
        ]
        made = function(call.attrs, inputs, [len(one.shape) for one in results])
        return [
            TensorType([self._from(tensor, axis, extent) for axis, extent in enumerate(one.shape)], one.dtype)
            for one, tensor in zip(results, made, strict=True)
        ]

    def _from(self, tensor: Tensor, axis: int, extent: PrimExpr) -> PrimExpr:
        if not isinstance(extent, UnknownDimension):
            return extent
        variable = SizeVar("extent", "int64")
        self.elements[variable] = (tensor, axis)
        return variable

    def _data(self, call: Call, argument: RelayExpr) -> list[Tensor]:
        """The tensors of an argument themselves."""
        if isinstance(argument, relay_expr.Var) and argument in self.function.params:
            first = self.first_position(self.function.params.index(argument))
            count = len(tensor_types(argument.checked_type))
            return [self.placeholder(first + part, is_data=True) for part in range(count)]
        if isinstance(argument, Constant) and argument.data.shape == ():
            value = operators.const(argument.data.numpy().item(), argument.data.dtype)
            return [te.compute((), lambda: value, name="constant")]
        assert isinstance(call.op, Op)
        raise LoweringError(
            f"the shape of {call.op.name} depends on values that are computed in the same kernel",
            span=call.span,
        )

    def _shape_vectors(self, argument: RelayExpr) -> list[Tensor]:
        """The shapes of the tensors of an argument."""
        return [
            self.vectors([one], "argument_shape")[0] if one.shape else _empty_vector()
            for one in tensor_types(self.visit(argument))
        ]

    def vectors(self, kinds: Sequence[TensorType], name: str, checked: bool = False) -> list[Tensor]:
        """The dimensions of tensors, each as a vector that a small program computes."""
        conditions = self.conditions if checked else []
        used = dict.fromkeys(
            variable
            for expr in (
                *[extent for kind in kinds for extent in kind.shape],
                *[c.condition.holds for c in conditions],
            )
            for variable in free_vars(expr)
        )
        places = {variable: self.element(variable) for variable in used}
        inputs = list(dict.fromkeys(tensor for tensor, _ in places.values()))

        def program(builder: Any, ins: Any, outs: Any) -> None:
            values = {}
            for variable, (tensor, index) in places.items():
                element = ins[inputs.index(tensor)][index]
                values[variable] = builder.let(variable.name, as_int64(element))
            for each in conditions:
                require(builder, substitute(each.condition.holds, values), each.message)
            for out, kind in zip(outs, kinds, strict=True):
                for axis, extent in enumerate(kind.shape):
                    out[axis] = as_int64(substitute(extent, values))

        return shape_program(name, inputs, [len(kind.shape) for kind in kinds], program)


def _empty_vector() -> Tensor:
    made: Tensor = te.compute((0,), lambda i: operators.const(0, "int64"), name="no_shape")
    return made


def shape_function(function: Function) -> ShapeFunction:
    """The shape function of a primitive function."""
    with recursion_room():
        shapes = _Shapes(function)
        declared = tensor_types(function.body.checked_type)
        computed = tensor_types(shapes.result)
        wanted = [made for kind, made in zip(declared, computed, strict=True) if not has_constant_shape(kind)]
        outputs = shapes.vectors(wanted, "result_shape", checked=True)
    inputs = list(shapes.placeholders)
    return ShapeFunction(inputs, [shapes.placeholders[one] for one in inputs], outputs)


def lower_shape_function(function: Function, target: Target, name: str) -> IRModule:
    """The loops of the shape function of a primitive function: inputs, then one vector for each computed shape."""
    made = shape_function(function)
    arguments = [*made.arguments, *made.outputs]
    binds, _ = get_binds(arguments, compact=True)
    with target:
        schedule = te.create_schedule([one.op for one in made.outputs])
        return lower(schedule, arguments, name, binds)


def copied_shapes(function: Function) -> list[int | None]:
    """For each result, the first tensor among those of the parameters whose shape it always has; None where there is
    none, or where it is constant."""
    types = SymbolicTypes(function)
    given = [kind for number in range(len(function.params)) for kind in types.parameter_types(number)]
    found: list[int | None] = []
    for made in tensor_types(types.result):
        place = next((place for place, kind in enumerate(given) if _same_shape(kind, made)), None)
        found.append(None if has_constant_shape(made) else place)
    return found


def _same_shape(first: TensorType, second: TensorType) -> bool:
    return TensorType(first.shape, "int8") == TensorType(second.shape, "int8")
