"""Merging terms of linear forms that are splits of one expression, ``(x % upper) // lower``."""

from __future__ import annotations

from typing import Any

from tilewright.arith.pool import Expr

Split = tuple[Expr, int, int | None, type]
"""``(index, lower, upper, FloorDiv or Div)``."""

Terms = dict[Any, int]
"""From an expression or a ``Split`` to its coefficient, which is not zero; in order of appearance."""


def join_splits(terms: Terms) -> Terms:
    """The terms with splits of one expression joined where they fit."""
    groups: dict[Any, list[Any]] = {}
    for key in terms:
        groups.setdefault(key[0] if type(key) is tuple else key, []).append(key)
    if len(groups) == len(terms):
        return terms
    result = dict(terms)
    for index, keys in groups.items():
        if len(keys) > 1:
            _join_group(result, index, keys)
    return result


def _join_group(terms: Terms, index: Expr, keys: list[Any]) -> None:
    """Join the splits of one expression, in place, as long as two of them fit."""
    kind = next(key[3] for key in keys if type(key) is tuple)
    parts = [(key[1], key[2], terms[key]) if type(key) is tuple else (1, None, terms[key]) for key in keys]
    if any(type(key) is tuple and key[3] is not kind for key in keys):
        return
    changed = False
    while (pair := _fitting(parts)) is not None:
        first, second, joined = pair
        parts[min(first, second)] = joined
        del parts[max(first, second)]
        changed = True
    if not changed:
        return
    position = list(terms)
    rebuilt: Terms = {}
    for key in position:
        if key in keys:
            if key is keys[0]:
                for lower, upper, factor in parts:
                    made = index if lower == 1 and upper is None else (index, lower, upper, kind)
                    rebuilt[made] = rebuilt.get(made, 0) + factor
        else:
            rebuilt[key] = terms[key]
    terms.clear()
    terms.update({key: factor for key, factor in rebuilt.items() if factor})


Part = tuple[int, int | None, int]


def _fitting(parts: list[Part]) -> tuple[int, int, Part] | None:
    """Two parts ``(lower, upper, coefficient)`` of one expression whose sum is one part, and that part."""
    for i, (lower_a, upper_a, scale_a) in enumerate(parts):
        for j, (lower_b, upper_b, scale_b) in enumerate(parts):
            if i == j:
                continue
            # (x % b) // a  and  (x % c) // b  are neighbours.
            if upper_a == lower_b and scale_a * (lower_b // lower_a) == scale_b:
                return i, j, (lower_a, upper_b, scale_a)
            # x // a - (x // b) * (b / a): the upper part taken away.
            if upper_a == upper_b and lower_b % lower_a == 0 and scale_b == -scale_a * (lower_b // lower_a):
                return i, j, (lower_a, lower_b, scale_a)
            # x // a - (x % b) // a: the lower part taken away.
            if lower_a == lower_b and scale_a == -scale_b and upper_b is not None and upper_a != upper_b:
                if upper_a is None or upper_a % upper_b == 0:
                    return i, j, (upper_b, upper_a, scale_a * (upper_b // lower_a))
    return None
