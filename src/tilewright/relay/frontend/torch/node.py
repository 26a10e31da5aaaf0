"""A call of one of PyTorch's operators, as the code that converts it sees it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright import relay
from tilewright.ir.base import RelayExpr
from tilewright.ir.module import IRModule
from tilewright.relay.expr import Constant, ExprWithOp, const
from tilewright.relay.frontend.common import ShapeNeeded
from tilewright.relay.frontend.common.held import HeldValues, ScopedNode
from tilewright.relay.frontend.torch.dtypes import category, is_floating, result_dtype

Expr = ExprWithOp
Number = bool | int | float
Operand = Expr | Number
"""A tensor, or a number that is known."""


class Scope(HeldValues):
    """What converters share in a model: the module, the values of parameters, and which scalars are numbers.

    ``numbers`` are expressions that are Python numbers in the model (sizes, mostly): they do not decide on element
    types as tensors do. ``default_dtype`` is PyTorch's.
    """

    def __init__(self, module: IRModule, default_dtype: str = "float32") -> None:
        super().__init__(module)
        self.default_dtype = default_dtype
        self.numbers: set[RelayExpr] = set()

    def number(self, expr: Expr) -> Expr:
        """Note that a scalar is a Python number."""
        self.numbers.add(expr)
        return expr


class TorchNode(ScopedNode):
    """A call: its operator, its name in the graph, and what is known of its arguments."""

    scope: Scope

    # Values

    def number_of(self, given: Any, what: str) -> Number:
        """A number that has to be known."""
        if isinstance(given, (bool, int, float)):
            return given
        return self.number(given, what)  # type: ignore[no-any-return]

    def known_ints(self, given: Any, what: str) -> list[int]:
        """A list of integers that has to be known; a single one counts as a list."""
        if isinstance(given, (int, RelayExpr)):
            given = [given]
        return [int(self.number_of(item, what)) for item in given]

    def spread(self, given: Any, count: int, what: str) -> list[int]:
        """A list with an integer for each of ``count`` axes; a single one stands for all."""
        found = self.known_ints(given, what)
        if len(found) == 1:
            return found * count
        if len(found) != count:
            raise self.fail(f"{what} has {len(found)} numbers for {count} axes")
        return found

    # Axes

    def known_size(self, data: RelayExpr, axis: int) -> int:
        """One dimension, which has to be known."""
        found = self.shape(data)[axis]
        if found is None:
            raise ShapeNeeded(
                f"{self.where}: dimension {axis} of {self.shape(data)} has to be known: fix it with shape=, or export "
                "the model with that dimension fixed"
            )
        return found

    def axis_of(self, given: int, rank: int) -> int:
        """An axis counted from the front; a scalar may be addressed as if it had one axis."""
        return self.from_front(given, max(rank, 1), "dim")

    def axes_of(self, given: Any, rank: int) -> list[int]:
        """Axes counted from the front, in order; all of them where none is given."""
        if given is None or (isinstance(given, (list, tuple)) and not given):
            return list(range(rank))
        items = [given] if isinstance(given, int) else given
        return sorted(self.axis_of(int(item), rank) for item in items)

    # Types

    def is_number(self, operand: Any) -> bool:
        """True for Python numbers, those that the program computes included."""
        return not isinstance(operand, RelayExpr) or operand in self.scope.numbers

    def result_dtype(self, *operands: Operand) -> str:
        """The type of an element-wise operator's result, as ``torch.result_type`` has it."""
        tensors: list[str] = []
        scalars: list[str] = []
        numbers: list[str] = []
        for operand in operands:
            if not isinstance(operand, RelayExpr):
                numbers.append(self._number_dtype(operand))
            elif operand in self.scope.numbers:
                found = self.dtype(operand)
                numbers.append(self.scope.default_dtype if is_floating(found) else found)
            else:
                (tensors if self.rank(operand) else scalars).append(self.dtype(operand))
        return result_dtype(tensors, scalars, numbers)

    def _number_dtype(self, number: Number) -> str:
        if isinstance(number, bool):
            return "bool"
        return "int64" if isinstance(number, int) else self.scope.default_dtype

    def cast(self, operand: Operand, dtype: str) -> Expr:
        """An operand as a tensor of an element type."""
        if not isinstance(operand, RelayExpr):
            return const(_fitting(operand, dtype), dtype)
        have = self.dtype(operand)
        if have == dtype:
            return operand
        if isinstance(operand, Constant) and not operand.data.shape:
            return const(_fitting(operand.data.numpy().item(), dtype), dtype)
        if dtype == "bool":
            # Whatever is not zero is true; a cast looks at the low bits.
            return relay.not_equal(operand, const(0, have))
        return relay.cast(operand, dtype)

    def promoted(self, *operands: Operand) -> list[Expr]:
        """Operands of an element-wise operator in their common type."""
        dtype = self.result_dtype(*operands)
        return [self.cast(operand, dtype) for operand in operands]

    def floating(self, operand: Operand) -> Expr:
        """An operand of an operator that only has floating-point results: integers become the default type."""
        return self.cast(operand, self.floating_dtype(self.result_dtype(operand)))

    def floating_dtype(self, dtype: str) -> str:
        """The type itself where it is floating-point, else the default type."""
        return dtype if is_floating(dtype) else self.scope.default_dtype

    def is_integral(self, operand: Operand) -> bool:
        """True if the elements are integers or truth values."""
        return category(self.result_dtype(operand)) < 2

    def tensor(self, operand: Operand) -> Expr:
        """An operand as an expression of its own type."""
        return operand if isinstance(operand, RelayExpr) else const(operand, self._number_dtype(operand))

    def fold(self, values: Sequence[Any]) -> bool:
        """True if all values are Python numbers that are known."""
        return all(isinstance(value, (bool, int, float)) for value in values)


def _fitting(number: Number, dtype: str) -> Number:
    """A number as a type has it: integers wrap around, and truth values are what is not zero."""
    if dtype == "bool":
        return bool(number)
    if is_floating(dtype):
        return float(number)
    whole = int(number)
    bits = int("".join(filter(str.isdigit, dtype)))
    whole %= 1 << bits
    return whole - (1 << bits) if not dtype.startswith("u") and whole >> (bits - 1) else whole
