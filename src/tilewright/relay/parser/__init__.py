"""Parsing the text form of graph-level programs; ``relay.printer`` describes it.

A hand-written tokenizer and a recursive-descent parser. Every node has the location in the text that it came from.
Invalid text is a ``TextFormError`` that shows the line.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from tilewright.ir.base import RelayExpr
from tilewright.ir.module import IRModule
from tilewright.relay.parser.definitions import DefinitionParser
from tilewright.relay.parser.span_check import SpanCheck
from tilewright.relay.parser.tokens import Source, TextFormError
from tilewright.support.errors import TilewrightError
from tilewright.support.recursion import recursion_room

__all__ = [
    "STANDARD_LIBRARY",
    "SpanCheck",
    "TextFormError",
    "add_definitions",
    "parse_expression",
    "parse_module",
]

STANDARD_LIBRARY = Path(__file__).resolve().parent.parent / "std"
"""The folder of the files that ``import_from_std`` finds."""

MetaTable = Mapping[str, Sequence[Any]]
Result = TypeVar("Result")


def _read(source: Source, reading: Callable[[], Result]) -> Result:
    """Read with room for nesting; what is nested deeper than the interpreter allows is an error like any other."""
    try:
        with recursion_room():
            return reading()
    except RecursionError:
        source.fail(0, 1, "the text is nested too deeply to be read")


def parse_module(
    text: str,
    source_name: str = "from_string",
    init_module: IRModule | None = None,
    init_meta_table: MetaTable | None = None,
) -> IRModule:
    """The definitions of a text, with those of ``init_module``, which the text may use. Types are not inferred."""
    source = Source(text, source_name)
    module = init_module.copy() if init_module is not None else IRModule()
    return _read(source, lambda: DefinitionParser(source, module, init_meta_table).whole_module())


def parse_expression(
    text: str,
    source_name: str = "from_string",
    init_module: IRModule | None = None,
    init_meta_table: MetaTable | None = None,
) -> RelayExpr:
    """A text that is one expression."""
    source = Source(text, source_name)
    module = init_module.copy() if init_module is not None else IRModule()
    return _read(source, lambda: DefinitionParser(source, module, init_meta_table).whole_expression())


def add_definitions(module: IRModule, text: str, source_name: str) -> None:
    """Add the definitions of a text to a module. What the module already has from the same source stays; a text that
    cannot be read leaves the module as it was."""
    source = Source(text, source_name)
    made = _read(source, lambda: DefinitionParser(source, module.copy(), importing=True).whole_module())
    for type_variable, data in made.type_definitions.items():
        if type_variable not in module.type_definitions:
            module[type_variable] = data
    for variable, function in made.functions.items():
        if variable not in module:
            module[variable] = function


def import_file(module: IRModule, path: str, standard: bool) -> None:
    """Add the definitions of a file to a module."""
    found = STANDARD_LIBRARY / path if standard else Path(path)
    try:
        text = found.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        known = ", ".join(sorted(each.name for each in STANDARD_LIBRARY.glob("*.rly"))) if standard else ""
        hint = f"; the standard library has {known}" if known else ""
        raise TilewrightError(f"{path} cannot be imported: {error}{hint}") from error
    add_definitions(module, text, str(found))
