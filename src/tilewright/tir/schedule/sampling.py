"""Random decisions."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

from tilewright.ir.expr import IntImm
from tilewright.support.errors import ScheduleError
from tilewright.support.span import user_span
from tilewright.tir.schedule.analysis import fail
from tilewright.tir.schedule.block_scope import StmtSRef


def sample_categorical(
    source: random.Random, candidates: Sequence[int], probs: Sequence[float], decision: int | None
) -> int:
    """The number of one of the candidates, drawn with these probabilities if it is not decided."""
    if not candidates or len(candidates) != len(probs):
        raise ScheduleError(
            f"sample_categorical: there are {len(candidates)} candidates and {len(probs)} probabilities; "
            "one probability for each candidate is needed, and at least one candidate",
            span=user_span(),
        )
    if min(probs) < 0 or not math.isfinite(sum(probs)) or sum(probs) <= 0:
        raise ScheduleError(
            f"sample_categorical: {list(probs)} are not probabilities: none may be negative, and not all zero",
            span=user_span(),
        )
    if decision is None:
        return source.choices(range(len(candidates)), weights=list(probs))[0]
    if not 0 <= decision < len(candidates):
        raise ScheduleError(
            f"sample_categorical: the decision {decision} is the number of none of {len(candidates)} candidates",
            span=user_span(),
        )
    return int(decision)


def sample_perfect_tile(
    source: random.Random,
    loop: StmtSRef,
    n: int,
    max_innermost_factor: int,
    decision: Sequence[int] | None,
) -> list[int]:
    """Factors whose product is the extent of a loop, drawn if they are not decided; -1 means no limit for the last."""
    name = "sample_perfect_tile"
    extent = loop.loop.extent
    if not isinstance(extent, IntImm):
        fail(name, loop, f"its extent, {extent}, is not a constant")
    if n < 1:
        fail(name, loop, f"{n} factors are requested")
    if max_innermost_factor == 0 or max_innermost_factor < -1:
        fail(
            name, loop, f"max_innermost_factor is {max_innermost_factor}; it is positive, or -1 for no limit"
        )
    total = int(extent.value)
    if decision is not None:
        factors = [int(one) for one in decision]
        if len(factors) != n or math.prod(factors) != total or min(factors) < 1:
            fail(name, loop, f"the decision {factors} is not {n} factors with the product {total}")
        return factors
    if n == 1:
        return [total]
    limit = total if max_innermost_factor == -1 else max_innermost_factor
    innermost = source.choice([one for one in range(1, min(limit, total) + 1) if total % one == 0])
    factors = [1] * (n - 1)
    for prime in _prime_factors(total // innermost):
        factors[source.randrange(n - 1)] *= prime
    return [*factors, innermost]


def _prime_factors(number: int) -> list[int]:
    found: list[int] = []
    divisor = 2
    while divisor * divisor <= number:
        while number % divisor == 0:
            found.append(divisor)
            number //= divisor
        divisor += 1
    return found + [number] * (number > 1)
