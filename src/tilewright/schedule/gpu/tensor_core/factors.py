"""Sums of products as products of matrices: which axes are rows, columns, depth and batch, and how factors are read.

A matrix product, a batch of them and a convolution (whose rows are the positions of the result, and whose depth is the
taps and the input channels) are the same case. Axes are *virtual*: a result axis that one factor reads only in blocks,
as the output channels of a convolution in groups are, stands for two, the block and the place within it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

from tilewright.arith import Analyzer
from tilewright.ir import operators
from tilewright.ir.expr import (
    Add,
    And,
    Call,
    Cast,
    CmpExpr,
    FloatImm,
    FloorDiv,
    IntImm,
    IterVar,
    Mul,
    PrimExpr,
    ProducerLoad,
    Range,
    Reduce,
    Select,
    Var,
)
from tilewright.ir.functor import post_order, substitute_expr, uses_var
from tilewright.support.dtype import DataType
from tilewright.support.node import Node
from tilewright.te.operation import ComputeOp
from tilewright.te.tensor import Tensor


@dataclass(frozen=True)
class Axis:
    """A virtual axis: its variable counts from zero to below ``extent``."""

    var: Var
    extent: int


def size(axes: Sequence[Axis]) -> int:
    """How many places the axes have together."""
    return prod(axis.extent for axis in axes)


def decode(index: PrimExpr, axes: Sequence[Axis]) -> dict[Var, PrimExpr]:
    """The values of the axes at a place that is counted over all of them, the last axis fastest."""
    found: dict[Var, PrimExpr] = {}
    rest = index
    for number, axis in reversed(list(enumerate(axes))):
        if axis.extent == 1:
            found[axis.var] = operators.const(0, index.dtype)
        elif all(one.extent == 1 for one in axes[:number]):
            found[axis.var] = rest
        else:
            found[axis.var] = operators.floormod(rest, axis.extent)
            rest = operators.floordiv(rest, axis.extent)
    return found


@dataclass(frozen=True)
class Factor:
    """How one factor is read, in terms of virtual axes: zero where ``inside`` does not hold."""

    tensor: Tensor
    indices: tuple[PrimExpr, ...]
    inside: tuple[CmpExpr, ...]

    @property
    def dtype(self) -> DataType:
        """The type of an element."""
        return DataType(self.tensor.dtype)

    def address(self) -> PrimExpr:
        """The position in memory, in elements of a compact tensor."""
        flat: PrimExpr = operators.const(0)
        for index, extent in zip(self.indices, self.tensor.shape, strict=True):
            flat = operators.add(operators.multiply(flat, extent), index)
        return flat

    def moves_with(self, variable: Var) -> bool:
        """True if what is read depends on a variable."""
        return any(uses_var(part, variable) for part in (*self.indices, *self.inside))

    def run_along(self, axis: Axis, ranges: Mapping[Var, Range], most: int) -> int:
        """How many elements (a power of two, at most ``most``) are always adjacent and aligned along an axis."""
        if any(uses_var(part, axis.var) for part in self.inside):
            return 1
        analyzer = Analyzer()
        for variable, domain in ranges.items():
            analyzer.bind(variable, domain)
        address = self.address()
        step = operators.subtract(substitute_expr(address, {axis.var: operators.add(axis.var, 1)}), address)
        if not analyzer.can_prove_equal(step, operators.const(1)):
            return 1
        run = most
        while run > 1:
            block = Var(f"{axis.var.name}_block", axis.var.dtype)
            at_block = substitute_expr(address, {axis.var: operators.multiply(block, run)})
            if axis.extent % run == 0 and analyzer.can_prove_equal(
                operators.floormod(at_block, run), operators.const(0)
            ):
                return run
            run //= 2
        return 1

    def substituted(self, values: Mapping[Var, PrimExpr], analyzer: Analyzer) -> Factor:
        """The factor in terms of other variables, simplified."""

        def changed(expr: PrimExpr) -> PrimExpr:
            return analyzer.simplify(substitute_expr(expr, values))

        return Factor(
            self.tensor,
            tuple([changed(index) for index in self.indices]),
            tuple([one.replace(a=changed(one.a), b=changed(one.b)) for one in self.inside]),
        )


@dataclass(frozen=True)
class Product:
    """``result[batch, row, column] = sum over depth of a[batch, row, depth] * b[batch, depth, column]``.

    ``origin`` gives the result's own axes in terms of the virtual ones, ``virtual`` the reverse.
    """

    result: ComputeOp
    batch: tuple[Axis, ...]
    rows: tuple[Axis, ...]
    columns: tuple[Axis, ...]
    depth: tuple[Axis, ...]
    a: Factor
    b: Factor
    origin: Mapping[Var, PrimExpr]
    virtual: Mapping[Var, PrimExpr]

    @property
    def axes(self) -> tuple[Axis, ...]:
        """All virtual axes."""
        return (*self.batch, *self.rows, *self.columns, *self.depth)

    @property
    def ranges(self) -> dict[Var, Range]:
        """The range of each axis."""
        return {axis.var: Range(0, axis.extent) for axis in self.axes}

    @property
    def reads_rows(self) -> bool:
        """True if the first factor is contiguous along the rows rather than along the depth."""
        return self._is_contiguous_along(self.a, self.rows)

    @property
    def reads_columns(self) -> bool:
        """True if the second factor is contiguous along the columns rather than along the depth."""
        return self._is_contiguous_along(self.b, self.columns)

    def _is_contiguous_along(self, factor: Factor, side: Sequence[Axis]) -> bool:
        # Matrices of bytes cannot be transposed on their way to the matrix units.
        if not side or factor.dtype.bits < 16:
            return False
        piece = 16 // factor.dtype.itemsize
        return factor.run_along(side[-1], self.ranges, piece) > factor.run_along(
            self.depth[-1], self.ranges, piece
        )

    @property
    def is_split(self) -> bool:
        """True if the matrix units take the factors in two parts, because they know shorter ones only."""
        return self.a.dtype == "float32"

    @property
    def sum_type(self) -> DataType:
        """The type of the sums."""
        return DataType(self.result.output(0).dtype)


def find_product(operation: ComputeOp) -> Product | None:
    """The product that a computation is, if it is one of constant sizes; inlined reads are followed."""
    if len(operation.body) != 1 or not isinstance(operation.body[0], Reduce):
        return None
    value = operation.body[0]
    if not _is_sum(value) or not isinstance(value.source[0], Mul):
        return None
    factors = [_factor(part) for part in (value.source[0].a, value.source[0].b)]
    if factors[0] is None or factors[1] is None:
        return None
    first, second = factors[0], factors[1]
    if not all(_has_constant_extent(axis) for axis in (*operation.axes, *value.axis)):
        return None
    own = [_axis(axis) for axis in operation.axes]
    depth = [_axis(axis) for axis in value.axis]
    wide = [axis for axis in own if axis.extent > 1]
    # Results are stored along the innermost axis, so it belongs to the columns.
    if wide and not second.moves_with(wide[-1].var):
        first, second = second, first
    axes, origin, virtual = _split_blocks(own, (first, second))
    analyzer = Analyzer()
    for axis in (*axes, *depth):
        analyzer.bind(axis.var, Range(0, axis.extent))
    first, second = first.substituted(origin, analyzer), second.substituted(origin, analyzer)
    in_first = {axis for axis in axes if first.moves_with(axis.var)}
    in_second = {axis for axis in axes if second.moves_with(axis.var)}
    return Product(
        operation,
        tuple([axis for axis in axes if axis in in_first and axis in in_second]),
        tuple([axis for axis in axes if axis not in in_second]),
        tuple([axis for axis in axes if axis in in_second and axis not in in_first]),
        tuple(depth),
        first,
        second,
        origin,
        virtual,
    )


def _is_sum(value: Reduce) -> bool:
    """True for a plain sum from zero, without a condition."""
    combiner = value.combiner
    if len(value.source) != 1 or value.init or len(combiner.result) != 1:
        return False
    result, identity = combiner.result[0], combiner.identity_element[0]
    if not isinstance(result, Add) or {result.a, result.b} != {combiner.lhs[0], combiner.rhs[0]}:
        return False
    always = isinstance(value.condition, IntImm) and bool(value.condition.value)
    return always and isinstance(identity, (IntImm, FloatImm)) and identity.value == 0


def _has_constant_extent(axis: IterVar) -> bool:
    return axis.dom is not None and isinstance(axis.dom.extent, IntImm) and axis.dom.extent.value > 0


def _axis(axis: IterVar) -> Axis:
    assert axis.dom is not None and isinstance(axis.dom.extent, IntImm)
    return Axis(axis.var, int(axis.dom.extent.value))


def _factor(value: PrimExpr) -> Factor | None:
    """A read of a tensor, perhaps converted, perhaps only where a condition holds and zero elsewhere."""
    while isinstance(value, Cast):
        value = value.value
    inside: list[CmpExpr] = []
    while not isinstance(value, ProducerLoad):
        if isinstance(value, Call) and value.op.name == "tir.if_then_else":
            condition, taken, otherwise = value.args
        elif isinstance(value, Select):
            condition, taken, otherwise = value.condition, value.true_value, value.false_value
        else:
            return None
        if not isinstance(otherwise, (IntImm, FloatImm)) or otherwise.value != 0:
            return None
        for one in _conjuncts(condition):
            if not isinstance(one, CmpExpr):
                return None
            inside.append(one)
        value = taken
    if not isinstance(value.producer, Tensor):
        return None
    if any(isinstance(part, ProducerLoad) for index in value.indices for part in post_order(index)):
        return None
    return Factor(value.producer, tuple(value.indices), tuple(inside))


def _conjuncts(condition: PrimExpr) -> list[PrimExpr]:
    if isinstance(condition, Call) and condition.op.name == "tir.likely":
        return _conjuncts(condition.args[0])
    if isinstance(condition, And):
        return [*_conjuncts(condition.a), *_conjuncts(condition.b)]
    return [condition]


def _split_blocks(
    axes: Sequence[Axis], factors: Sequence[Factor]
) -> tuple[list[Axis], dict[Var, PrimExpr], dict[Var, PrimExpr]]:
    """Two virtual axes for each axis that a factor reads in blocks only, with both directions of the map."""
    made: list[Axis] = []
    origin: dict[Var, PrimExpr] = {}
    virtual: dict[Var, PrimExpr] = {}
    for axis in axes:
        block = _block_of(axis, factors)
        if block is None:
            made.append(axis)
            origin[axis.var] = virtual[axis.var] = axis.var
            continue
        outer = Axis(Var(f"{axis.var.name}_block", axis.var.dtype), axis.extent // block)
        inner = Axis(Var(f"{axis.var.name}_inner", axis.var.dtype), block)
        made += [outer, inner]
        origin[axis.var] = operators.add(operators.multiply(outer.var, block), inner.var)
        virtual[outer.var] = operators.floordiv(axis.var, block)
        virtual[inner.var] = operators.floormod(axis.var, block)
    return made, origin, virtual


def _block_of(axis: Axis, factors: Sequence[Factor]) -> int | None:
    """The size of the blocks, where one factor reads the axis only divided by it."""
    for factor in factors:
        divisors: set[int] = set()
        pending: list[Node] = [*factor.indices, *factor.inside]
        while pending:
            part = pending.pop()
            if isinstance(part, FloorDiv) and part.a is axis.var and isinstance(part.b, IntImm):
                divisors.add(int(part.b.value))
            elif part is axis.var:
                divisors.add(1)
            else:
                pending += part.children()
        if len(divisors) == 1:
            (block,) = divisors
            if 1 < block < axis.extent and axis.extent % block == 0:
                return block
    return None
