"""The text form of a target: ``llvm -mcpu=skylake -mattr=+avx2,+fma``.

The kind, or a tag, comes first. Each option is ``-name=value`` or ``-name value``, with one dash or two; a Bool may
omit its value. Quotes keep spaces together, as in a shell. A comma inside an element of an array, and a backslash, are
escaped with a backslash, so that every target prints as text that parses to the same target.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from tilewright.support.errors import TargetError
from tilewright.target.kind import BOOL, INTEGER, STRING, STRINGS, TARGET, TARGETS, TargetKind

_OPTION = re.compile(r"--?([A-Za-z][\w-]*)(?:=(.*))?", re.DOTALL)
_ELEMENT = re.compile(r"((?:[^,\\]|\\.)*)(?:,|$)", re.DOTALL)
_WORDS_FOR_BOOL = {"true": True, "1": True, "false": False, "0": False}


def split_words(text: str) -> tuple[str, list[tuple[str, str | None]]]:
    """The first word of a target string and its options in order, each with its value or None for a bare flag."""
    try:
        words = shlex.split(text)
    except ValueError as problem:
        raise TargetError(f"target string {text!r} cannot be read: {problem}") from None
    if not words:
        raise TargetError("a target string is empty; it starts with a kind such as 'llvm' or a tag")
    options: list[tuple[str, str | None]] = []
    position = 1
    while position < len(words):
        word = words[position]
        match = _OPTION.fullmatch(word)
        if match is None:
            raise TargetError(
                f"in target string {text!r}, {word!r} is not an option; options look like -name=value"
            )
        name, value = match.groups()
        position += 1
        if value is None and position < len(words) and not words[position].startswith("-"):
            value = words[position]
            position += 1
        options.append((name, value))
    return words[0], options


def read_value(kind: TargetKind, name: str, text: str | None) -> Any:
    """The value of one option in a target string; nested targets are left as strings."""
    option_type = kind.option_type(name)
    if text is None:
        if option_type != BOOL:
            raise TargetError(
                f"option {name!r} of target kind {kind.name!r} needs a value, as in -{name}=..."
            )
        return True
    return check_value(kind, name, split_elements(text) if option_type in (STRINGS, TARGETS) else text)


def check_value(kind: TargetKind, name: str, value: Any) -> Any:
    """``value`` as the type of the option, or ``TargetError``. Nested targets pass as they are."""
    option_type = kind.option_type(name)
    if option_type == BOOL:
        if isinstance(value, bool) or (isinstance(value, int) and value in (0, 1)):
            return bool(value)
        if isinstance(value, str) and value.lower() in _WORDS_FOR_BOOL:
            return _WORDS_FOR_BOOL[value.lower()]
    elif option_type == INTEGER:
        if isinstance(value, int) and not isinstance(value, bool):
            return value
        if isinstance(value, str) and re.fullmatch(r"[+-]?\d+", value):
            return int(value)
    elif option_type == STRING:
        if isinstance(value, str):
            return value
    elif option_type == STRINGS:
        if isinstance(value, str) and value:
            return [value]
        if (
            not isinstance(value, str)
            and isinstance(value, Sequence)
            and all(isinstance(element, str) and element for element in value)
        ):
            return list(value)
    elif option_type == TARGETS:
        if isinstance(value, Sequence) and not isinstance(value, str):
            return list(value)
    elif option_type == TARGET:
        return value
    raise TargetError(
        f"option {name!r} of target kind {kind.name!r} must be {option_type}, but is {value!r} ({type(value).__name__})"
    )


def split_elements(text: str) -> list[str]:
    """The elements of an array: split at commas that no backslash precedes."""
    if not text:
        return []
    elements = []
    position = 0
    while True:
        match = _ELEMENT.match(text, position)
        if match is None:
            raise TargetError(f"the list {text!r} ends in a backslash with nothing after it")
        elements.append(re.sub(r"\\(.)", r"\1", match.group(1), flags=re.DOTALL))
        position = match.end()
        if match.end(1) == match.end():
            return elements


def print_target(
    kind: TargetKind, keys: Sequence[str], attrs: Mapping[str, Any], host: object, tag: str
) -> str:
    """The text form: kind, keys, the attributes by name, then tag and host where there are any."""
    parts = [kind.name]
    if keys:
        parts.append(_print_option("keys", list(keys)))
    parts += [_print_option(name, attrs[name]) for name in sorted(attrs)]
    if tag:
        parts.append(_print_option("tag", tag))
    if host is not None:
        parts.append(_print_option("host", str(host)))
    return " ".join(parts)


def _print_option(name: str, value: Any) -> str:
    if isinstance(value, list):
        text = ",".join(re.sub(r"([\\,])", r"\\\1", str(element)) for element in value)
    elif isinstance(value, bool):
        text = str(int(value))
    else:
        text = str(value)
    # A quote is needed only where the shell's rules would split or change the value.
    plain = re.fullmatch(r"[\w@%+=:,./-]+", text, re.ASCII)
    return f"-{name}={text if plain else shlex.quote(text)}"
