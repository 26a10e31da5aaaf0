"""Names in source text: one per variable, valid in the language and unique within a function."""

from __future__ import annotations

import re
from collections.abc import Iterable

from tilewright.ir.expr import Var
from tilewright.support.errors import CodegenError

_WORDS = """
auto bool break case char const continue default do double else enum extern false float for goto if inline int long
register restrict return short signed sizeof static struct switch true typedef union unsigned void volatile while
alignas alignof asm catch class constexpr delete explicit export friend half kernel main mutable namespace new
operator private protected public template this throw try typename using virtual wchar_t
NULL INFINITY NAN y0 y1 yn j0 j1 jn gamma
"""

C_KEYWORDS = frozenset(_WORDS.split())
"""Words that no variable may have in C, C++ or the languages made from them, and names that headers define."""


class Names:
    """The names of one function."""

    def __init__(self, reserved: Iterable[str] = C_KEYWORDS) -> None:
        self._taken: dict[str, int] = dict.fromkeys(reserved, 0)
        self._of: dict[Var, str] = {}

    def fresh(self, hint: str) -> str:
        """A name like the hint that nothing has yet."""
        base = identifier(hint)
        while base in self._taken:
            self._taken[base] += 1
            numbered = f"{base}_{self._taken[base]}"
            if numbered not in self._taken:
                base = numbered
        self._taken[base] = 0
        return base

    def define(self, variable: Var) -> str:
        """A new name for a variable; defined again, it gets another one."""
        name = self._of[variable] = self.fresh(variable.name)
        return name

    def alias(self, variable: Var, text: str) -> None:
        """From here on the variable stands for an expression of the language, such as a thread index."""
        self._of[variable] = text

    def of(self, variable: Var) -> str:
        """The name of a variable that was defined."""
        found = self._of.get(variable)
        if found is None:
            raise CodegenError(f"variable {variable.name} is used but never defined")
        return found


def identifier(text: str) -> str:
    """The text with everything that an identifier may not have replaced."""
    cleaned = re.sub(r"\W", "_", text, flags=re.ASCII)
    return cleaned if cleaned and not cleaned[0].isdigit() else f"v_{cleaned}"
