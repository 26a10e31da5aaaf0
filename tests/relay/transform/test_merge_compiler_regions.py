"""MergeCompilerRegions."""

from typing import Any

from tests.relay.programs import call, chain
from tests.relay.transform.regions import begin, end, supported

from tilewright.ir.module import IRModule
from tilewright.ir.structural import assert_structural_equal
from tilewright.relay import Function, var
from tilewright.relay.analysis import list_op_freqs
from tilewright.relay.transform import AnnotateTarget, MergeCompilerRegions

x, y = var("x", shape=(4,)), var("y", shape=(4,))


def expect(body: Any, after: Any) -> None:
    """Marked for a target that takes exp and multiply, then merged."""
    with supported("exp", "multiply"):
        mod = AnnotateTarget("test")(IRModule({"main": Function([x, y], body)}))
    made = MergeCompilerRegions()(mod)["main"]
    assert_structural_equal(Function(made.params, made.body), Function([x, y], after))


def test_neighbours_become_one() -> None:
    """Without marks between them."""
    expect(call("exp", call("exp", x)), end(call("exp", call("exp", begin(x)))))


def test_a_diamond_of_one_target_becomes_one() -> None:
    """Both ways are inside."""
    root = call("exp", x)
    inner = call("exp", begin(x))
    expect(
        call("multiply", call("exp", root), root),
        end(call("multiply", call("exp", inner), inner)),
    )


def test_a_way_through_the_default_keeps_regions_apart() -> None:
    """The last operator takes what the default computes from the first: it cannot be with the first."""
    root = call("exp", x)
    body = call("multiply", call("exp", root), call("negative", root))
    inner = call("exp", begin(x))
    left = end(call("exp", inner))
    right = end(call("negative", begin(end(inner), "default")), "default")
    expect(body, end(call("multiply", begin(left), begin(right))))


def test_regions_after_the_detour_merge_on() -> None:
    """What follows the last operator joins it."""
    root = call("exp", x)
    body = call("exp", call("multiply", root, call("negative", root)))
    inner = call("exp", begin(x))
    right = end(call("negative", begin(end(inner), "default")), "default")
    expect(body, end(call("exp", call("multiply", begin(end(inner)), begin(right)))))


def test_long_chains() -> None:
    """Ten thousand operators become one region."""
    with supported("exp"):
        mod = AnnotateTarget("test")(IRModule({"main": chain(10_000)}))
    counts = list_op_freqs(MergeCompilerRegions()(mod))
    assert counts == {"exp": 10_000, "annotation.compiler_begin": 1, "annotation.compiler_end": 1}
