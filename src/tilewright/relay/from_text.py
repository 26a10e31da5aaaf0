"""Parsing graph-level programs: ``relay.fromtext``, ``parse`` and ``parse_expr``.

The parser is in ``relay.parser``; here types are inferred.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tilewright.ir.base import RelayExpr
from tilewright.ir.module import IRModule
from tilewright.relay.infer import infer_module
from tilewright.relay.parser import parse_expression, parse_module


def parse(
    source: str,
    source_name: str = "from_string",
    init_module: IRModule | None = None,
    init_meta_table: Mapping[str, Sequence[Any]] | None = None,
) -> IRModule:
    """The module that a text defines, with types inferred. It also has the definitions of ``init_module``; what the
    text calls ``meta[class][number]`` may be in ``init_meta_table``."""
    return infer_module(parse_module(source, source_name, init_module, init_meta_table))


def parse_expr(source: str) -> RelayExpr:
    """The expression that a text is."""
    return parse_expression(source)


def fromtext(source: str, source_name: str = "from_string") -> IRModule:
    """Parses the text that ``mod.astext()`` printed."""
    return parse(source, source_name)
