"""Registers of functions: what is of no use goes, what is used for the last time ends, lives that do not meet share."""

from __future__ import annotations

from tilewright.relay.backend.vm.assembler import Assembler, Label
from tilewright.runtime.vm_program import Opcode, VMFunction


def listing(code: Assembler) -> tuple[list[tuple[str, tuple[object, ...]]], int]:
    """The instructions of a function, and the number of its registers."""
    words, registers = code.finish()
    function = VMFunction("f", (), registers, words)
    return [(one.opcode.name, one.operands) for _, one in function.instructions()], registers


def test_values_that_nobody_reads_are_not_made() -> None:
    """An instruction that only makes a value goes where the value is not used, and so do those that it alone used."""
    code = Assembler(1)
    unused = code.value(Opcode.ALLOC_DATA, 0, (0,))
    code.value(Opcode.GET_FIELD, unused, 0)
    code.emit(Opcode.RET, 0)
    assert listing(code) == ([("RET", (0,))], 1)


def test_effects_stay() -> None:
    """Calls are made though nobody reads their result, which ends at once."""
    code = Assembler(1)
    code.value(Opcode.INVOKE_CLOSURE, 0, ())
    code.emit(Opcode.RET, 0)
    assert [name for name, _ in listing(code)[0]] == ["INVOKE_CLOSURE", "RET"]
    code = Assembler(1)
    code.value(Opcode.INVOKE_CLOSURE, 0, ())
    made = code.value(Opcode.ALLOC_DATA, 0, (0,))
    code.emit(Opcode.RET, made)
    assert listing(code)[0][:2] == [("INVOKE_CLOSURE", (1, 0, ())), ("KILL", ((1,),))]


def test_a_value_ends_after_its_last_use() -> None:
    """And its register is used again."""
    code = Assembler(1)
    value = 0
    for _ in range(20):
        value = code.value(Opcode.ALLOC_DATA, 0, (value,))
    code.emit(Opcode.RET, value)
    made, registers = listing(code)
    assert registers == 2
    assert [name for name, _ in made[:4]] == ["ALLOC_DATA", "KILL", "ALLOC_DATA", "KILL"]


def test_nothing_ends_before_a_return() -> None:
    """A frame ends all its registers, and a call before a return takes the frame's place."""
    code = Assembler(2)
    made = code.value(Opcode.INVOKE, 0, (0, 1))
    code.emit(Opcode.RET, made)
    assert [name for name, _ in listing(code)[0]] == ["INVOKE", "RET"]


def test_parameters_that_nobody_reads_end_at_once() -> None:
    """Their memory may be large."""
    code = Assembler(3)
    code.emit(Opcode.RET, code.value(Opcode.INVOKE_CLOSURE, 1, ()))
    assert listing(code)[0][0] == ("KILL", ((0, 2),))


def test_what_only_one_branch_reads_ends_in_the_other() -> None:
    """Parameter 1 is read in the first branch alone, parameter 2 in the second."""
    code = Assembler(3)
    yes, no = Label(), Label()
    code.emit(Opcode.IF, 0, code.value(Opcode.LOAD_CONSTI, 1), yes, no)
    code.place(yes)
    code.emit(Opcode.RET, code.value(Opcode.ALLOC_DATA, 0, (1,)))
    code.place(no)
    code.emit(Opcode.RET, code.value(Opcode.ALLOC_DATA, 0, (2,)))
    made, _ = listing(code)
    ended = [operands[0] for name, operands in made if name == "KILL"]
    assert ended == [(0, 2), (0, 1)]


def test_a_result_of_two_branches_has_one_register() -> None:
    """Jumps go to the end of both; numbers are not ended."""
    code = Assembler(1)
    yes, no, end, result = Label(), Label(), Label(), code.register()
    code.emit(Opcode.IF, 0, code.value(Opcode.LOAD_CONSTI, 1), yes, no)
    for label, number in ((yes, 5), (no, 6)):
        code.place(label)
        code.emit(Opcode.MOVE, result, code.value(Opcode.LOAD_CONSTI, number))
        code.emit(Opcode.GOTO, end)
    code.place(end)
    code.emit(Opcode.RET, result)
    words, _ = code.finish()
    function = VMFunction("f", (), 4, words)
    made = list(function.instructions())
    starts = {at for at, _ in made}
    targets = {at + jump for at, one in made for jump in _jumps(one.opcode, one.operands)}
    assert targets <= starts and len(targets) == 3
    moves = [one.operands[0] for _, one in made if one.opcode is Opcode.MOVE]
    assert moves[0] == moves[1] == made[-1][1].operands[0]


def _jumps(opcode: Opcode, operands: tuple[object, ...]) -> list[int]:
    found = operands[2:] if opcode is Opcode.IF else operands if opcode is Opcode.GOTO else ()
    return [one for one in found if isinstance(one, int)]
