"""Recurrent layers with the loop over time inside.

Gates of a unit are computed together, in blocks of units: a step is one parallel loop over the blocks, with the
product of the state and all that comes after it, and nothing but the state goes through memory between steps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from tilewright.ir import operators
from tilewright.ir.expr import IntImm, PrimExpr, Select
from tilewright.te.tensor import Tensor
from tilewright.tir.ir_builder import BufferVar, IRBuilder
from tilewright.tir.op import sigmoid, tanh
from tilewright.topi.arguments import check_tensor
from tilewright.topi.kernel import loop_kernel
from tilewright.topi.utils import get_const_tuple

BLOCK: Final = 16
"""Units whose gates lie together: one vector of the widest registers, whole vectors of the others."""

Values = Sequence[PrimExpr]
Step = Callable[[IRBuilder, Values, Values, Values, Values], list[PrimExpr]]
"""(builder, what the inputs contribute to each gate, what the state does, biases, the state) to the next state, hidden
first."""


@dataclass(frozen=True)
class RecurrentTiling:
    """How the steps of a layer are cut: ``rows`` of the batch are multiplied by a block of weights at once, and what
    they leave over in one smaller tile, or row by row if the batch is open. The blocks of a step are ``cores`` shares,
    which run in parallel if asked."""

    rows: int = 1
    cores: int = 1
    parallel: bool = False


@dataclass(frozen=True)
class RecurrentCell:
    """One kind of cell: how many gates, tensors of state and biases of the state's product it has, and its step."""

    gates: int
    states: int
    biases: int
    step: Step


def _lstm(
    builder: IRBuilder, given: Values, product: Values, biases: Values, state: Values
) -> list[PrimExpr]:
    put, out, forget, new = (one + other for one, other in zip(given, product, strict=True))
    cell = builder.let("cell", sigmoid(forget) * state[1] + sigmoid(put) * tanh(new))
    return [sigmoid(out) * tanh(cell), cell]


def _gru(builder: IRBuilder, given: Values, product: Values, biases: Values, state: Values) -> list[PrimExpr]:
    update, reset = (sigmoid(given[gate] + product[gate]) for gate in range(2))
    candidate = builder.let("candidate", tanh(given[2] + reset * (product[2] + biases[0])))
    return [candidate + update * (state[0] - candidate)]


def _tanh(
    builder: IRBuilder, given: Values, product: Values, biases: Values, state: Values
) -> list[PrimExpr]:
    return [tanh(given[0] + product[0])]


def _relu(
    builder: IRBuilder, given: Values, product: Values, biases: Values, state: Values
) -> list[PrimExpr]:
    return [operators.maximum(given[0] + product[0], operators.const(0, given[0].dtype))]


CELLS: Final = {
    "lstm": RecurrentCell(4, 2, 0, _lstm),
    "gru": RecurrentCell(3, 1, 1, _gru),
    "tanh": RecurrentCell(1, 1, 0, _tanh),
    "relu": RecurrentCell(1, 1, 0, _relu),
}
"""Gates stand in ONNX's order: input, output, forget and new cell of an LSTM, update, reset and candidate of a GRU,
whose reset comes after the product with the state and that product's bias."""


def recurrent(
    cell: str,
    given: Tensor,
    weight: Tensor,
    states: Sequence[Tensor],
    biases: Sequence[Tensor] = (),
    tiling: RecurrentTiling | None = None,
) -> list[Tensor]:
    """The hidden states of all steps (steps, batch, hidden), then the last state, hidden first.

    ``given`` is what the inputs contribute, (steps, batch, blocks * gates * block); ``weight`` the state's, (blocks,
    hidden, gates, block); ``biases`` are (blocks * block). Units beyond ``hidden``, which fill the last block, are
    zeros in all of them. ``states`` are (batch, hidden).
    """
    for tensor in (given, weight, *states, *biases):
        check_tensor("recurrent", tensor)
    kind = CELLS[cell]
    blocks, hidden, _, block = get_const_tuple(weight.shape)
    steps, batch = given.shape[:2]
    chosen = RecurrentTiling() if tiling is None else tiling
    kernel = _Kernel(kind, steps, batch, hidden, blocks, block, chosen, given.dtype)
    outputs = [(steps, batch, hidden), *((batch, hidden) for _ in range(kind.states))]
    return loop_kernel(
        "recurrent",
        [given, weight, *states, *biases],
        [(shape, given.dtype) for shape in outputs],
        kernel.emit,
    )


def recurrent_block(gates: int, hidden: int) -> int:
    """Units of a block: enough for four vectors of sums, which an addition needs to start each cycle."""
    wide = BLOCK * (4 // gates)
    return wide if hidden >= wide else BLOCK


@dataclass
class _Kernel:
    """The loops of one layer. State is kept in whole blocks of units, ``padded`` of them a row."""

    kind: RecurrentCell
    steps: PrimExpr
    batch: PrimExpr
    hidden: int
    blocks: int
    block: int
    tiling: RecurrentTiling
    dtype: Any

    @property
    def padded(self) -> int:
        return self.blocks * self.block

    def emit(self, builder: IRBuilder, ins: Sequence[BufferVar], outs: Sequence[BufferVar]) -> None:
        given, weight = ins[:2]
        initial, biases = ins[2 : 2 + self.kind.states], ins[2 + self.kind.states :]
        # Two hidden states: one is read by all blocks while the other is written.
        whole = self.batch * self.padded
        hidden = builder.allocate(self.dtype, (whole * 2,), name="hidden", scope="global")
        others = [
            builder.allocate(self.dtype, (whole,), name="state", scope="global")
            for _ in range(self.kind.states - 1)
        ]
        for value, state in zip(initial, [hidden, *others], strict=True):
            self._take_in(builder, value, state)
        with builder.for_range(0, self.steps, name="step") as step:
            before = builder.let("before", operators.floormod(step, 2) * whole)
            after = builder.let("after", whole - before)
            loop = "parallel" if self.tiling.parallel else "serial"
            with builder.for_range(0, self.blocks, name="turn", kind=loop) as turn:
                number = builder.let("block", self._in_turn(step, turn))
                for rows, first, count in self._tiles():
                    with builder.for_range(0, count, name="tile") as tile:
                        start = first + tile * rows
                        total = self._product(builder, weight, hidden, before, number, start, rows)
                        for row in range(rows):
                            self._cell(
                                builder,
                                step,
                                number,
                                row,
                                builder.let("row", start + row),
                                given,
                                total,
                                biases,
                                (hidden, before, after),
                                others,
                                outs[0],
                            )
        last = operators.floormod(self.steps, 2) * whole
        for place, state in enumerate([hidden, *others]):
            with (
                builder.for_range(0, self.batch, name="row") as row,
                builder.for_range(0, self.hidden, name="unit") as unit,
            ):
                found = row * self.padded + unit
                outs[1 + place][row * self.hidden + unit] = state[found if place else last + found]

    def _tiles(self) -> list[tuple[int, PrimExpr, PrimExpr]]:
        """Tiles of rows: how many rows one has, at which row they begin, and how many there are."""
        rows = self.tiling.rows
        whole, rest = operators.floordiv(self.batch, rows), operators.floormod(self.batch, rows)
        zero = operators.const(0, "int32")
        if rows == 1:
            return [(1, zero, self.batch)]
        left = (rest.value, 1) if isinstance(rest, IntImm) else (1, rest)
        tiles = [(rows, zero, whole), (left[0], whole * rows, operators.as_expr(left[1]))]
        return tiles if left[0] else tiles[:1]

    def _in_turn(self, step: PrimExpr, turn: PrimExpr) -> PrimExpr:
        """Every other step goes through a core's share of the blocks backwards: what the step before left in the
        caches is read first. That the shares match those of the thread pool only affects speed."""
        share, rest = divmod(self.blocks, max(self.tiling.cores, 1))
        cut = rest * (share + 1)
        first: PrimExpr = operators.floordiv(turn, share + 1) * (2 * share + 2) + share
        if share:
            other = operators.floordiv(turn - cut, share) * (2 * share) + (2 * cut + share - 1)
            first = Select(turn < cut, first, other)
        return Select(operators.equal(operators.floormod(step, 2), 0), turn, first - turn)

    def _take_in(self, builder: IRBuilder, value: BufferVar, state: BufferVar) -> None:
        """Copy what the state is before the first step; units that fill up are zeros."""
        with builder.for_range(0, self.batch, name="row") as row:
            with builder.for_range(0, self.hidden, name="unit") as unit:
                state[row * self.padded + unit] = value[row * self.hidden + unit]
            with builder.for_range(self.hidden, self.padded, name="unit") as unit:
                state[row * self.padded + unit] = operators.const(0, self.dtype)

    def _product(
        self,
        builder: IRBuilder,
        weight: BufferVar,
        hidden: BufferVar,
        before: PrimExpr,
        number: PrimExpr,
        first: PrimExpr,
        rows: int,
    ) -> BufferVar:
        """What the state contributes to the gates of a block, (rows, gates, block), in registers, from a first row."""
        gates, block = self.kind.gates, self.block
        total = builder.allocate(self.dtype, (rows * gates * block,), name="total", scope="local")
        for place in range(rows * gates):
            with builder.for_range(0, block, name="lane", kind="vectorize") as lane:
                total[place * block + lane] = operators.const(0, self.dtype)
        with builder.for_range(0, self.hidden, name="k") as k:
            start = (number * self.hidden + k) * (gates * block)
            for row in range(rows):
                factor = hidden[before + (first + row) * self.padded + k]
                for gate in range(gates):
                    with builder.for_range(0, block, name="lane", kind="vectorize") as lane:
                        place = (row * gates + gate) * block + lane
                        total[place] = total[place] + factor * weight[start + gate * block + lane]
        return total

    def _cell(
        self,
        builder: IRBuilder,
        step: PrimExpr,
        number: PrimExpr,
        row: int,
        at: PrimExpr,
        given: BufferVar,
        total: BufferVar,
        biases: Sequence[BufferVar],
        hidden: tuple[BufferVar, PrimExpr, PrimExpr],
        others: Sequence[BufferVar],
        shown: BufferVar,
    ) -> None:
        """The next state of a block in one row of the batch, kept and shown."""
        gates, block = self.kind.gates, self.block
        kept, before, after = hidden
        line = (step * self.batch + at) * (self.padded * gates) + number * (gates * block)
        first = at * self.padded + number * block
        with builder.for_range(0, block, name="lane", kind="vectorize") as lane:
            following = self.kind.step(
                builder,
                [given[line + gate * block + lane] for gate in range(gates)],
                [total[(row * gates + gate) * block + lane] for gate in range(gates)],
                [one[number * block + lane] for one in biases],
                [kept[before + first + lane], *(one[first + lane] for one in others)],
            )
            kept[after + first + lane] = following[0]
            for one, value in zip(others, following[1:], strict=True):
                one[first + lane] = value
        place = (step * self.batch + at) * self.hidden + number * block
        rest = self.hidden % block
        with (
            builder.if_scope(number < self.hidden // block),
            builder.for_range(0, block, name="lane", kind="vectorize") as lane,
        ):
            shown[place + lane] = kept[after + first + lane]
        if rest:
            with builder.else_scope(), builder.for_range(0, rest, name="lane") as lane:
                shown[place + lane] = kept[after + first + lane]
