"""The token stream."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import NoReturn, TypeVar

from tilewright.relay.parser.tokens import END, Source, Token
from tilewright.support.span import Span

Item = TypeVar("Item")

_DESCRIPTIONS = {
    "local": "a variable such as %x",
    "global": "a global name such as @main",
    "number": "a number",
    "string": "a string",
}


class TokenStream:
    """A place among the tokens of a source."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.tokens = source.tokens()
        self.position = 0

    @property
    def current(self) -> Token:
        """The next token."""
        return self.tokens[self.position]

    def kind_after(self) -> str:
        """The kind of the token after the next one."""
        return self.tokens[min(self.position + 1, len(self.tokens) - 1)].kind

    def advance(self) -> Token:
        """Take the next token; the end stays."""
        token = self.tokens[self.position]
        if token.kind != END:
            self.position += 1
        return token

    def at(self, kind: str) -> bool:
        """True if the next token is of this kind."""
        return self.tokens[self.position].kind == kind

    def accept(self, kind: str) -> bool:
        """Take the next token if it is of this kind."""
        if self.tokens[self.position].kind != kind:
            return False
        self.advance()
        return True

    def expect(self, kind: str, what: str = "") -> Token:
        """Take a token of this kind, which must come next."""
        token = self.tokens[self.position]
        if token.kind != kind:
            self.fail(token, f"expected {what or _DESCRIPTIONS.get(kind, f'{kind!r}')}, found {shown(token)}")
        return self.advance()

    def expect_word(self, what: str) -> Token:
        """Take a word, which must come next."""
        token = self.current
        if not is_word(token):
            self.fail(token, f"expected {what}, found {shown(token)}")
        return self.advance()

    def sequence(self, end: str, item: Callable[[], Item]) -> list[Item]:
        """Items with commas between them, and one at the end if the writer likes, up to the closing token."""
        items: list[Item] = []
        while not self.accept(end):
            items.append(item())
            if not self.accept(","):
                self.expect(end, f"',' or {end!r}")
                break
        return items

    def fail(self, token: Token, message: str) -> NoReturn:
        """Report an error at a token."""
        self.source.fail(token.start, token.end, message)

    def fail_since(self, start: int, message: str) -> NoReturn:
        """Report an error about everything from ``start`` to the last token taken."""
        self.source.fail(start, self.last_end(), message)

    def last_end(self) -> int:
        """Where the last token that was taken ends."""
        return self.tokens[max(self.position - 1, 0)].end

    def span_since(self, start: int) -> Span:
        """The place from ``start`` to the last token taken."""
        return self.source.span(start, self.last_end())

    def name(self, token: Token) -> str:
        """The name behind ``%`` or ``@``."""
        text = token.text[1:]
        return self.string(token, text) if text.startswith('"') else text

    def string(self, token: Token, text: str) -> str:
        """The contents of a quoted string."""
        try:
            found = json.loads(text, strict=False)
        except ValueError:
            self.fail(token, "the string has an escape that is not known")
        return str(found)


def is_word(token: Token) -> bool:
    """True for names of operators, types and attributes, and for keywords."""
    return (
        token.kind == token.text and (token.text[0].isalpha() or token.text[0] == "_") and token.kind != END
    )


def shown(token: Token) -> str:
    """A token in a message."""
    return END if token.kind == END else repr(token.text if len(token.text) < 40 else f"{token.text[:40]}…")
