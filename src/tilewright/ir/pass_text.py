"""Passes from text: ``FuseOps{fuse_opt_level=2}, tir.UnrollLoop`` is what ``str`` of a pass or a ``Sequential`` gives.

    passes  = [pass {"," pass} [","]]
    pass    = name ["{" [option "=" value {"," option "=" value}] "}"]
    value   = integer | float | "true" | "false" | "none" | word | string
            | "[" [value {"," value}] "]" | "{" [value ":" value {"," value ":" value}] "}"

A name is that of the pass, with or without the level before its dot (``FuseOps`` or ``relay.FuseOps``); where two
passes share it, the level must be written. An option may be shortened to its last words (``level`` for
``fuse_opt_level``) where only one ends so. A ``#`` starts a comment, as long as the line. Options are checked against
the types of the pass's fields, and an error points at its place and names what was probably meant.
"""

from __future__ import annotations

import dataclasses
import difflib
import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from tilewright.ir.option_types import OptionTypeError, checked, describe, hints_of, is_data
from tilewright.ir.pass_options import CONSTANTS, WORD, default_of, options_of
from tilewright.ir.transform import Pass, qualified_name, short_name
from tilewright.support.errors import ParseError, TilewrightError

_TOKEN = re.compile(
    rf"""(?P<space>\s+|\#[^\n]*)
    |(?P<opaque><[^<>]*>)
    |(?P<number>-?(\d+\.\d*|\.\d+|\d+)([eE][+-]?\d+)?|-inf\b)
    |(?P<string>"([^"\\\n]|\\.)*")
    |(?P<word>{WORD.pattern})
    |(?P<mark>[{{}}\[\],=:])""",
    re.VERBOSE,
)

_DEEPEST = 50
"""How deep lists and maps may be nested."""


@dataclass(frozen=True, slots=True)
class _Token:
    """A piece of the text; ``kind`` is "end" behind the last."""

    kind: str
    text: str
    start: int

    @property
    def shown(self) -> str:
        """How a message calls it."""
        return "the end of the text" if self.kind == "end" else repr(self.text)


def parse_passes(text: str) -> list[Pass]:
    """The passes that a text describes, in order."""
    return _Reader(text).passes()


class _Reader:
    """Reads one text."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = list(self._split())
        self.position = 0

    # Tokens

    def _split(self) -> Iterable[_Token]:
        start = 0
        while start < len(self.text):
            found = _TOKEN.match(self.text, start)
            if found is None:
                unclosed = self.text[start] == '"'
                raise self.error(
                    "a string without its closing quote" if unclosed else "this is not part of a pass", start
                )
            if found.lastgroup != "space":
                yield _Token(str(found.lastgroup), found.group(), start)
            start = found.end()
        yield _Token("end", "", len(self.text))

    @property
    def token(self) -> _Token:
        return self.tokens[self.position]

    def take(self) -> _Token:
        """The next token, which is then behind us."""
        taken = self.token
        self.position += taken.kind != "end"
        return taken

    def skip(self, mark: str) -> bool:
        """True if the mark is next; it is then behind us."""
        if self.token.kind == "mark" and self.token.text == mark:
            self.position += 1
            return True
        return False

    def expect(self, mark: str, where: str) -> None:
        """An error where the mark is not next."""
        if not self.skip(mark):
            raise self.error(f"expected '{mark}' {where}, found {self.token.shown}", self.token)

    def error(self, message: str, place: _Token | int) -> ParseError:
        """An error that shows the line with a caret under the place."""
        start, width = (place, 1) if isinstance(place, int) else (place.start, max(1, len(place.text)))
        before, line = self.text[:start].rpartition("\n")[2], self.text[start:].partition("\n")[0]
        return ParseError(f"{message}\n  {before}{line}\n  {' ' * len(before)}{'^' * width}")

    # Passes

    def passes(self) -> list[Pass]:
        """The whole text."""
        made: list[Pass] = []
        while self.token.kind != "end":
            made.append(self.one_pass())
            if self.token.kind != "end":
                self.expect(",", "between passes")
        return made

    def one_pass(self) -> Pass:
        name = self.take()
        if name.kind != "word":
            raise self.error(f"expected the name of a pass, found {name.shown}", name)
        kind = self.pass_class(name)
        given: dict[str, Any] = {}
        if self.skip("{"):
            while not self.skip("}"):
                self.option(kind, given)
                if not self.skip(","):
                    self.expect("}", f"or ',' after an option of {kind.name}")
                    break
        self.complete(kind, given, name)
        try:
            return kind(**given)
        except (TilewrightError, TypeError, ValueError) as problem:
            raise self.error(getattr(problem, "message", str(problem)), name) from problem

    def pass_class(self, name: _Token) -> type[Pass]:
        """The pass of a name, with or without its level."""
        called = name.text
        found = {
            qualified_name(full): kind
            for full, kind in Pass.registry.items()
            if called in (qualified_name(full), short_name(full), kind.__name__)
        }
        if called in found:
            return found[called]
        if len(found) > 1:
            raise self.error(
                f"{called!r} is the name of several passes: write {' or '.join(sorted(found))}", name
            )
        if not found:
            names = {form(full): full for form in (short_name, qualified_name) for full in Pass.registry}
            raise self.error(f"there is no pass {called!r}{_meant(called, names)}", name)
        return next(iter(found.values()))

    def option(self, kind: type[Pass], given: dict[str, Any]) -> None:
        """One option and its value."""
        name = self.take()
        if name.kind != "word":
            raise self.error(f"expected an option of {kind.name}, found {name.shown}", name)
        option = self.option_name(kind, name)
        if option in given:
            raise self.error(f"option {option} of {kind.name} is given twice", name)
        hint = hints_of(kind)[option]
        if not is_data(hint):
            raise self.error(
                f"option {option} of {kind.name} is {describe(hint)}: it can be set in Python only", name
            )
        self.expect("=", f"after option {option}")
        place = self.token
        value = self.value()
        try:
            given[option] = checked(value, hint)
        except OptionTypeError as problem:
            raise self.error(
                f"option {option} of {kind.name} is {describe(hint)}{problem.reason}", place
            ) from problem

    def option_name(self, kind: type[Pass], name: _Token) -> str:
        """The full name of an option."""
        known = [option.name for option in options_of(kind)]
        if name.text in known:
            return name.text
        ending = [option for option in known if option.endswith(f"_{name.text}")]
        if len(ending) == 1:
            return ending[0]
        if ending:
            raise self.error(f"{name.text!r} could be {' or '.join(ending)} of {kind.name}", name)
        listed = f"it has {', '.join(known)}" if known else "it has none"
        meant = _meant(name.text, {ending: option for option in known for ending in _endings(option)})
        raise self.error(f"{kind.name} has no option {name.text!r}{meant or '; ' + listed}", name)

    def complete(self, kind: type[Pass], given: dict[str, Any], name: _Token) -> None:
        """An error where an option that has no default is not given."""
        for option in options_of(kind):
            if option.name not in given and default_of(option) is dataclasses.MISSING:
                hint = hints_of(kind)[option.name]
                advice = "" if is_data(hint) else ", which can be set in Python only"
                raise self.error(
                    f"{kind.name} needs its option {option.name}: {describe(hint)}{advice}", name
                )

    # Values

    def value(self, depth: int = 0) -> Any:
        """A value as Python data."""
        token = self.take()
        if depth > _DEEPEST:
            raise self.error(f"lists and maps are nested more than {_DEEPEST} deep", token)
        match token.kind, token.text:
            case "number", text:
                return int(text) if re.fullmatch(r"-?\d+", text) else float(text)
            case "string", text:
                try:
                    return json.loads(text, strict=False)
                except ValueError as problem:
                    raise self.error("this string has an escape that JSON does not know", token) from problem
            case "word", text:
                return CONSTANTS.get(text, text)
            case "mark", "[":
                return self.items("]", lambda: self.value(depth + 1))
            case "mark", "{":
                return dict(self.items("}", lambda: self.entry(depth + 1)))
            case "opaque", text:
                raise self.error(
                    f"{text} is printed to be looked at and cannot be read back: set it in Python", token
                )
        raise self.error(f"expected a value, found {token.shown}", token)

    def entry(self, depth: int) -> tuple[Any, Any]:
        """A key and its value."""
        place = self.token
        key = self.value(depth)
        if isinstance(key, (list, dict)):
            raise self.error("the key of a map is a word, a string or a number", place)
        self.expect(":", "after the key of a map")
        return key, self.value(depth)

    def items(self, end: str, item: Callable[[], Any]) -> list[Any]:
        """What stands up to the closing bracket, separated by commas."""
        made: list[Any] = []
        while not self.skip(end):
            made.append(item())
            if not self.skip(","):
                self.expect(end, "or ','")
                break
        return made


def _endings(option: str) -> list[str]:
    """An option's name, and its last words."""
    words = option.split("_")
    return ["_".join(words[start:]) for start in range(len(words))]


def _meant(given: str, known: Mapping[str, str]) -> str:
    """What is known under the nearest name, as the end of a sentence; nothing where none is near."""
    by_lower = {name.lower(): meant for name, meant in known.items()}
    near = difflib.get_close_matches(given.lower(), by_lower, 1, 0.6)
    return f"; did you mean {by_lower[near[0]]!r}?" if near else ""
