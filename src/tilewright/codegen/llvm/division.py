"""Integer division without traps.

x86 raises an exception for division by zero and for the smallest number divided by -1, which would kill the process. A
divisor that is not a known constant is therefore checked: zero counts as one, and division by -1 is a negation, which
wraps.
"""

from __future__ import annotations

from tilewright.codegen.llvm.emitter import Emitter
from tilewright.ir.expr import Broadcast, IntImm, PrimExpr
from tilewright.support.dtype import BOOL


def constant_of(expr: PrimExpr) -> int | None:
    """The value of a constant, or of a broadcast of one."""
    inner = expr.value if isinstance(expr, Broadcast) else expr
    return inner.value if isinstance(inner, IntImm) else None


def truncated(emitter: Emitter, a: PrimExpr, b: PrimExpr) -> tuple[str, str]:
    """Quotient and remainder, rounded towards zero."""
    function, dtype = emitter.function, a.dtype
    kind = emitter.types.register(dtype)
    left, right = emitter.visit(a), emitter.visit(b)
    letter = "s" if dtype.is_int else "u"
    divisor, by_minus_one = right, ""
    constant = constant_of(b)
    bools = emitter.types.register(BOOL.with_lanes(dtype.lanes))
    if constant is None or constant == 0 or (constant == -1 and dtype.is_int):
        zero, one = emitter.constant(dtype, 0), emitter.constant(dtype, 1)
        unsafe = function.value(f"icmp eq {kind} {right}, {zero}")
        if dtype.is_int:
            by_minus_one = function.value(f"icmp eq {kind} {right}, {emitter.constant(dtype, -1)}")
            unsafe = function.value(f"or {bools} {unsafe}, {by_minus_one}")
        divisor = function.value(f"select {bools} {unsafe}, {kind} {one}, {kind} {right}")
    quotient = function.value(f"{letter}div {kind} {left}, {divisor}")
    remainder = function.value(f"{letter}rem {kind} {left}, {divisor}")
    if by_minus_one:
        negated = function.value(f"sub {kind} {emitter.constant(dtype, 0)}, {left}")
        quotient = function.value(f"select {bools} {by_minus_one}, {kind} {negated}, {kind} {quotient}")
    return quotient, remainder


def floored(emitter: Emitter, a: PrimExpr, b: PrimExpr) -> tuple[str, str]:
    """Quotient and remainder, rounded down."""
    function, dtype = emitter.function, a.dtype
    if dtype.is_uint:
        return truncated(emitter, a, b)
    kind = emitter.types.register(dtype)
    constant = constant_of(b)
    if constant is not None and constant > 0 and constant & (constant - 1) == 0:
        left = emitter.visit(a)
        shift = emitter.constant(dtype, constant.bit_length() - 1)
        rest = emitter.constant(dtype, constant - 1)
        return function.value(f"ashr {kind} {left}, {shift}"), function.value(f"and {kind} {left}, {rest}")
    quotient, remainder = truncated(emitter, a, b)
    bools, zero = emitter.types.register(BOOL.with_lanes(dtype.lanes)), emitter.constant(dtype, 0)
    divisor = emitter.visit(b)
    # Where the remainder's sign is not the divisor's, truncation rounded up.
    if constant is not None and constant > 0:
        wrong = function.value(f"icmp slt {kind} {remainder}, {zero}")
    else:
        differs = function.value(f"xor {kind} {remainder}, {divisor}")
        wrong = function.value(f"icmp slt {kind} {differs}, {zero}")
        nonzero = function.value(f"icmp ne {kind} {remainder}, {zero}")
        wrong = function.value(f"and {bools} {wrong}, {nonzero}")
    lower = function.value(f"sub {kind} {quotient}, {emitter.constant(dtype, 1)}")
    higher = function.value(f"add {kind} {remainder}, {divisor}")
    return (
        function.value(f"select {bools} {wrong}, {kind} {lower}, {kind} {quotient}"),
        function.value(f"select {bools} {wrong}, {kind} {higher}, {kind} {remainder}"),
    )
