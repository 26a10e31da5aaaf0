"""The types of a pass's options: whether text can give one, how a message calls it, and whether a value has it."""

from __future__ import annotations

import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import NoneType
from typing import Any

from tilewright.support.errors import TilewrightError
from tilewright.target.target import Target


class OptionTypeError(TilewrightError, TypeError):
    """A value has not the type of its option; ``reason`` ends a sentence that names the option and its type."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"this value does not fit{reason}")
        self.reason = reason


_PLAIN: dict[Any, str] = {
    bool: "true or false",
    int: "an integer",
    float: "a number",
    str: "a string",
    NoneType: "none",
    Any: "any value",
    Target: "a target in quotes",
}


def hints_of(kind: type) -> Mapping[str, Any]:
    """The types of a class's fields."""
    return typing.get_type_hints(kind)


def is_data(hint: Any) -> bool:
    """True if text can give a value of the type."""
    base, arguments = _parts(hint)
    if base is typing.Union:
        return any(is_data(one) for one in arguments if one is not NoneType)
    if base is tuple and Ellipsis not in typing.get_args(hint):
        return False
    if base is not None:
        is_container = issubclass(base, Iterable) and not issubclass(base, Callable)  # type: ignore[arg-type]
        return is_container and all(is_data(one) for one in arguments)
    return hint in _PLAIN


def describe(hint: Any) -> str:
    """A type as words, after "is"."""
    base, arguments = _parts(hint)
    if base is typing.Union:
        return " or ".join(describe(one) for one in arguments if is_data(one) or not is_data(hint))
    if base is None:
        return _PLAIN.get(hint) or f"a {getattr(hint, '__name__', hint)}"
    if issubclass(base, Mapping):
        return f"a map from {_plural(arguments[0])} to {_plural(arguments[1])}"
    if issubclass(base, Iterable):
        return f"a list of {_plural(arguments[0])}"
    return "a function"


def checked(value: Any, hint: Any) -> Any:
    """The value in the option's type; an ``OptionTypeError`` where it has another."""
    base, arguments = _parts(hint)
    if base is typing.Union:
        return _first_fitting(value, arguments)
    if base is not None and issubclass(base, Mapping):
        if not isinstance(value, dict):
            raise OptionTypeError(f", not {_shown(value)}")
        return {checked(key, arguments[0]): checked(one, arguments[1]) for key, one in value.items()}
    if base is not None and issubclass(base, Iterable):
        if not isinstance(value, list):
            raise OptionTypeError(f", not {_shown(value)}")
        made = [checked(one, arguments[0]) for one in value]
        return tuple(made) if base is tuple else made
    return _checked_plain(value, hint)


def _checked_plain(value: Any, hint: Any) -> Any:
    if hint is Any:
        return value
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if hint is Target and isinstance(value, str):
        try:
            return Target(value)
        except TilewrightError as problem:
            raise OptionTypeError(f": {problem.message}") from problem
    if type(value) is not hint:
        raise OptionTypeError(f", not {_shown(value)}")
    return value


def _first_fitting(value: Any, hints: Sequence[Any]) -> Any:
    reasons = []
    for hint in filter(is_data, hints):
        try:
            return checked(value, hint)
        except OptionTypeError as problem:
            reasons.append(problem)
    raise reasons[0]


def _parts(hint: Any) -> tuple[Any, tuple[Any, ...]]:
    """A generic type and its arguments; (None, ()) for a plain one."""
    base, arguments = typing.get_origin(hint), typing.get_args(hint)
    if base is types.UnionType:
        base = typing.Union
    return base, tuple(one for one in arguments if one is not Ellipsis)


def _plural(hint: Any) -> str:
    words = {str: "strings", int: "integers", float: "numbers", bool: "true or false", Any: "values"}
    if hint in words:
        return words[hint]
    base, arguments = _parts(hint)
    if base is not None and base is not typing.Union and issubclass(base, Sequence):
        return f"lists of {_plural(arguments[0])}"
    return str(getattr(hint, "__name__", hint))


def _shown(value: Any) -> str:
    if isinstance(value, str):
        return f"the string {value!r}"
    if isinstance(value, (list, dict)):
        return "a list" if isinstance(value, list) else "a map"
    return {True: "true", False: "false"}.get(value, repr(value)) if isinstance(value, bool) else repr(value)
