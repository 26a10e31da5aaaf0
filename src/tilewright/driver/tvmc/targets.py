"""Targets on the command line: a string, JSON, a file with JSON, or several separated by commas.

``"ethos-n77 --option=x, llvm -mcpu=skylake"`` names the compiler's target last; before it come external code generators
that take the parts of the graph that they support (``composite_target``).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tilewright.driver.tvmc.composite_target import get_codegen_by_target, get_codegen_names
from tilewright.driver.tvmc.errors import TVMCException
from tilewright.support.errors import TargetError
from tilewright.target import Target
from tilewright.target.kind import KINDS, nearest
from tilewright.target.tag_table import TAGS

ParsedTarget = dict[str, Any]
"""``name``, ``opts`` (by name, as texts), ``raw`` (as it was written) and ``is_tvm_target``."""

# A word ends at a space or a comma, unless they are quoted.
_TOKEN = re.compile(r"""(?:[^\s,"']|"[^"]*"|'[^']*')+|,""")
# Of these options the value is a list, whatever its elements are called.
_LISTS = ("-keys=", "-libs=", "-mattr=")


def tokenize_target(target: str) -> list[str]:
    """The words and the commas of a target string. A comma within the value of an option stays in its word."""
    tokens: list[str] = []
    end = -1
    for found in _TOKEN.finditer(target):
        word = found[0]
        if len(tokens) > 1 and tokens[-1] == "," and found.start() == end and _continues(tokens[-2], word):
            tokens.pop()
            tokens[-1] += f",{word}"
        else:
            tokens.append(word)
        end = found.end()
    return tokens


def _continues(option: str, word: str) -> bool:
    """True if a word that follows an option and a comma, without a space, is more of the option's value."""
    if not option.startswith("-"):
        return False
    return option.startswith(_LISTS) or word not in (*KINDS, *get_codegen_names())


def parse_target(target: str) -> list[ParsedTarget]:
    """The targets of a string, in order."""
    parsed: list[ParsedTarget] = []
    current: list[str] = []
    for token in [*tokenize_target(target), ","]:
        if token != ",":
            current.append(token)
        elif current:
            parsed.append(_parsed(current))
            current = []
    if not parsed:
        raise TVMCException(f"{target!r} does not name a target")
    names = [one["name"] for one in parsed]
    for name in names:
        if names.count(name) > 1:
            raise TVMCException(f"the target {name} is named twice")
    return parsed


def _parsed(words: Sequence[str]) -> ParsedTarget:
    name, *options = words
    values: dict[str, str] = {}
    position = 0
    while position < len(options):
        word = options[position]
        position += 1
        if not word.startswith("-"):
            raise TVMCException(f"in the target {name}, {word!r} is not an option: options begin with a dash")
        option, separator, value = word.lstrip("-").partition("=")
        if not separator and position < len(options) and not options[position].startswith("-"):
            value = options[position]
            position += 1
        values[option] = value.strip("\"'") if separator or value else "1"
    return {
        "name": name,
        "opts": values,
        "raw": " ".join(words),
        # A code generator may register a kind of target of its name as well.
        "is_tvm_target": (name in KINDS or name in TAGS) and name not in get_codegen_names(),
    }


def is_inline_json(target: str) -> bool:
    """True for a text that is JSON."""
    try:
        json.loads(target)
    except ValueError:
        return False
    return True


def validate_targets(
    parse_targets: Sequence[ParsedTarget], additional_target_options: Mapping[str, Any] | None = None
) -> None:
    """An error unless there is exactly one target of the compiler, the last, or two of which the last is the host."""
    own = [one["name"] for one in parse_targets if one["is_tvm_target"]]
    for one in parse_targets:
        if not one["is_tvm_target"] and one["name"] not in get_codegen_names():
            known = [*KINDS, *get_codegen_names(), *TAGS]
            raise TVMCException(
                f"there is no target {one['name']!r}{nearest(one['name'], known)}; 'tilewright targets' lists them"
            )
    if not own:
        names = ", ".join(one["name"] for one in parse_targets)
        raise TVMCException(f"{names} needs a target of the compiler next to it, such as llvm")
    if len(own) > 2:
        raise TVMCException(f"at most a target and its host can be given, not {', '.join(own)}")
    for name, options in (additional_target_options or {}).items():
        if options and name not in own:
            raise TVMCException(
                f"Passed --target-{name}-{next(iter(options))} but did not specify {name} target; the target is "
                f"{', '.join(own)}"
            )


def target_from_cli(
    target: str, additional_target_options: Mapping[str, Mapping[str, str]] | None = None
) -> tuple[Target, list[ParsedTarget]]:
    """The target of the compiler, and the code generators before it.

    ``additional_target_options`` gives options by kind and name: ``{"llvm": {"mcpu": "skylake"}}``. They win over what
    the string says.
    """
    extra = {name: dict(options) for name, options in (additional_target_options or {}).items() if options}
    path = Path(target)
    if target.endswith(".json") or (len(target) < 4096 and path.is_file()):
        try:
            target = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as problem:
            raise TVMCException(f"the target file {path} cannot be read: {problem}") from problem
        if not is_inline_json(target):
            raise TVMCException(f"the target file {path} is not JSON")
    try:
        if target.lstrip().startswith("{"):
            made = Target(target)
            return _with_options(made, extra), []
        parsed = parse_target(target)
        validate_targets(parsed, extra)
        own = [one for one in parsed if one["is_tvm_target"]]
        generators = [one for one in parsed if not one["is_tvm_target"]]
        for one in generators:
            get_codegen_by_target(one["name"])
        host = _with_options(Target(own[1]["raw"]), extra) if len(own) == 2 else None
        return _with_options(Target(own[0]["raw"], host), extra), generators
    except TargetError as problem:
        raise TVMCException(f"the target is wrong: {problem}") from problem


def _with_options(target: Target, options: Mapping[str, Mapping[str, str]]) -> Target:
    """The target with more options, given as texts."""
    own = options.get(target.kind.name)
    if not own:
        return target
    words = [f"-{name}={value}" for name, value in own.items()]
    parsed = Target(" ".join([target.kind.name, *words]))
    return Target({**target.export(), **{name: parsed.attrs[name] for name in own if name in parsed.attrs}})
