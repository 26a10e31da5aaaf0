"""The Threefry-4x64 function of Salmon, Moraes, Dror and Shaw (Random123), twenty rounds, as expressions.

It turns four words of a counter into four random ones under a key of four words.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.ir import operators
from tilewright.ir.expr import PrimExpr
from tilewright.tir.ir_builder import IRBuilder

_ROTATIONS = ((14, 16), (52, 57), (23, 40), (5, 37), (25, 33), (46, 12), (58, 22), (32, 32))
_PARITY = 0x1BD11BDAA9FC1A22
_ROUNDS = 20


def word(value: int) -> PrimExpr:
    """A constant word."""
    return operators.const(value, "uint64")


def _rotate(value: PrimExpr, bits: int) -> PrimExpr:
    return operators.bitwise_or(
        operators.left_shift(value, word(bits)), operators.right_shift(value, word(64 - bits))
    )


def threefry(builder: IRBuilder, key: Sequence[PrimExpr], counter: Sequence[PrimExpr]) -> list[PrimExpr]:
    """Four random words; what is computed on the way is bound by the builder."""
    parity = word(_PARITY)
    for part in key:
        parity = operators.bitwise_xor(parity, part)
    schedule = [*key, builder.let("parity", parity)]
    words: list[PrimExpr] = [
        builder.let("word", counter[position] + schedule[position]) for position in range(4)
    ]
    for turn in range(_ROUNDS):
        # Odd turns mix each word with the other neighbour.
        pairs = ((0, 1), (2, 3)) if turn % 2 == 0 else ((0, 3), (2, 1))
        for (one, other), bits in zip(pairs, _ROTATIONS[turn % 8], strict=True):
            words[one] = builder.let("word", words[one] + words[other])
            words[other] = builder.let("word", operators.bitwise_xor(_rotate(words[other], bits), words[one]))
        if turn % 4 == 3:
            injection = turn // 4 + 1
            for position in range(4):
                words[position] = builder.let("word", words[position] + schedule[(position + injection) % 5])
            words[3] = builder.let("word", words[3] + word(injection))
    return words
