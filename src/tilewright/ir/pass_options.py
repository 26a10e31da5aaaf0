"""The options of a pass and how they are written: ``{fuse_opt_level=2, views=true}``.

Options are the fields of the pass's dataclass. A value is written as an integer, a float, ``true``, ``false`` or
``none``, a bare word or a quoted string, a list in brackets, or a map in braces. What is not data (a function, a
variable of a program) is written as ``<function name>`` to be looked at: it cannot be read back.
"""

from __future__ import annotations

import dataclasses
import json
import math
import re
from collections.abc import Mapping
from typing import Any

from tilewright.target.target import Target

WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z0-9_]+)*")
"""What may stand without quotes: names, with dots between their parts."""

CONSTANTS: Mapping[str, Any] = {
    "true": True,
    "false": False,
    "none": None,
    "inf": math.inf,
    "nan": math.nan,
}
"""Words that are values; a string of the same letters is quoted."""


def options_of(kind: type) -> list[dataclasses.Field[Any]]:
    """The options of a pass class: the fields that its constructor takes."""
    if not dataclasses.is_dataclass(kind):
        return []
    return [field for field in dataclasses.fields(kind) if field.init]


def default_of(option: dataclasses.Field[Any]) -> Any:
    """The default of an option; ``dataclasses.MISSING`` where it must be given."""
    if option.default_factory is not dataclasses.MISSING:
        return option.default_factory()
    return option.default


def options_text(given: Any) -> str:
    """The options of a pass that differ from their defaults, in braces; nothing where none does."""
    written = [
        f"{option.name}={value_text(value)}"
        for option in options_of(type(given))
        if not _is_default(value := getattr(given, option.name), default_of(option))
    ]
    return f"{{{', '.join(written)}}}" if written else ""


def value_text(value: Any) -> str:
    """One value."""
    match value:
        case None:
            return "none"
        case bool():
            return "true" if value else "false"
        case int() | float():
            return repr(value)
        case str():
            return _string_text(value)
        case list() | tuple():
            return f"[{', '.join(map(value_text, value))}]"
        case Mapping():
            return f"{{{', '.join(f'{value_text(key)}: {value_text(one)}' for key, one in value.items())}}}"
        case Target():
            return json.dumps(str(value), ensure_ascii=False)
    name = getattr(value, "__name__", None)
    # A lambda's name has brackets of its own.
    return f"<function {name.strip('<>')}>" if name is not None else f"<{type(value).__name__}>"


def _string_text(value: str) -> str:
    bare = WORD.fullmatch(value) is not None and value not in CONSTANTS
    return value if bare else json.dumps(value, ensure_ascii=False)


def _is_default(value: Any, default: Any) -> bool:
    """Whether an option need not be written; 1 and true, which are equal, are different texts."""
    return type(value) is type(default) and bool(value == default)
