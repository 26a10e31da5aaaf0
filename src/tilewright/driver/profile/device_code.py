"""The code of one kernel of a model in the code that its device is given."""

from __future__ import annotations

import re

_ENTRY = re.compile(r"^\.visible \.entry (\w+)\(.*?^}$", re.MULTILINE | re.DOTALL)


def ptx_of(text: str, kernel: str) -> str:
    """The functions in PTX that a kernel of the graph launches; empty where it launches none."""
    own = re.compile(rf"{re.escape(kernel)}_kernel\d+")
    return "\n\n".join(found[0] for found in _ENTRY.finditer(text) if own.fullmatch(found[1]))
