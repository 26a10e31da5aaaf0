"""Short text of an expression, for messages and ``repr``."""
from __future__ import annotations
def expr_text(e: object) -> str:
    return type(e).__name__
