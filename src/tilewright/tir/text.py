"""The text form of statements and functions."""
from __future__ import annotations
def script(f: object, prefix: str = "T", show_meta: bool = False) -> str:
    return "PrimFunc"
def stmt_text(e: object) -> str:
    return type(e).__name__
