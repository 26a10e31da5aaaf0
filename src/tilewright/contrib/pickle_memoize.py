"""Functions that cache their results for the lifetime of the process.

TVM stores them in files of pickled objects; here nothing is read that could run code when it is loaded.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable
from typing import Any

import numpy as np

_RESULTS: dict[str, dict[Any, Any]] = {}


def _text(value: Any) -> str:
    """A value as text, with all elements of arrays."""
    if isinstance(value, np.ndarray):
        return f"array({value.dtype}, {value.shape}, {hashlib.sha256(value.tobytes()).hexdigest()})"
    if isinstance(value, (list, tuple)):
        return f"{type(value).__name__}({', '.join(_text(one) for one in value)})"
    if isinstance(value, dict):
        return f"dict({', '.join(f'{_text(key)}: {_text(one)}' for key, one in value.items())})"
    return repr(value)


def memoize(key: str, save_at_exit: bool = False) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Make a decorator: a function's result for the same arguments is computed once. Functions with one key share their
    results."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        known = _RESULTS.setdefault(key, {})

        @functools.wraps(function)
        def remembered(*args: Any, **kwargs: Any) -> Any:
            # What the function closes over decides its result as its arguments do.
            closed = tuple(cell.cell_contents for cell in function.__closure__ or ())
            wanted = _text((closed, args, sorted(kwargs.items())))
            if wanted not in known:
                known[wanted] = function(*args, **kwargs)
            return known[wanted]

        return remembered

    return decorate
