"""A hash of a template's source: records of another version of the template are told apart by it."""

from __future__ import annotations

import functools
import hashlib
import inspect
from collections.abc import Callable
from typing import Any


def attach_code_hash(s: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Give a schedule the hash of the decorated function's source."""

    def decorate(func: Callable[..., Any]) -> Callable[..., Any]:
        s.code_hash = source_hash(func)
        return func

    return decorate


def attach_code_hash_to_arg(arg_idx: int = 1) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Give the schedule that is an argument of the decorated function the hash of the function's source."""

    def decorate(func: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(func)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            args[arg_idx].code_hash = source_hash(func)
            return func(*args, **kwargs)

        return wrapper

    return decorate


def source_hash(func: Callable[..., Any]) -> str:
    """The SHA-1 of a function's source."""
    return hashlib.sha1("".join(inspect.getsourcelines(func)[0]).encode(), usedforsecurity=False).hexdigest()
