"""Checks whether the clauses of a match cover every value."""

from __future__ import annotations

from enum import Enum, auto

from tilewright.ir.module import IRModule
from tilewright.relay.adt import (
    Clause,
    Match,
    Pattern,
    PatternConstructor,
    PatternTuple,
    PatternWildcard,
)
from tilewright.support.errors import TilewrightError


class _Fit(Enum):
    """How the values of a case stand to a clause's pattern."""

    ALL = auto()
    NONE = auto()
    SOME = auto()


def _fit(case: Pattern, pattern: Pattern) -> _Fit:
    """Which of the case's values a clause's pattern takes. A case is made of wildcards, constructors and tuples."""
    if not isinstance(pattern, (PatternConstructor, PatternTuple)):
        return _Fit.ALL
    if not isinstance(case, (PatternConstructor, PatternTuple)):
        return _Fit.SOME
    if isinstance(pattern, PatternConstructor) and isinstance(case, PatternConstructor):
        if case.constructor is not pattern.constructor:
            return _Fit.NONE
    result = _Fit.ALL
    for inner_case, inner_pattern in zip(case.patterns, pattern.patterns, strict=True):
        found = _fit(inner_case, inner_pattern)
        if found is _Fit.NONE:
            return _Fit.NONE
        if found is _Fit.SOME:
            result = _Fit.SOME
    return result


def _expand(case: Pattern, pattern: Pattern, mod: IRModule | None) -> list[Pattern]:
    """The case split up where the clause's pattern tells values apart that the case does not."""
    if isinstance(pattern, PatternTuple):
        if not isinstance(case, PatternTuple):
            return [PatternTuple([PatternWildcard() for _ in pattern.patterns])]
        return [PatternTuple(parts) for parts in _expand_parts(case.patterns, pattern.patterns, mod)]
    assert isinstance(pattern, PatternConstructor)
    if isinstance(case, PatternConstructor):
        constructor = case.constructor
        parts_of = _expand_parts(case.patterns, pattern.patterns, mod)
        return [PatternConstructor(constructor, parts) for parts in parts_of]
    owner = pattern.constructor.belong_to
    if mod is None:
        raise TilewrightError(
            f"the module is needed to know the constructors of {owner.name_hint}: unmatched_cases(match, mod)"
        )
    return [
        PatternConstructor(constructor, [PatternWildcard() for _ in constructor.inputs])
        for constructor in mod[owner].constructors
    ]


def _expand_parts(
    cases: tuple[Pattern, ...], patterns: tuple[Pattern, ...], mod: IRModule | None
) -> list[tuple[Pattern, ...]]:
    """The first part that the pattern does not take as a whole is split up, the others stay."""
    for position, (case, pattern) in enumerate(zip(cases, patterns, strict=True)):
        if _fit(case, pattern) is _Fit.SOME:
            return [(*cases[:position], made, *cases[position + 1 :]) for made in _expand(case, pattern, mod)]
    return [cases]


def unmatched_cases(match: Match, mod: IRModule | None = None) -> list[Pattern]:
    """Patterns of the values that no clause takes; none if the match is complete."""
    found: list[Pattern] = []
    pending: list[tuple[Pattern, tuple[Clause, ...]]] = [(PatternWildcard(), match.clauses)]
    while pending:
        case, clauses = pending.pop()
        if not clauses:
            found.append(case)
            continue
        fit = _fit(case, clauses[0].lhs)
        if fit is _Fit.NONE:
            pending.append((case, clauses[1:]))
        elif fit is _Fit.SOME:
            pending.extend((made, clauses) for made in reversed(_expand(case, clauses[0].lhs, mod)))
    return found
