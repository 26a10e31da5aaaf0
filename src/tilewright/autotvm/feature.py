"""Features of lowered schedules, for cost models.

``get_itervar_feature`` has a row for each loop: its length, depth, iterations and kind, and for each access of memory
how far one iteration moves, how many elements the loop touches, and how often each. ``get_buffer_curve_sample_flatten``
samples how these grow with each other, whatever the loops are: such features compare between different templates.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from math import copysign, log2
from typing import Any

import numpy as np

from tilewright.autotvm.touched import KINDS, Access, Loop, Touched
from tilewright.compile.lower import schedule_to_module

Feature = list[list[list[Any]]]
_CURVES = 4


def ana_lower(sch: Any, args: Sequence[Any], binds: Any = None, simple_mode: bool = True) -> Any:
    """The loops that features are extracted from."""
    return schedule_to_module(sch, args, "main", binds)["main"].body


def get_itervar_feature(sch: Any, args: Sequence[Any], take_log: bool = False) -> Feature:
    """For each loop, pairs of a name and numbers: ``_itervar_`` its variable, ``_attr_`` (length, depth, iterations
    of this loop, of the innermost loop for one run of this one, kind), ``_arith_`` (additions, multiplications,
    divisions), and for each access (stride, modulus, elements, reuse, and both of the threads)."""
    touched = Touched(ana_lower(sch, args))
    return [_row(touched, loop, take_log) for loop in touched.loops]


def _row(touched: Touched, loop: Loop, take_log: bool) -> list[list[Any]]:
    kinds = [int(loop.kind == kind) for kind in KINDS]
    sizes: list[float] = [loop.extent, len(loop.around) + 1, loop.topdown, loop.bottomup]
    if take_log:
        sizes = [_logarithm(size) for size in sizes]
    operations: list[float] = [_logarithm(count) if take_log else count for count in loop.operations]
    row: list[list[Any]] = [["_itervar_", loop.var], ["_attr_", *sizes, *kinds], ["_arith_", *operations]]
    for access in touched.accesses:
        numbers = _touch(access, loop)
        row.append([access.name, *([_logarithm(number) for number in numbers] if take_log else numbers)])
    return row


def _touch(access: Access, loop: Loop) -> list[float]:
    if not any(one is loop for one in access.loops):
        return [0, -1, 0, 0, 0, 0]
    position = next(number for number, one in enumerate(access.loops) if one is loop)
    within = access.loops[position:]
    count = access.count(within)
    threads = [one for one in within if one.kind.startswith("threadIdx")]
    thread_count = access.count(threads) if threads else 0
    numbers: list[float] = [access.stride(loop), access.modulus(loop), count, _ratio(loop.bottomup, count)]
    together = 1
    for one in threads:
        together *= one.extent
    return [*numbers, thread_count, _ratio(together, thread_count) if threads else 0]


def _ratio(one: int, other: int) -> float:
    found = one / max(other, 1)
    return int(found) if found == int(found) else found


def _logarithm(number: float) -> float:
    return copysign(log2(abs(number) + 1), number)


def flatten_itervar_feature(fea: Feature) -> np.ndarray[Any, Any]:
    """All numbers in a row."""
    found = [number for row in fea for pair in row[1:] for number in pair[1:]]
    return np.array(found, dtype=np.float32)


def get_itervar_feature_flatten(sch: Any, args: Sequence[Any], take_log: bool = True) -> np.ndarray[Any, Any]:
    """The features of all loops in a row."""
    return flatten_itervar_feature(get_itervar_feature(sch, args, take_log))


def get_flatten_name(fea: Feature) -> list[str]:
    """A name for each number of the flattened features."""
    parts = {
        "_attr_": ["length", "nest_level", "topdown", "bottomup", *KINDS],
        "_arith_": ["add", "mul", "div"],
        "buf_touch": ["stride", "mod", "count", "reuse", "T_count", "T_reuse"],
    }
    names = []
    for row in fea:
        variable = row[0][1]
        for pair in row[1:]:
            key = pair[0] if pair[0] in parts else "buf_touch"
            names += [f"{variable}.{pair[0]}.{part}" for part in parts[key][: len(pair) - 1]]
    return names


def get_buffer_curve_sample_flatten(sch: Any, args: Sequence[Any], sample_n: int = 30) -> list[float]:
    """For each buffer four curves (reuse by elements and the other way around, iterations by elements and the other way
    around), each at ``sample_n`` powers of two: the logarithm of the place, and of the value there."""
    touched = Touched(ana_lower(sch, args))
    points: dict[str, list[tuple[float, float, float]]] = {}
    for access in touched.accesses:
        for position, loop in enumerate(access.loops):
            count = access.count(access.loops[position:])
            triple = (float(count), loop.bottomup / max(count, 1), float(loop.topdown))
            points.setdefault(access.buffer, []).append(triple)
    found: list[float] = []
    for triples in points.values():
        counts, reuses, iterations = zip(*triples, strict=True)
        for xs, ys in ((counts, reuses), (reuses, counts), (counts, iterations), (iterations, counts)):
            found += _sampled(xs, ys, sample_n)
    return found


def _sampled(xs: Sequence[float], ys: Sequence[float], count: int) -> list[float]:
    pairs = sorted(zip(xs, ys, strict=True))
    places = [place for place, _ in pairs]
    highest = np.maximum.accumulate([value for _, value in pairs])
    found: list[float] = []
    for exponent in range(count):
        position = bisect_right(places, 2.0**exponent) - 1
        value = float(highest[position]) if position >= 0 else 0.0
        found += [float(exponent), _logarithm(value)]
    return found
