"""Random numbers by Threefry, from generators that are data: the same generator gives the same numbers everywhere.

A generator is ten words (uint64): four of key, three of path, a counter, the bit of the path that is next (as a mask)
and the number of the path word that this bit is in. Splitting appends a bit to the path: 0 on the left, 1 on the right.
Numbers come from the path, with its next bit set as an end mark, and a running counter; the mark keeps a generator
apart from those that are split off it. When the path or the counter is full, the generator gets a new key, drawn with a
counter that is used for nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright.ir import operators
from tilewright.ir.expr import ExprLike, PrimExpr, Select
from tilewright.support.dtype import DataType
from tilewright.support.errors import ExpressionError
from tilewright.te.broadcast_shape import as_extents, shape_text
from tilewright.te.tensor import Tensor
from tilewright.tir.ir_builder import BufferVar, IRBuilder
from tilewright.tir.op import all as all_of
from tilewright.topi.arguments import product
from tilewright.topi.computed import computed
from tilewright.topi.kernel import loop_kernel
from tilewright.topi.random.threefry import threefry, word
from tilewright.topi.tag import INJECTIVE

_WORDS = 10
_PATH, _COUNTER, _MASK, _PATH_WORD = 4, 7, 8, 9
_PATH_WORDS = 3
_FIRST_BIT = 1 << 63
_RESERVED = 2**64 - 1
"""The counter that new keys are drawn with."""


def _check(name: str, gen: Tensor) -> None:
    if gen.dtype != "uint64" or len(gen.shape) != 1 or getattr(gen.shape[0], "value", _WORDS) != _WORDS:
        raise ExpressionError(
            f"{name} takes a generator, ten words of uint64 as threefry_key makes them, not {gen.dtype} of shape "
            f"{shape_text(gen.shape)}"
        )


def _block(state: BufferVar, counter: PrimExpr) -> tuple[list[PrimExpr], list[PrimExpr]]:
    """The key and the counter words of a state: its path with the end mark, and a number."""
    key: list[PrimExpr] = [state[position] for position in range(_PATH)]
    marked = [
        operators.bitwise_or(
            state[_PATH + position],
            Select(operators.equal(state[_PATH_WORD], word(position)), state[_MASK], word(0)),
        )
        for position in range(_PATH_WORDS)
    ]
    return key, [*marked, counter]


def _new_key(builder: IRBuilder, state: BufferVar) -> None:
    """Give a state a new key, an empty path and a counter of zero."""
    key, counter = _block(state, word(_RESERVED))
    words = threefry(builder, key, counter)
    for position, value in enumerate(words):
        state[position] = value
    for position in range(_PATH, _COUNTER + 1):
        state[position] = word(0)
    state[_MASK] = word(_FIRST_BIT)
    state[_PATH_WORD] = word(0)


def _state(builder: IRBuilder, gen: BufferVar) -> BufferVar:
    """A copy of a generator to work on."""
    state = builder.allocate("uint64", _WORDS, name="state", scope="local")
    for position in range(_WORDS):
        state[position] = gen[position]
    return state


def threefry_generate(gen: Tensor, out_shape: ExprLike | Sequence[ExprLike]) -> list[Tensor]:
    """A generator for further numbers, and a tensor of random words (uint64)."""
    _check("threefry_generate", gen)
    shape = as_extents(out_shape)
    size = product(shape)

    def body(builder: IRBuilder, ins: Sequence[BufferVar], outs: Sequence[BufferVar]) -> None:
        state = _state(builder, ins[0])
        blocks = builder.let("blocks", operators.floordiv(size + 3, 4))
        used = operators.cast("uint64", blocks)
        with builder.if_scope(state[_COUNTER] >= word(_RESERVED) - used):
            _new_key(builder, state)
        with builder.for_range(0, blocks, name="block") as block:
            key, counter = _block(state, state[_COUNTER] + operators.cast("uint64", block))
            for position, value in enumerate(threefry(builder, key, counter)):
                place = block * 4 + position
                with builder.if_scope(place < size):
                    outs[1][place] = value
        for position in range(_WORDS):
            outs[0][position] = state[position] + used if position == _COUNTER else state[position]

    return loop_kernel("threefry_generate", [gen], [(gen.shape, "uint64"), (shape, "uint64")], body)


def threefry_split(gen: Tensor) -> list[Tensor]:
    """Two generators, whose numbers have nothing to do with each other or with those of the first one."""
    _check("threefry_split", gen)

    def body(builder: IRBuilder, ins: Sequence[BufferVar], outs: Sequence[BufferVar]) -> None:
        state = _state(builder, ins[0])
        # The last bit of the path can only hold the end mark.
        full = all_of(
            operators.equal(state[_PATH_WORD], word(_PATH_WORDS - 1)), operators.equal(state[_MASK], word(1))
        )
        with builder.if_scope(full):
            _new_key(builder, state)
        end_of_word = builder.let("end_of_word", operators.equal(state[_MASK], word(1)))
        for side, output in enumerate(outs):
            for position in range(_PATH):
                output[position] = state[position]
            for position in range(_PATH_WORDS):
                here = operators.equal(state[_PATH_WORD], word(position))
                bit = Select(here, state[_MASK], word(0)) if side == 1 else word(0)
                output[_PATH + position] = operators.bitwise_or(state[_PATH + position], bit)
            output[_COUNTER] = word(0)
            output[_MASK] = Select(
                end_of_word, word(_FIRST_BIT), operators.right_shift(state[_MASK], word(1))
            )
            output[_PATH_WORD] = state[_PATH_WORD] + Select(end_of_word, word(1), word(0))

    return loop_kernel("threefry_split", [gen], [(gen.shape, "uint64"), (gen.shape, "uint64")], body)


_FRACTION_BITS = {"float16": 11, "float32": 24, "float64": 53}


def uniform(
    gen: Tensor, low: Any, high: Any, out_shape: ExprLike | Sequence[ExprLike], out_dtype: str
) -> tuple[Tensor, Tensor]:
    """A generator for further numbers, and a tensor of numbers between ``low`` and ``high``, all equally likely."""
    if out_dtype not in _FRACTION_BITS:
        raise ExpressionError(f"uniform gives {', '.join(_FRACTION_BITS)}, not {out_dtype}")
    bits = _FRACTION_BITS[out_dtype]
    new_gen, words = threefry_generate(gen, out_shape)
    kind = DataType(out_dtype)

    def scalar(value: Any) -> PrimExpr:
        element = value(*[0] * len(value.shape)) if isinstance(value, Tensor) else value
        return operators.cast(kind, element)

    def element(*i: PrimExpr) -> PrimExpr:
        # As many bits as the type has in its fraction: every value in [0, 1) is exact.
        whole = operators.cast("int64", operators.right_shift(words(*i), word(64 - bits)))
        fraction = operators.cast(kind, whole) * operators.const(2.0**-bits, kind)
        return scalar(low) + fraction * (scalar(high) - scalar(low))

    return new_gen, computed(words.shape, element, name="uniform", tag=INJECTIVE)
