"""C source that loop-level functions bring along: what their calls of C functions need.

The attribute ``c_source`` of a function is a text, or several. Each text stands once before the code of a module,
however many of its functions bring it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

C_SOURCE = "c_source"


def brought_sources(functions: Iterable[Any]) -> list[str]:
    """The texts that some functions bring, each once, in order."""
    found: dict[str, None] = {}
    for function in functions:
        texts = function.attrs.get(C_SOURCE, ())
        for text in [texts] if isinstance(texts, str) else texts:
            found[str(text)] = None
    return list(found)
