"""The watch over one compilation."""

import pytest

import tilewright as tvm
from tilewright import relay
from tilewright.driver.profile.passes import OUTSIDE, CompileWatch
from tilewright.ir.transform import PassInfo


def test_time_of_inner_passes_is_taken_from_the_outer():
    """A pass that runs another has the rest as its own, and the totals are the whole."""
    watch = CompileWatch()
    module = tvm.IRModule()
    outer, inner = PassInfo(0, "outer", []), PassInfo(0, "inner", [])
    watch.run_before_pass(module, outer)
    for _ in range(2):
        watch.run_before_pass(module, inner)
        watch.run_after_pass(module, inner)
    watch.run_after_pass(module, outer)
    watch.finish()
    assert [(run.name, run.depth) for run in watch.runs] == [("outer", 0), ("inner", 1), ("inner", 1)]
    first, *rest = watch.runs
    assert first.own_seconds == pytest.approx(first.seconds - sum(run.seconds for run in rest))
    totals = {one.name: one for one in watch.totals()}
    assert totals["inner"].runs == 2
    assert sum(one.seconds for one in totals.values()) == pytest.approx(watch.seconds)


def test_a_build_leaves_graph_and_loops():
    """The graph before fusion has operators still apart; every kernel's loops are kept under its name."""
    x = relay.var("x", shape=(4, 4))
    watch = CompileWatch()
    with tvm.transform.PassContext(opt_level=3, instruments=[watch]):
        factory = relay.build(relay.Function([x], relay.nn.relu(relay.exp(x))), "llvm")
    watch.finish()
    body = watch.before_fusion["main"].body
    assert body.op.name == "nn.relu" and body.args[0].op.name == "exp"
    (kernel,) = watch.loops
    assert kernel in factory.get_graph_json()
    assert f"def {kernel}(" in watch.loops[kernel].script()
    assert OUTSIDE in {one.name for one in watch.totals()}
