"""Calls of every operator, with the attributes of its cases, are read back as they were printed."""

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest

from tilewright import relay
from tilewright.ir import assert_structural_equal, load_json, save_json
from tilewright.relay.parser import parse_expression

TABLES = Path(__file__).resolve().parents[1] / "op"


def cases(path: Path) -> list[Any]:
    """The cases of one table."""
    name = f"tests.relay.op.{path.stem}"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None and spec.loader is not None
        sys.modules[name] = module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    return list(sys.modules[name].CASES)


@pytest.mark.parametrize("table", sorted(path.stem for path in TABLES.glob("cases_*.py")))
def test_calls_round_trip(table: str) -> None:
    """Text and JSON give every case of a table back, attributes and all."""
    for case in cases(TABLES / f"{table}.py"):
        parameters = [
            relay.var(f"x{position}", shape=given.shape, dtype=given.dtype)
            for position, given in enumerate(case.inputs)
        ]
        built = case.build(*parameters)
        body = built.astuple() if isinstance(built, relay.TupleWrapper) else built
        function = relay.Function(parameters, body)
        assert_structural_equal(parse_expression(function.astext()), function)
        assert_structural_equal(load_json(save_json(function)), function)
