"""Every case of every table compiled for a GPU; and on one, against the reference: ``pytest -m gpu tests/relay/op``."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.relay.op.test_operators import (
    BATCH,
    BATCHES,
    Program,
    cases,
    failures_of,
    is_static,
    program,
    report,
    together,
)

import tilewright as tvm
from tilewright import relay

GPU = tvm.cuda(0)
BUILT_IN = {"__nop", "__copy"}
"""What the executor itself does."""


def static_programs(table: str, start: int) -> list[Program]:
    """The cases of a batch whose types tell the shapes of all results."""
    programs = [program(case) for case in cases(table)[start : start + BATCH]]
    return [made for made in programs if is_static(made.function)]


@pytest.mark.parametrize(("table", "start"), BATCHES)
def test_operators_compile(table: str, start: int) -> None:
    """To kernels for the device, or to code of the host where an operator has no kernel there."""
    programs = static_programs(table, start)
    function, _ = together(programs)
    with tvm.transform.PassContext(opt_level=3):
        factory = relay.build(tvm.IRModule.from_expr(function), "cuda -arch=sm_80")
    kernels = {
        node["attrs"]["func_name"] for node in json.loads(factory.graph_json)["nodes"] if "attrs" in node
    }
    assert all(factory.get_lib().implements_function(name, query_imports=True) for name in kernels - BUILT_IN)


@pytest.mark.gpu
@pytest.mark.skipif(not GPU.exist, reason="there is no NVIDIA GPU here")
@pytest.mark.parametrize(("table", "start"), BATCHES)
def test_operators(table: str, start: int) -> None:
    """Kernels for the device, and what has none runs on the host."""

    def run(function: relay.Function, arguments: list[Any]) -> Any:
        with tvm.transform.PassContext(opt_level=3):
            return relay.create_executor("graph", device=GPU, target="cuda").evaluate(function)(*arguments)

    report(failures_of(static_programs(table, start), run))
