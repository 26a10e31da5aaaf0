"""Numbers, attribute values and references to the meta data."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tilewright.ir.expr import Any as UnknownDimension
from tilewright.ir.serialize import SerializationError, load_json
from tilewright.relay.parser.stream import TokenStream, shown
from tilewright.relay.parser.tokens import Source, Token
from tilewright.runtime.ndarray import numpy_dtype
from tilewright.support.dtype import DataType

_NUMBER = re.compile(r"(inf|nan|[\d.]+(?:[eE][+-]?\d+)?)([fiu]?)(\d*)", re.ASCII)
_NOT_FINITE = re.compile(r"(?:inf|nan)f(?:16|32|64)?|inf|nan")
_WIDTHS = {"f": ("16", "32", "64"), "i": ("8", "16", "32", "64"), "u": ("8", "16", "32", "64")}
_KINDS = {"f": "float", "i": "int", "u": "uint"}


class ValueParser(TokenStream):
    """Reads what is neither an expression nor a type."""

    def __init__(self, source: Source, meta_table: Mapping[str, Sequence[Any]] | None = None) -> None:
        super().__init__(source)
        self.given_meta = dict(meta_table or {})
        self.own_meta = self._read_metadata()

    def _read_metadata(self) -> dict[str, Any]:
        """The metadata section, which is at the end."""
        token = self.tokens[-2] if len(self.tokens) > 1 else self.tokens[-1]
        if token.kind != "metadata":
            return {}
        try:
            found = load_json(token.text.strip())
        except SerializationError as error:
            self.fail(token, f"the metadata section cannot be read: {error.message}")
        if not isinstance(found, dict) or not all(isinstance(values, tuple) for values in found.values()):
            self.fail(token, "the metadata section is not a list of values per class")
        return found

    def at_not_finite(self) -> bool:
        """True at ``inf`` or ``nan`` with the suffix of a float."""
        return _NOT_FINITE.fullmatch(self.current.text) is not None

    def number(self, negative: bool) -> np.generic:
        """A number of the type that its suffix names: int32 without one, float32 if it has a fraction."""
        token = self.advance()
        match = _NUMBER.fullmatch(token.text)
        if match is None:
            self.fail(token, f"{token.text!r} is not a number")
        digits, letter, width = match.groups()
        fraction = not digits.isdigit()
        if not letter:
            letter, width = ("f" if fraction else "i"), "32"
        elif not width:
            width = "32"
        if width not in _WIDTHS[letter]:
            self.fail(token, f"there are no numbers of type {_KINDS[letter]}{width}")
        if fraction and letter != "f":
            self.fail(token, f"an integer of type {_KINDS[letter]}{width} has no fraction")
        return self._converted(token, f"{'-' if negative else ''}{digits}", f"{_KINDS[letter]}{width}")

    def _converted(self, token: Token, digits: str, name: str) -> np.generic:
        dtype = numpy_dtype(DataType(name))
        try:
            if dtype.kind == "f":
                with np.errstate(over="ignore"):
                    value: np.generic = dtype.type(digits)
                fits = bool(np.isfinite(value)) or "n" in digits
            else:
                number = int(digits)
                limits = np.iinfo(dtype)
                fits = limits.min <= number <= limits.max
                value = dtype.type(number if fits else 0)
        except ValueError:
            self.fail(token, f"{shown(token)} is not a number of type {name}")
        if not fits:
            hint = "; add i64 for a larger type" if name == "int32" else ""
            self.fail(token, f"{digits} does not fit into {name}{hint}")
        return value

    def value(self) -> Any:
        """The value of an attribute."""
        token = self.current
        if token.kind == "string":
            return self.string(token, self.advance().text)
        if self.accept("["):
            return tuple(self.sequence("]", self.value))
        if self.accept("("):
            return tuple(self.sequence(")", self.value))
        if self.accept("{"):
            return dict(self.sequence("}", self._pair))
        if token.kind in ("None", "True", "False"):
            self.advance()
            return {"None": None, "True": True, "False": False}[token.kind]
        if self.accept("?"):
            return UnknownDimension()
        if token.kind == "meta":
            return self.meta_reference()
        return self._plain_number()

    def _pair(self) -> tuple[str, Any]:
        token = self.expect("string")
        self.expect(":")
        return self.string(token, token.text), self.value()

    def _plain_number(self) -> int | float:
        """A number of Python: any integer, or a float of 64 bits."""
        negative = False
        while self.accept("-"):
            negative = not negative
        token = self.current
        if token.kind != "number" and not self.at_not_finite():
            self.fail(token, f"expected the value of an attribute, found {shown(token)}")
        self.advance()
        match = _NUMBER.fullmatch(token.text)
        digits, letter = (match.group(1), match.group(2)) if match is not None else ("", "")
        try:
            if digits.isdigit() and letter != "f":
                return -int(digits) if negative else int(digits)
            return -float(digits) if negative else float(digits)
        except ValueError:
            self.fail(token, f"{shown(token)} is not a number")

    def meta_reference(self) -> Any:
        """``meta[class][number]``."""
        start = self.expect("meta").start
        self.expect("[")
        kind = self.expect_word("the name of a class").text
        self.expect("]")
        self.expect("[")
        token = self.expect("number")
        self.expect("]")
        table = self.own_meta if kind in self.own_meta else self.given_meta
        values = table.get(kind, ())
        if not token.text.isdigit() or len(token.text) > 9 or int(token.text) >= len(values):
            self.fail_since(
                start,
                f"the meta data has {len(values)} values of class {kind}, and none of number {token.text}; "
                "print the program with show_meta_data=True, or pass a table of them",
            )
        found = values[int(token.text)]
        if found is None:
            self.fail_since(
                start, f"this value of class {kind} could not be written when the program was printed"
            )
        return found
