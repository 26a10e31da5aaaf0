"""An MXNet symbol as its JSON text has it: nodes in the order in which they run, and the heads."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tilewright.support.errors import ModelError

VARIABLE: Final = "null"
"""The operator of inputs and parameters."""


@dataclass(frozen=True)
class SymbolEntry:
    """A node: its operator, its attributes as text, and what it reads as pairs of node and result."""

    operator: str
    name: str
    attributes: Mapping[str, str]
    inputs: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Symbol:
    """A graph; each node reads only nodes before it."""

    nodes: list[SymbolEntry]
    heads: tuple[tuple[int, int], ...]
    version: int
    """Of MXNet, as in 10901 for 1.9.1; 0 where the file does not say."""

    @property
    def variables(self) -> list[str]:
        """The names of inputs and parameters."""
        return [node.name for node in self.nodes if node.operator == VARIABLE]


def read_symbol(symbol: Any) -> Symbol:
    """A symbol from a path, from JSON text, or from an object with ``tojson()``, as MXNet's own are."""
    if hasattr(symbol, "tojson"):
        return _parsed(str(symbol.tojson()), "the symbol")
    if isinstance(symbol, os.PathLike) or (isinstance(symbol, str) and not symbol.lstrip().startswith("{")):
        path = Path(symbol)
        if not path.is_file():
            raise ModelError(f"there is no MXNet symbol {str(symbol)[:200]!r}: give a path, or JSON text")
        try:
            return _parsed(path.read_text("utf-8"), str(path))
        except UnicodeDecodeError as error:
            raise ModelError(f"{path} is not an MXNet symbol: it is not text ({error})") from error
    if isinstance(symbol, str):
        return _parsed(symbol, "the symbol")
    raise ModelError(
        f"an MXNet symbol is a path, JSON text, or an object with tojson(), not a {type(symbol).__name__}; "
        "block.export(prefix) writes the symbol and the parameters of a gluon block"
    )


def _parsed(text: str, where: str) -> Symbol:
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ModelError(f"{where} is not an MXNet symbol: {error}") from error
    if not isinstance(content, dict) or not isinstance(content.get("nodes"), list):
        raise ModelError(f"{where} is not an MXNet symbol: it has no list 'nodes'")
    nodes = [_entry(one, number, where) for number, one in enumerate(content["nodes"])]
    listed = content.get("heads")
    if not isinstance(listed, list) or not listed:
        raise ModelError(f"{where} is not an MXNet symbol: it has no 'heads'")
    heads = tuple(_reference(one, len(nodes), f"{where}: a head") for one in listed)
    return Symbol(nodes, heads, _version(content))


def _entry(given: Any, number: int, where: str) -> SymbolEntry:
    if not isinstance(given, dict) or not all(isinstance(given.get(key), str) for key in ("op", "name")):
        raise ModelError(f"{where}: node {number} has no 'op' or no 'name'")
    what = f"{where}: node {given['name']!r} ({given['op']})"
    attributes: dict[str, str] = {}
    # Older versions of MXNet write the attributes under other names.
    for key in ("param", "attr", "attrs"):
        found = given.get(key) or {}
        if not isinstance(found, dict):
            raise ModelError(f"{what}: {key!r} is not an object")
        attributes.update({str(name): str(value) for name, value in found.items()})
    inputs = given.get("inputs", [])
    if not isinstance(inputs, list):
        raise ModelError(f"{what}: 'inputs' is not a list")
    return SymbolEntry(
        given["op"], given["name"], attributes, tuple(_reference(one, number, what) for one in inputs)
    )


def _reference(given: Any, count: int, what: str) -> tuple[int, int]:
    """A pair of node and result; nodes read only those before them, so a graph has no cycles."""
    if (
        not isinstance(given, list)
        or len(given) < 2
        or not all(isinstance(one, int) and one >= 0 for one in given[:2])
    ):
        raise ModelError(f"{what}: {given!r} does not name a node and one of its results")
    if given[0] >= count:
        raise ModelError(f"{what} reads node {given[0]}, which is not before it")
    return given[0], given[1]


def _version(content: Mapping[str, Any]) -> int:
    attributes = content.get("attrs")
    found = attributes.get("mxnet_version") if isinstance(attributes, dict) else None
    last = found[-1] if isinstance(found, list) and found else 0
    return last if isinstance(last, int) else 0
