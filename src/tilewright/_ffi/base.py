"""Strings, numbers and the root of all errors, under the name of the module that TVM has them in."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.support.errors import TilewrightError as TVMError
from tilewright.support.errors import register_error

__all__ = [
    "TVMError",
    "c_str",
    "integer_types",
    "numeric_types",
    "py_str",
    "register_error",
    "string_types",
]

string_types = (str,)
integer_types = (int, np.int32)
numeric_types = (float, int, np.float16, np.float32, np.int32)


def py_str(x: Any) -> str:
    """The text of bytes."""
    return str(x.decode("utf-8"))


def c_str(string: str) -> Any:
    """Bytes that C reads as a string."""
    return string.encode("utf-8")
