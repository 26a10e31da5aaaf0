"""Bridges to tools and libraries outside: compilers and linkers, other tensor libraries, temporary files."""

from typing import Any

from tilewright.not_yet import attribute_not_there


def __getattr__(name: str) -> Any:
    return attribute_not_there(__name__, name)
