"""PartitionGraph."""

from typing import Any

from tests.relay.programs import call, chain
from tests.relay.transform.regions import begin, end, supported
from tests.relay.transform.text import module

from tilewright.ir.module import IRModule
from tilewright.ir.structural import assert_structural_equal
from tilewright.relay import Function, Tuple, const, var
from tilewright.relay.infer import infer_module
from tilewright.relay.transform import AnnotateTarget, Inline, MergeCompilerRegions, PartitionGraph

x, y = var("x", shape=(4,)), var("y", shape=(4,))
ATTRIBUTES = 'Primitive=1, Inline=1, Compiler="test", global_symbol="tvmgen_default_test_main_%d"'


def partitioned(body: Any) -> IRModule:
    return PartitionGraph()(IRModule({"main": Function([x, y], body)}))


def expect(made: IRModule, text: str) -> None:
    assert_structural_equal(made, infer_module(module(text)))


def test_a_region_becomes_a_function() -> None:
    """Of what enters it; main calls it, and the default's marks are gone."""
    inner = end(call("add", begin(x), begin(y)))
    made = partitioned(end(call("exp", begin(inner, "default")), "default"))
    expect(
        made,
        f"""
        def @main(%x: $T, %y: $T) {{ exp(@tvmgen_default_test_main_0(%x, %y)) }}
        def @tvmgen_default_test_main_0(%a: $T, %b: $T, {ATTRIBUTES % 0}) {{ add(%a, %b) }}
        """,
    )


def test_several_results() -> None:
    """The function gives a tuple; a value that leaves twice is one field."""
    inner = call("exp", begin(x))
    made = partitioned(Tuple([end(inner), end(call("negative", inner)), end(inner)]))
    expect(
        made,
        f"""
        def @main(%x: $T, %y: $T) {{
          %0 = @tvmgen_default_test_main_0(%x);
          (%0.0, %0.1, %0.0)
        }}
        def @tvmgen_default_test_main_0(%a: $T, {ATTRIBUTES % 0}) {{ %0 = exp(%a); (%0, negative(%0)) }}
        """,
    )


def test_an_input_enters_once_and_constants_go_inside() -> None:
    """Two marks on one value make one parameter."""
    made = partitioned(end(call("add", call("add", begin(x), begin(x)), begin(const(1.0)))))
    expect(
        made,
        f"""
        def @main(%x: $T, %y: $T) {{ @tvmgen_default_test_main_0(%x) }}
        def @tvmgen_default_test_main_0(%a: $T, {ATTRIBUTES % 0}) {{ add(add(%a, %a), 1f) }}
        """,
    )


def test_constants_as_arguments() -> None:
    """Where they are not bound, they are arguments like others."""
    body = end(call("add", begin(x), begin(const(1.0))))
    made = PartitionGraph(bind_constants=False)(IRModule({"main": Function([x, y], body)}))
    expect(
        made,
        f"""
        def @main(%x: $T, %y: $T) {{ @tvmgen_default_test_main_0(%x, 1f) }}
        def @tvmgen_default_test_main_0(%a: $T, %b: float32, {ATTRIBUTES % 0}) {{ add(%a, %b) }}
        """,
    )


def test_regions_after_one_another() -> None:
    """Each is a function; names have a prefix."""
    first = end(call("exp", begin(x)))
    mod = IRModule(
        {
            "main": Function(
                [x], end(call("exp", begin(end(call("negative", begin(first, "default")), "default"))))
            )
        }
    )
    made = PartitionGraph("net")(mod)
    assert [name.name_hint for name in made.functions] == [
        "main",
        "tvmgen_net_test_main_0",
        "tvmgen_net_test_main_1",
    ]


def test_inlining_keeps_the_functions_of_other_compilers() -> None:
    """As functions at the place of the call."""
    made = Inline()(partitioned(end(call("exp", begin(x)))))
    assert [name.name_hint for name in made.functions] == ["main"]
    callee = made["main"].body.op
    assert callee.attrs["Compiler"] == "test"


def test_the_whole_way() -> None:
    """Marked, merged and taken out: ten thousand operators in one function."""
    with supported("exp"):
        mod = MergeCompilerRegions()(AnnotateTarget("test")(IRModule({"main": chain(10_000)})))
    made = PartitionGraph()(mod)
    function = made["tvmgen_default_test_main_0"]
    assert_structural_equal(function.body, chain(10_000).body, map_free_vars=True)
