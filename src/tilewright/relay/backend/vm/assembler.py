"""From instructions on virtual registers to the words of a function.

Code only jumps forward, so one pass from the end finds where the value of each register is used for the last time.
Instructions with unused results are removed; after its last use, or where a branch does not need a value that the other
does, a register is released, so that its memory is free for the next tensor; then registers whose live ranges do not
overlap are merged.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field

from tilewright.runtime.vm_program import LAYOUTS, Opcode

# Instructions without side effects.
_PURE = frozenset(
    {
        Opcode.MOVE,
        Opcode.ALLOC_TENSOR,
        Opcode.ALLOC_TENSOR_REG,
        Opcode.ALLOC_DATA,
        Opcode.ALLOC_CLOSURE,
        Opcode.GET_FIELD,
        Opcode.LOAD_CONST,
        Opcode.GET_TAG,
        Opcode.LOAD_CONSTI,
        Opcode.ALLOC_STORAGE,
        Opcode.ALLOC_STORAGE_ON,
        Opcode.LOAD_CONST_ON,
        Opcode.SHAPE_OF,
        Opcode.DEVICE_COPY,
        Opcode.ALLOC_REF,
        Opcode.REF_READ,
    }
)
_NUMBERS = frozenset({Opcode.GET_TAG, Opcode.LOAD_CONSTI})
_LEAVING = frozenset({Opcode.RET, Opcode.FATAL, Opcode.GOTO, Opcode.IF})


@dataclass(eq=False)
class Label:
    """A jump target. ``live`` and ``ended`` are sets of registers, one bit each."""

    live: int = 0
    ended: int = 0
    """Registers that are live at some jump here, but not needed from here on."""
    word: int = -1


Value = int | Label | tuple[int, ...]


@dataclass(eq=False)
class _Step:
    opcode: Opcode
    operands: list[Value]
    reads: int = 0
    write: int | None = None


@dataclass
class Assembler:
    """The code of one function while it is written; parameters are the registers from 0 on."""

    num_parameters: int
    _steps: list[_Step | Label] = field(default_factory=list)
    _num_registers: int = 0
    _numbers: int = 0
    """The registers that hold only numbers, which need no release."""

    def __post_init__(self) -> None:
        self._num_registers = self.num_parameters

    def register(self) -> int:
        """A new register."""
        self._num_registers += 1
        return self._num_registers - 1

    def place(self, label: Label) -> None:
        """Place the label here."""
        self._steps.append(label)

    def emit(self, opcode: Opcode, *operands: Value) -> None:
        """One instruction, its operands in the order of its layout."""
        step = _Step(opcode, list(operands))
        for kind, operand in zip(LAYOUTS[opcode], operands, strict=True):
            if kind == "d":
                assert isinstance(operand, int)
                step.write = operand
            elif kind in "roR":
                for register in operand if isinstance(operand, tuple) else (operand,):
                    assert isinstance(register, int)
                    if register >= 0:
                        step.reads |= 1 << register
        if opcode in _NUMBERS and step.write is not None:
            self._numbers |= 1 << step.write
        self._steps.append(step)

    def value(self, opcode: Opcode, *operands: Value) -> int:
        """An instruction that writes a new register, which is left out of the operands; returns the register."""
        made = self.register()
        self.emit(opcode, made, *operands)
        return made

    def finish(self) -> tuple[tuple[int, ...], int]:
        """The words, and the number of registers that they use."""
        steps = self._with_endings()
        places = self._assign(steps)
        return _encode(steps, places), max([self.num_parameters, *[place + 1 for place in places.values()]])

    def _with_endings(self) -> list[_Step | Label]:
        """The code without dead instructions, and with registers released after their last use."""
        made: list[_Step | Label] = []
        live = 0
        for step in reversed(self._steps):
            if isinstance(step, Label):
                step.live = live
                made.append(step)
                continue
            if step.opcode in _LEAVING:
                live = self._live_before(step)
                made.append(step)
                continue
            if step.write is not None and step.opcode in _PURE and not live >> step.write & 1:
                continue
            written = 0 if step.write is None else 1 << step.write
            last = made[-1] if made else None
            if not (isinstance(last, _Step) and last.opcode is Opcode.RET):
                self._end(made, (step.reads | written) & ~live)
            made.append(step)
            live = live & ~written | step.reads
        parameters = (1 << self.num_parameters) - 1
        self._end(made, parameters & ~live)
        finished: list[_Step | Label] = []
        for step in reversed(made):
            finished.append(step)
            if isinstance(step, Label):
                # All jumps to it come earlier, so their live registers are known.
                self._end(finished, step.ended)
        return finished

    def _live_before(self, step: _Step) -> int:
        targets = [operand for operand in step.operands if isinstance(operand, Label)]
        live = step.reads
        for target in targets:
            live |= target.live
        for target in targets:
            target.ended |= live & ~target.live
        return live

    def _end(self, made: list[_Step | Label], registers: int) -> None:
        chosen = _members(registers & ~self._numbers)
        if chosen:
            made.append(_Step(Opcode.KILL, [tuple(chosen)], registers))

    def _assign(self, steps: list[_Step | Label]) -> dict[int, int]:
        """The physical register of each virtual one, in the order in which live ranges begin."""
        first: dict[int, int] = {}
        last: dict[int, int] = {}
        for register in range(self.num_parameters):
            first[register] = last[register] = -1
        after_label = False
        for position, step in enumerate(steps):
            # What is released at a label was last used before it, on another path.
            skipped = isinstance(step, Label) or (after_label and step.opcode is Opcode.KILL)
            after_label = isinstance(step, Label)
            if skipped or isinstance(step, Label):
                continue
            for register in _members(step.reads | (0 if step.write is None else 1 << step.write)):
                first.setdefault(register, position)
                last[register] = position
        places: dict[int, int] = {}
        free: list[int] = []
        busy: list[tuple[int, int]] = []
        count = 0
        for register in sorted(first, key=lambda one: (first[one], one)):
            while busy and busy[0][0] < first[register]:
                heapq.heappush(free, heapq.heappop(busy)[1])
            if register < self.num_parameters or not free:
                place, count = count, count + 1
            else:
                place = heapq.heappop(free)
            places[register] = place
            heapq.heappush(busy, (last[register], place))
        return places


def _members(registers: int) -> list[int]:
    """The registers of a set, in order."""
    found = []
    while registers:
        lowest = registers & -registers
        found.append(lowest.bit_length() - 1)
        registers ^= lowest
    return found


def _encode(steps: list[_Step | Label], places: dict[int, int]) -> tuple[int, ...]:
    """Words; jumps are filled in when all labels have their place."""
    words: list[int] = []
    jumps: list[tuple[int, int, Label]] = []
    for step in steps:
        if isinstance(step, Label):
            step.word = len(words)
            continue
        start = len(words)
        words.append(int(step.opcode))
        for kind, operand in zip(LAYOUTS[step.opcode], step.operands, strict=True):
            if isinstance(operand, Label):
                jumps.append((len(words), start, operand))
                words.append(0)
            elif isinstance(operand, tuple):
                words.append(len(operand))
                words += [places[one] for one in operand] if kind == "R" else operand
            else:
                words.append(places[operand] if kind in "dro" and operand >= 0 else operand)
    for place, start, label in jumps:
        words[place] = label.word - start
    return tuple(words)
