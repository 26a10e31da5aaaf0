"""Proposals for words that are not known: "did you mean"."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def closest(word: str, known: Iterable[str]) -> str | None:
    """The known word most like ``word``: in any case, or as the beginning of a longer one; None where none is close."""
    words = list(known)
    by_form: dict[str, str] = {}
    for one in words:
        by_form.setdefault(one.lower(), one)
    near = difflib.get_close_matches(word.lower(), list(by_form), n=1, cutoff=0.6)
    if not near and len(word) > 3:
        by_form = {}
        for one in words:
            by_form.setdefault(one[: len(word) + 1].lower(), one)
        near = difflib.get_close_matches(word.lower(), list(by_form), n=1, cutoff=0.8)
    return by_form[near[0]] if near else None


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A clause that proposes the known word most like ``word``, or nothing."""
    found = closest(word, known)
    return "" if found is None else f" (did you mean {found!r}?)"
