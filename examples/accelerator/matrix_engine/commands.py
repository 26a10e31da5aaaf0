"""The engine's commands, as engine/matrix_engine.h defines them, and what each costs."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum

SCRATCHPAD = 32768
SIDE = 16
WORDS = 12
MOST_COMMANDS = 65536


class Opcode(IntEnum):
    """The first word of a command."""

    END = 0
    LOAD = 1
    STORE = 2
    FILL = 3
    START = 4
    MULTIPLY = 5
    REQUANTIZE = 6


@dataclass
class Program:
    """A command stream, and the cycles that the engine takes for it: those that the simulator counts."""

    words: list[int] = field(default_factory=list)
    cycles: int = 0

    def _add(self, opcode: Opcode, cycles: int, *operands: int) -> None:
        self.words += [opcode, *operands, *[0] * (WORDS - 1 - len(operands))]
        self.cycles += cycles

    def __len__(self) -> int:
        return len(self.words) // WORDS

    def load(
        self, buffer: int, offset: int, stride: int, to: int, to_stride: int, rows: int, size: int
    ) -> None:
        """DMA into the scratchpad: ``rows`` rows of ``size`` bytes."""
        self._add(Opcode.LOAD, _moved(rows, size), buffer, offset, stride, to, to_stride, rows, size)

    def store(
        self, buffer: int, offset: int, stride: int, of: int, of_stride: int, rows: int, size: int
    ) -> None:
        """DMA out of the scratchpad."""
        self._add(Opcode.STORE, _moved(rows, size), buffer, offset, stride, of, of_stride, rows, size)

    def fill(self, value: int, to: int, stride: int, rows: int, size: int) -> None:
        """Set bytes of the scratchpad."""
        self._add(Opcode.FILL, 1 + rows * -(-size // 16), value, to, stride, rows, size)

    def start(self, bias: int, columns: int) -> None:
        """Start the accumulators, from one int32 a column."""
        self._add(Opcode.START, SIDE, bias, columns)

    def multiply(
        self,
        a: int,
        a_stride: int,
        b: int,
        b_stride: int,
        rows: int,
        columns: int,
        depth: int,
        zeros: tuple[int, int],
    ) -> None:
        """Add the products of rows of A and rows of B, less their zero points."""
        self._add(Opcode.MULTIPLY, SIDE + depth, a, a_stride, b, b_stride, rows, columns, depth, *zeros)

    def requantize(
        self,
        multipliers: int,
        shifts: int,
        to: int,
        stride: int,
        rows: int,
        columns: int,
        zero: int,
        limits: tuple[int, int],
        away: bool,
    ) -> None:
        """Write the accumulators as int8 within limits."""
        operands = (multipliers, shifts, to, stride, rows, columns, zero, *limits, int(away))
        self._add(Opcode.REQUANTIZE, 2 * rows, *operands)

    def end(self) -> None:
        """End the stream."""
        self._add(Opcode.END, 0)


def _moved(rows: int, size: int) -> int:
    return 8 + rows * -(-size // 8)
