"""Tags: names by which schedules recognise operations (``injective``, ``conv2d_nchw``)."""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextvars import ContextVar, Token
from typing import Any

from tilewright.support.errors import ExpressionError

ELEMWISE = "elemwise"
"""The element at an index is a function of the elements of the inputs at that index."""
BROADCAST = "broadcast"
"""Element-wise, where inputs may lack dimensions or repeat along them."""

_current: ContextVar[str | None] = ContextVar("tilewright_te_tag", default=None)


def current_tag() -> str | None:
    """The tag of the innermost ``tag_scope``."""
    return _current.get()


class TagScope:
    """Gives its tag to every computation made inside it; a context manager and a decorator."""

    def __init__(self, tag: str) -> None:
        self.tag = tag
        self._token: Token[str | None] | None = None

    @classmethod
    def get_current(cls) -> TagScope | None:
        """The innermost scope, or None."""
        tag = current_tag()
        return None if tag is None else cls(tag)

    def __enter__(self) -> TagScope:
        if current_tag() is not None:
            raise ExpressionError("a tag_scope cannot be nested")
        self._token = _current.set(self.tag)
        return self

    def __exit__(self, *exc: object) -> None:
        if self._token is not None:
            _current.reset(self._token)

    def __call__(self, fdecl: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(fdecl)
        def tagged(*args: Any, **kwargs: Any) -> Any:
            with TagScope(self.tag):
                return fdecl(*args, **kwargs)

        return tagged


def tag_scope(tag: str) -> TagScope:
    """A scope whose computations get this tag."""
    return TagScope(tag)
