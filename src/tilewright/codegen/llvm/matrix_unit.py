"""x86's matrix unit (AMX): tiles of up to sixteen rows of 64 bytes, in eight registers.

Four accumulator tiles stay in registers over all steps; each step loads two tiles of either operand. The unit is
configured once for all products of the same sizes that a thread computes, and released after them, so that no thread
keeps its state. Linux requires a process to request permission before it uses the unit: the generated code requests it
once, so that a compiled model needs no runtime support.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Final

from tilewright.codegen.llvm.emitter import Emitter
from tilewright.codegen.llvm.writer import escape
from tilewright.ir.expr import Call, IntImm, StringImm
from tilewright.support.errors import CodegenError

_INSTRUCTIONS: Final = {
    "dot_uint8_int8": ("amx-int8", "llvm.x86.tdpbusd"),
    "dot_int8_int8": ("amx-int8", "llvm.x86.tdpbssd"),
    "dot_bfloat16": ("amx-bf16", "llvm.x86.tdpbf16ps"),
}
_WIDEST: Final = 16
_FIRST_LEFT, _FIRST_RIGHT = 4, 6
"""Registers: sums from 0, tiles of the left operand from 4, of the right one from 6."""
_STEPS_ASLEEP: Final = 12
"""Steps without a store of a tile. After about 2,400 cycles without one, which 32 steps take, the next store takes 900
cycles more (measured on a Xeon); a store of any tile every few steps prevents that, and takes no time beside the
products."""

_READY: Final = "tilewright_matrix_unit_ready"
_REGISTERS: Final = '"={rax},{rax},{rdi},{rsi},~{rcx},~{r11},~{memory}"'
_READY_TEXT: Final = f"""\
define internal zeroext i1 @{_READY}() noinline nounwind {{
entry:
  %known = load atomic i8, ptr @{_READY}_state monotonic, align 1
  %asked = icmp ne i8 %known, 0
  br i1 %asked, label %answer, label %ask
ask:
  %refused = call i64 asm sideeffect "syscall", {_REGISTERS}(i64 158, i64 4131, i64 18)
  %granted = icmp eq i64 %refused, 0
  %state = select i1 %granted, i8 1, i8 2
  store atomic i8 %state, ptr @{_READY}_state monotonic, align 1
  br label %answer
answer:
  %found = phi i8 [ %known, %entry ], [ %state, %ask ]
  %ready = icmp eq i8 %found, 1
  ret i1 %ready
}}
"""
"""arch_prctl(ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA), remembered."""


def is_ready(emitter: Emitter, node: Call) -> str:
    """``tir.matrix_unit_ready``: whether the system lets this process use the unit."""
    return _is_ready(emitter)


def _is_ready(emitter: Emitter) -> str:
    text = emitter.module.text
    if _READY not in text.defined:
        text.defined.add(_READY)
        text.add_global(f"@{_READY}_state = internal global i8 0, align 1")
        text.functions.append(_READY_TEXT)
    return emitter.function.value(f"call zeroext i1 @{_READY}()")


def _numbers(node: Call) -> list[int]:
    found = [argument.value for argument in node.args[4:] if isinstance(argument, IntImm)]
    if len(found) != len(node.args) - 4 or not isinstance(node.args[0], StringImm):
        raise CodegenError("tir.matrix_multiply_add takes constants", span=node.span)
    return found


def multiply_add(emitter: Emitter, node: Call) -> str:
    """``tir.matrix_multiply_add``; see the pass that makes it for its arguments."""
    numbers = iter(_numbers(node))
    from_zero = next(numbers)
    columns, _, c_row, a_row, b_word = (next(numbers) for _ in range(5))
    groups = [(next(numbers), next(numbers), next(numbers)) for _ in range(next(numbers))]
    loops = [(next(numbers), next(numbers), next(numbers)) for _ in range(next(numbers))]
    kind = node.args[0]
    assert isinstance(kind, StringImm)
    feature, instruction = _INSTRUCTIONS[kind.value]
    if feature not in emitter.machine.features:
        raise CodegenError(f"{emitter.machine.triple} has no {feature}", span=node.span)
    c, a, b = (emitter.visit(argument) for argument in node.args[1:4])
    widths = _widths(columns)
    function = emitter.function

    def at(pointer: str, offset: int) -> str:
        return function.value(f"getelementptr i8, ptr {pointer}, i64 {offset}") if offset else pointer

    def move(name: str, tile: int, pointer: str, stride: int) -> None:
        emitter.call_llvm(
            f"llvm.x86.{name}", "void", [("i8", str(tile)), ("ptr", pointer), ("i64", str(stride))]
        )

    def each_sum(name: str) -> None:
        for group, (_, _, offset) in enumerate(groups):
            for place in range(len(widths)):
                tile = group * len(widths) + place
                move(name, tile, at(c, offset + place * 4 * _WIDEST), c_row)

    def step(left: str, right: str) -> None:
        """Loads are interleaved with the products, so that they overlap with the multiplications."""
        for group, (_, offset, _) in enumerate(groups):
            move("tileloadd64", _FIRST_LEFT + group, at(left, offset), a_row)
            for place in range(len(widths)):
                if group == 0:
                    move("tileloadd64", _FIRST_RIGHT + place, at(right, place * 4 * _WIDEST), b_word)
                tiles = (group * len(widths) + place, _FIRST_LEFT + group, _FIRST_RIGHT + place)
                emitter.call_llvm(instruction, "void", [("i8", str(tile)) for tile in tiles])

    if from_zero:
        for tile in range(len(groups) * len(widths)):
            emitter.call_llvm("llvm.x86.tilezero", "void", [("i8", str(tile))])
    else:
        each_sum("tileloadd64")
    scratch = function.alloca(f"[{_WIDEST * 4 * _WIDEST} x i8]", 64)
    unused = _FIRST_RIGHT + len(widths) - 1

    def keep_awake() -> None:
        move("tilestored64", unused, scratch, 4 * _WIDEST)

    _nest(emitter, _paused(loops), a, b, step, keep_awake)
    each_sum("tilestored64")
    return "0"


def _paused(loops: list[tuple[int, int, int]]) -> list[tuple[tuple[int, int, int], bool]]:
    """Each loop, and whether a tile is stored in each of its iterations: in the outermost loop of at most
    ``_STEPS_ASLEEP`` steps an iteration."""
    steps = [prod(count for count, _, _ in loops[number:]) for number in range(len(loops) + 1)]
    place = next((number for number, inner in enumerate(steps[1:]) if inner <= _STEPS_ASLEEP), None)
    return [(loop, number == place and steps[0] > _STEPS_ASLEEP) for number, loop in enumerate(loops)]


def configure(emitter: Emitter, sizes: Sequence[int]) -> None:
    """Configure the unit for tiles of so many columns, words, and rows of each group."""
    columns, words, *rows = sizes
    widths = _widths(columns)
    configuration = _configuration(emitter, rows, widths, words)
    _where_ready(emitter, "llvm.x86.ldtilecfg", [("ptr", configuration)])


def release(emitter: Emitter) -> None:
    """End the use of the unit on this thread."""
    _where_ready(emitter, "llvm.x86.tilerelease", [])


def _where_ready(emitter: Emitter, name: str, arguments: list[tuple[str, str]]) -> None:
    """An instruction that only exists where the system lets the process use the unit."""
    function = emitter.function
    ready, after = function.new_label("ready"), function.new_label("after")
    function.branch_if(_is_ready(emitter), ready, after)
    before = function.known
    function.begin(ready, before)
    emitter.call_llvm(name, "void", arguments)
    function.branch(after)
    function.begin(after, before)


def _widths(columns: int) -> list[int]:
    """The columns of each tile."""
    return [min(_WIDEST, columns - start) for start in range(0, columns, _WIDEST)]


def _configuration(emitter: Emitter, rows: Sequence[int], widths: Sequence[int], words: int) -> str:
    """The address of a description of all tiles: palette, bytes of a row, rows."""
    bytes_of_row, row_counts = [0] * 16, [0] * 16
    for place, width in enumerate(widths):
        bytes_of_row[_FIRST_RIGHT + place], row_counts[_FIRST_RIGHT + place] = 4 * width, words
    for group, count in enumerate(rows):
        bytes_of_row[_FIRST_LEFT + group], row_counts[_FIRST_LEFT + group] = 4 * words, count
        for place, width in enumerate(widths):
            tile = group * len(widths) + place
            bytes_of_row[tile], row_counts[tile] = 4 * width, count
    data = bytes([1, *[0] * 15])
    data += b"".join(number.to_bytes(2, "little") for number in bytes_of_row) + bytes(row_counts)
    name = emitter.module.text.unique("tiles")
    emitter.module.text.add_global(
        f'@{name} = private unnamed_addr constant [64 x i8] c"{escape(data)}", align 64'
    )
    return f"@{name}"


def _nest(
    emitter: Emitter,
    loops: Sequence[tuple[tuple[int, int, int], bool]],
    left: str,
    right: str,
    body: Callable[[str, str], None],
    pause: Callable[[], None],
) -> None:
    """Loops with constant counts that move two pointers, around a body; ``pause`` is in the loops that are marked."""
    if not loops:
        body(left, right)
        return
    ((count, left_step, right_step), has_pause), *inner = loops
    if count == 1:
        _nest(emitter, inner, left, right, body, pause)
        return
    function = emitter.function
    before, head, done = function.block, function.new_label("steps"), function.new_label("stepped")
    latch = function.new_label("step")
    names = [function.name_value() for _ in range(3)]
    function.branch(head)
    function.begin(head)
    index = function.value(f"phi i64 [ 0, %{before} ], [ {names[0]}, %{latch} ]")
    here = [
        function.value(f"phi ptr [ {pointer}, %{before} ], [ {name}, %{latch} ]")
        for pointer, name in zip((left, right), names[1:], strict=True)
    ]
    _nest(emitter, inner, here[0], here[1], body, pause)
    if has_pause:
        pause()
    function.branch(latch)
    function.begin(latch)
    function.effect(f"{names[0]} = add nuw nsw i64 {index}, 1")
    for name, pointer, distance in zip(names[1:], here, (left_step, right_step), strict=True):
        function.effect(f"{name} = getelementptr i8, ptr {pointer}, i64 {distance}")
    more = function.value(f"icmp ult i64 {names[0]}, {count}")
    function.branch_if(more, head, done)
    function.begin(done)


MATRIX_CALLS: dict[str, Callable[[Emitter, Call], str]] = {
    "tir.matrix_unit_ready": is_ready,
    "tir.matrix_multiply_add": multiply_add,
}
