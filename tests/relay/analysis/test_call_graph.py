"""Calls between functions of a module."""

import pytest
from tests.relay.programs import call

from tilewright.ir.module import IRModule
from tilewright.relay import Function, GlobalVar, var
from tilewright.relay.analysis import CallGraph
from tilewright.support.errors import TilewrightError

main, helper, loop, alone = (GlobalVar(name) for name in ("main", "helper", "loop", "alone"))


def module() -> IRModule:
    """main calls helper twice and loop once; loop calls helper and itself."""
    x, y, z, w = (var(name, shape=()) for name in "xyzw")
    return IRModule(
        {
            main: Function([x], call("add", call("add", helper(x), helper(helper(x))), loop(x))),
            helper: Function([y], y),
            loop: Function([z], loop(helper(z))),
            alone: Function([w], w),
        }
    )


def test_calls_are_counted() -> None:
    """By callee and by caller."""
    graph = CallGraph(module())
    assert graph.ref_count("helper") == 4
    assert graph.ref_count(loop) == 2
    assert graph.ref_count("alone") == 0
    assert graph.global_call_count("main") == 4
    assert graph.callees("main") == [helper, loop]


def test_recursion_and_reachability() -> None:
    """A function that calls itself is recursive; what is not called from the entry is not reachable."""
    graph = CallGraph(module())
    assert graph.is_recursive("loop")
    assert not graph.is_recursive("main")
    assert graph.reachable("main") == [main, helper, loop]
    order = graph.topological_order()
    assert order.index(helper) < order.index(loop) < order.index(main)


def test_the_text_names_calls() -> None:
    """One paragraph a function."""
    graph = CallGraph(module())
    assert "#refs = 2\n  call site: helper (1)\n  call site: loop (1)" in str(graph)
    with pytest.raises(TilewrightError, match="no function gone"):
        graph.ref_count("gone")
