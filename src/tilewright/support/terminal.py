"""Programs on a terminal, with colours where there is one."""

from __future__ import annotations

import sys
from typing import Any, Final

from tilewright.support.errors import TilewrightError
from tilewright.support.html import TOKEN

STYLES: Final = {
    "light": {"k": 35, "n": 34, "s": 32, "d": 31, "c": 90},
    "dark": {"k": 95, "n": 94, "s": 92, "d": 93, "c": 37},
    "ansi": {"k": 35, "n": 36, "s": 32, "d": 33, "c": 90},
}
"""ANSI's numbers of colours for keywords, names, texts, numbers and comments, by the name of a style."""


def show(program: str, style: str | None = None) -> None:
    """Print a program. A style colours it on any output; by default it is coloured on a terminal only."""
    if style is not None and style not in STYLES:
        raise TilewrightError(f"the styles are {', '.join(STYLES)}, not {style!r}")
    chosen = style or ("ansi" if sys.stdout.isatty() else None)
    sys.stdout.write(f"{program if chosen is None else coloured(program, chosen)}\n")


def coloured(program: str, style: str) -> str:
    """The program with its tokens in the colours of a style."""
    colours = STYLES[style]
    return TOKEN.sub(lambda found: f"\033[{colours[str(found.lastgroup)]}m{found[0]}\033[0m", program)


def cprint(printable: Any, style: str | None = None, black_format: bool = False) -> None:
    """Print a module, a function or a program's text; ``black_format`` changes nothing, as the text is formatted."""
    show(printable if isinstance(printable, str) else printable.script(), style)
