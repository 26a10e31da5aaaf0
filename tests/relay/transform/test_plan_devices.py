"""PlanDevices, by the text before and after; the default device is the GPU (2), annotations name the CPU (1)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.relay.programs import call, let_chain
from tests.relay.transform.text import check, module

import tilewright as tvm
from tilewright import relay
from tilewright.relay.analysis.devices import DeviceConflict, DevicePlan
from tilewright.relay.infer import infer_module
from tilewright.relay.transform import PlanDevices
from tilewright.support.errors import TilewrightError

PARAMS = "%a: $T, %b: $T, %c: $T, %d: $T"
PROGRAMS = {
    "no annotation": (
        "def @main(%a: $T, %b: $T) { add(%a, %b) }",
        "def @main(%a: $T, %b: $T, param_device_types=[2, 2], result_device_type=2) { add(%a, %b) }",
    ),
    "the left operand": (
        f"""
        def @main({PARAMS}) {{
          %0 = add(%a, %b);
          %1 = on_device(%0, device_type=1);
          %2 = add(%c, %d);
          subtract(%1, %2)
        }}
        """,
        f"""
        def @main({PARAMS}, param_device_types=[1, 1, 2, 2], result_device_type=2) {{
          %0 = add(%a, %b);
          %1 = on_device(%0, device_type=1, is_fixed=True);
          %2 = device_copy(%1, src_dev_type=1, dst_dev_type=2);
          %3 = add(%c, %d);
          subtract(%2, %3)
        }}
        """,
    ),
    "a value used twice": (
        """
        def @main(%a: $T, %b: $T) {
          %0 = add(%a, %b);
          %1 = on_device(%0, device_type=1);
          %2 = on_device(%0, device_type=1);
          subtract(%1, %2)
        }
        """,
        """
        def @main(%a: $T, %b: $T, param_device_types=[1, 1], result_device_type=2) {
          %0 = add(%a, %b);
          %1 = on_device(%0, device_type=1, is_fixed=True);
          %2 = device_copy(%1, src_dev_type=1, dst_dev_type=2);
          %3 = on_device(%0, device_type=1, is_fixed=True);
          %4 = device_copy(%3, src_dev_type=1, dst_dev_type=2);
          subtract(%2, %4)
        }
        """,
    ),
    "a let": (
        f"""
        def @main({PARAMS}) {{
          let %l = add(%a, %b);
          let %r = add(%c, %d);
          %0 = on_device(%l, device_type=1);
          subtract(%0, %r)
        }}
        """,
        f"""
        def @main({PARAMS}, param_device_types=[1, 1, 2, 2], result_device_type=2) {{
          %0 = add(%a, %b);
          let %l = on_device(%0, device_type=1, is_fixed=True);
          let %r = add(%c, %d);
          %1 = device_copy(%l, src_dev_type=1, dst_dev_type=2);
          subtract(%1, %r)
        }}
        """,
    ),
    "a function's result": (
        """
        def @main(%a: $T, %b: $T, %c: $T) {
          let %f = fn (%x: $T, %y: $T) { on_device(add(%x, %y), device_type=1) };
          subtract(%f(%a, %b), %c)
        }
        """,
        None,
    ),
    "a result that is fixed": (
        """
        def @main(%a: $T, %b: $T) { on_device(add(%a, %b), device_type=1, is_fixed=True) }
        """,
        """
        def @main(%a: $T, %b: $T, param_device_types=[1, 1], result_device_type=1) {
          add(%a, %b)
        }
        """,
    ),
    "an annotation that changes nothing": (
        "def @main(%a: $T) { exp(on_device(negative(%a), device_type=2)) }",
        """
        def @main(%a: $T, param_device_types=[2], result_device_type=2) { exp(negative(%a)) }
        """,
    ),
    "an explicit copy": (
        "def @main(%a: $T) { exp(device_copy(negative(%a), src_dev_type=1, dst_dev_type=2)) }",
        """
        def @main(%a: $T, param_device_types=[1], result_device_type=2) {
          %0 = on_device(negative(%a), device_type=1, is_fixed=True);
          exp(device_copy(%0, src_dev_type=1, dst_dev_type=2))
        }
        """,
    ),
    "a tuple": (
        """
        def @main(%a: $T, %b: $T) {
          %0 = on_device((exp(%a), %b), device_type=1);
          negative(%0.1)
        }
        """,
        """
        def @main(%a: $T, %b: $T, param_device_types=[1, 1], result_device_type=2) {
          %0 = (exp(%a), %b);
          %1 = on_device(%0.1, device_type=1, is_fixed=True);
          negative(device_copy(%1, src_dev_type=1, dst_dev_type=2))
        }
        """,
    ),
    "a branch": (
        """
        def @main(%c: bool, %a: $T, %b: $T) {
          if (%c) { exp(on_device(negative(%a), device_type=1)) } else { %b }
        }
        """,
        None,
    ),
    "a global function": (
        """
        def @f(%x: $T) -> $T { on_device(exp(%x), device_type=1, is_fixed=True) }
        def @main(%a: $T) -> $T { negative(on_device(@f(%a), device_type=1)) }
        """,
        """
        def @f(%x: $T, param_device_types=[1], result_device_type=1) -> $T {
          exp(%x)
        }
        def @main(%a: $T, param_device_types=[1], result_device_type=2) -> $T {
          negative(device_copy(on_device(@f(%a), device_type=1, is_fixed=True), src_dev_type=1, dst_dev_type=2))
        }
        """,
    ),
    "a reference": (
        """
        def @main(%a: $T) {
          let %r = ref(on_device(exp(%a), device_type=1));
          %0 = ref_read(%r);
          on_device(negative(%0), device_type=1)
        }
        """,
        """
        def @main(%a: $T, param_device_types=[1], result_device_type=1) {
          let %r = ref(exp(%a));
          negative(ref_read(%r))
        }
        """,
    ),
}


@pytest.mark.parametrize("name", [name for name, (_, after) in PROGRAMS.items() if after is not None])
def test_programs(name: str) -> None:
    """The program with the plan written into it."""
    before, after = PROGRAMS[name]
    assert after is not None
    check(before, PlanDevices(tvm.cuda()), after)


@pytest.mark.parametrize("name", PROGRAMS)
def test_planning_again_changes_nothing(name: str) -> None:
    """The plan of a planned program is the same, whatever the default."""
    once = PlanDevices(tvm.cuda())(module(PROGRAMS[name][0]))
    again = PlanDevices(tvm.cpu())(once)
    tvm.ir.assert_structural_equal(infer_module(again), infer_module(once))


@pytest.mark.parametrize("name", PROGRAMS)
def test_values_stay(name: str) -> None:
    """The interpreter gives the same before and after."""
    before = infer_module(module(PROGRAMS[name][0]))
    generator = np.random.default_rng(0)
    arguments: list[Any] = []
    for parameter in before["main"].params:
        scalar = not parameter.checked_type.shape
        arguments.append(np.array(True) if scalar else generator.standard_normal(4).astype("float32"))
    values = [
        relay.create_executor("debug", mod=one).evaluate()(*arguments).numpy()
        for one in (before, PlanDevices("cuda")(before))
    ]
    np.testing.assert_array_equal(*values)


def test_functions_have_devices_of_their_own() -> None:
    """A let-bound function whose body ends on a device gives its result there; its calls follow."""
    made = PlanDevices(tvm.cuda())(module(PROGRAMS["a function's result"][0]))["main"]
    inner = made.body.value
    assert list(inner.attrs["param_device_types"]) == [1, 1]
    assert inner.attrs["result_device_type"] == 1
    assert list(made.attrs["param_device_types"]) == [1, 1, 1]
    assert made.attrs["result_device_type"] == 1


def test_the_condition_lies_with_the_branches() -> None:
    """The value that is annotated is copied into the branch."""
    made = PlanDevices(tvm.cuda())(module(PROGRAMS["a branch"][0]))["main"]
    assert list(made.attrs["param_device_types"]) == [2, 1, 2]
    assert made.attrs["result_device_type"] == 2
    assert made.body.true_branch.args[0].op.name == "device_copy"


def test_the_plan_answers_for_every_expression() -> None:
    """``device_of`` an expression of the program."""
    mod = infer_module(module(PROGRAMS["the left operand"][0]))
    plan = DevicePlan(mod, 2)
    subtract = mod["main"].body
    left, right = subtract.args
    assert [plan.device_of(one) for one in (subtract, left, left.args[0], right)] == [2, 2, 1, 2]
    assert plan.param_devices(mod["main"]) == [1, 1, 2, 2]


CONFLICTS = {
    "fixed operands": """
        def @main(%a: $T, %b: $T) {
          add(on_device(exp(%a), device_type=1, is_fixed=True), on_device(exp(%b), device_type=2, is_fixed=True))
        }
        """,
    "a parameter": """
        def @main(%a: $T, param_device_types=[1], result_device_type=2) { exp(%a) }
        """,
    "two annotations": """
        def @main(%a: $T) {
          %0 = exp(%a);
          add(on_device(%0, device_type=1), on_device(%0, device_type=2))
        }
        """,
}


@pytest.mark.parametrize("name", CONFLICTS)
def test_conflicts(name: str) -> None:
    """Two devices for one value: the message names both."""
    with pytest.raises(DeviceConflict, match=r"on cpu and on cuda|on cuda and on cpu"):
        PlanDevices(tvm.cpu())(module(CONFLICTS[name]))


def test_what_cannot_be_copied() -> None:
    """A reference does not cross to another device."""
    text = """
        def @main(%a: $T) {
          let %r = ref(exp(%a));
          %0 = on_device(%r, device_type=1);
          on_device(ref_read(%0), device_type=2, is_fixed=True)
        }
        """
    with pytest.raises(TilewrightError, match="a value of type ref"):
        PlanDevices(tvm.cpu())(module(text))


def test_long_chains() -> None:
    """Ten thousand lets, and ten thousand operators in a row."""
    function = let_chain(10_000)
    made = PlanDevices("cuda")(tvm.IRModule.from_expr(function))["main"]
    assert made.attrs["result_device_type"] == 2
    x = relay.var("x", shape=(4,))
    body: Any = relay.annotation.on_device(call("exp", x), "cpu")
    for _ in range(10_000):
        body = call("exp", body)
    made = PlanDevices("cuda")(tvm.IRModule.from_expr(relay.Function([x], body)))["main"]
    assert list(made.attrs["param_device_types"]) == [1]


def test_a_planned_program_runs_compiled() -> None:
    """Where all devices are the CPU, annotations and copies cost nothing but the copies."""
    mod = PlanDevices(tvm.cpu())(module("def @main(%a: $T) { exp(on_device(negative(%a), device_type=2)) }"))
    value = np.array([0.0, 1.0, 2.0, 3.0], "float32")
    found = relay.create_executor("graph", mod=mod).evaluate()(value).numpy()
    np.testing.assert_allclose(found, np.exp(-value), rtol=1e-6)
