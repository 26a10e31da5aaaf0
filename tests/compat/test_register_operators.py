"""``relay.op.register_*`` on operators of a program's own: what is registered is there, and the compiler uses it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import tilewright as tvm
from tilewright import relay, te, topi
from tilewright.relay.backend import te_compiler
from tilewright.relay.op import op as registry
from tilewright.relay.op.layout_rules import elementwise
from tilewright.relay.op.strategy import generic
from tilewright.relay.qnn.integers.affine import TensorAffineType
from tilewright.strategy import forget

CPU = tvm.target.Target("llvm")
DATA = np.arange(-4, 4, dtype="float32")


def operator(name: str, inputs: int = 1, relation: Any = None) -> Any:
    """A new operator whose result has the type of its first argument, and a function that calls it."""
    made = registry.register(name, "an operator of a test")
    made.set_num_inputs(inputs)
    made.add_type_rel("Own", relation or (lambda types, attrs: types[0]))
    return lambda *arguments: relay.Call(made, list(arguments))


def scaled(factor: float) -> Any:
    """A computation: every element times a factor."""
    return lambda attrs, inputs, out_type: [
        te.compute(inputs[0].shape, lambda *indices: inputs[0](*indices) * tvm.tir.const(factor, "float32"))
    ]


def of_x(call: Any, shape: Sequence[Any] = DATA.shape) -> tvm.IRModule:
    """The module that calls an operator on its input."""
    x = relay.var("x", shape=tuple(shape))
    return tvm.IRModule.from_expr(relay.Function([x], call(x)))


def check(module: tvm.IRModule, values: np.ndarray[Any, Any], expected: Any) -> None:
    """Compile the module for this machine and compare what it computes."""
    made = relay.create_executor("graph", module, tvm.cpu(0), "llvm").evaluate()(values)
    np.testing.assert_allclose(made.numpy(), expected, rtol=1e-5)


def calls(module: tvm.IRModule) -> list[str]:
    """The operators that the main function calls, in order."""
    found: list[str] = []
    relay.analysis.post_order_visit(
        module["main"], lambda node: found.append(node.op.name) if isinstance(node, relay.Call) else None
    )
    return found


def test_a_computation() -> None:
    """As a decorator and directly; of two the one with the higher level is compiled."""
    call = operator("test.register.compute")

    @registry.register_compute("test.register.compute", level=5)
    def doubled(attrs: Any, inputs: Any, out_type: Any) -> Any:
        return scaled(2)(attrs, inputs, out_type)

    registry.register_injective_schedule("test.register.compute")
    assert relay.op.get("test.register.compute").get_attr("FTVMCompute") is doubled
    check(of_x(call), DATA, 2 * DATA)
    registry.register_compute("test.register.compute", scaled(3), level=6)
    registry.register_compute("test.register.compute", scaled(4), level=4)
    check(of_x(call), DATA, 3 * DATA)
    with pytest.raises(tvm.error.OpError, match="already set at level 6"):
        registry.register_compute("test.register.compute", scaled(5), level=6)


def test_a_strategy() -> None:
    """The implementation with the highest level is selected, compiled, and scheduled as it says."""
    call = operator("test.register.strategy")
    scheduled: list[str] = []

    def schedule(name: str) -> Any:
        def made(attrs: Any, outs: Any, target: Any) -> Any:
            scheduled.append(name)
            return te.create_schedule([out.op for out in outs])

        return made

    @registry.register_strategy("test.register.strategy")
    def strategy(attrs: Any, inputs: Any, out_type: Any, target: Any) -> Any:
        made = registry.OpStrategy()
        made.add_implementation(scaled(2), schedule("low"), name="low", plevel=5)
        made.add_implementation(scaled(3), schedule("high"), name="high", plevel=15)
        return made

    op = relay.op.get("test.register.strategy")
    assert op.get_attr("FTVMStrategy") is strategy
    inputs, out_type = [te.placeholder((8,))], relay.TensorType((8,))
    for use_autotvm in (True, False):
        one, (out,) = te_compiler.select_implementation(op, None, inputs, out_type, CPU, use_autotvm)
        assert (one.name, one.plevel) == ("high", 15)
        assert list(out.shape) == [8] and out.dtype == "float32"
    check(of_x(call), DATA, 3 * DATA)
    assert set(scheduled) == {"high"}


@pytest.mark.parametrize(
    ("register", "kind", "compute", "expected"),
    [
        (registry.register_injective_schedule, "injective", topi.exp, np.exp(DATA)),
        (
            registry.register_broadcast_schedule,
            "injective",
            lambda x: topi.add(x, topi.sum(x, keepdims=True)),
            DATA + DATA.sum(),
        ),
        (registry.register_reduce_schedule, "reduce", lambda x: topi.sum(x, keepdims=True), DATA.sum()),
    ],
)
def test_schedules_of_a_kind(register: Any, kind: str, compute: Any, expected: Any) -> None:
    """The operator follows its kind: the target's schedule, or one that is registered for the kind under a key."""
    name, key = f"test.register.{register.__name__}", f"key_of_{register.__name__}"
    shape = np.broadcast_shapes(np.shape(expected), (1,))
    call = operator(name, relation=lambda types, attrs: relay.TensorType(shape, types[0].dtype))
    registry.register_compute(name, lambda attrs, inputs, out_type: [compute(inputs[0])])
    register(name)
    module = of_x(call)
    check(module, DATA, np.reshape(expected, shape))
    seen: list[Any] = []

    def mine(attrs: Any, outs: Any, target: Any) -> Any:
        seen.append(outs)
        return te.create_schedule([out.op for out in outs])

    schedule = getattr(generic, f"schedule_{kind}")
    schedule.register(key, mine)
    try:
        relay.build(module, tvm.target.Target(f"llvm -keys={key},cpu"))
        assert len(seen) == 1
        relay.build(module, "llvm")
        assert len(seen) == 1
    finally:
        del schedule.dispatch_dict[key]
        forget(kind, key)


def test_state() -> None:
    """Two calls of an operator with an effect stay two."""
    eliminate = relay.transform.EliminateCommonSubexpr()
    for name, stateful, left in (("pure", False, 1), ("stateful", True, 2)):
        name = f"test.register.{name}"
        call = operator(name)
        registry.register_stateful(name, stateful)
        assert relay.op.get(name).get_attr("TOpIsStateful") is stateful
        module = of_x(lambda x, call=call: call(x) + call(x))
        assert calls(eliminate(relay.transform.InferType()(module))).count(name) == left


def test_fusion() -> None:
    """An elementwise operator is fused with its neighbours, an opaque one is a kernel of its own."""
    for pattern, kernels in ((registry.OpPattern.ELEMWISE, 1), (registry.OpPattern.OPAQUE, 3)):
        name = f"test.register.{pattern.name}"
        call = operator(name)
        registry.register_pattern(name, pattern)
        assert relay.op.get(name).get_attr("TOpPattern") == pattern
        module = of_x(lambda x, call=call: relay.exp(call(relay.negative(x))))
        fused = relay.transform.FuseOps(2)(relay.transform.InferType()(module))
        found: list[relay.Function] = []
        relay.analysis.post_order_visit(
            fused["main"].body,
            lambda node, found=found: found.append(node) if isinstance(node, relay.Function) else None,
        )
        assert len(found) == kernels


def test_replacements_of_calls() -> None:
    """Legalize, AlterOpLayout and ConvertLayout ask what is registered; None leaves a call."""
    asked: dict[str, list[Any]] = {}

    def replacement(attrs: Any, inputs: Any, types: Any, more: Any = None) -> Any:
        asked[str(more)] = types
        return relay.negative(inputs[0]) if types[0].shape[0] == 8 else None

    registers = {
        "legalize": (registry.register_legalize, relay.transform.Legalize()),
        "alter": (registry.register_alter_op_layout, relay.transform.AlterOpLayout()),
    }
    for kind, (register, transform) in registers.items():
        call = operator(f"test.register.{kind}")
        # Only what has a rule for layouts is brought to others.
        registry.register_infer_correct_layout(f"test.register.{kind}", elementwise)
        assert register(f"test.register.{kind}", replacement) is replacement
        with CPU, tvm.transform.PassContext(opt_level=3):
            assert calls(transform(of_x(call))) == ["negative"]
            assert calls(transform(of_x(call, (4,)))) == [f"test.register.{kind}"]
    # Legalize tells the types of the arguments and of the result, AlterOpLayout the result's apart.
    assert len(asked["None"]) == 2
    assert str(asked["Tensor[(4), float32]"]) == "[Tensor[(4), float32]]"

    call = operator("test.register.convert")
    registry.register_infer_correct_layout("test.register.convert", elementwise)

    @registry.register_convert_op_layout("test.register.convert")
    def convert(attrs: Any, inputs: Any, types: Any, layouts: Any) -> Any:
        return replacement(attrs, inputs, types, layouts)

    with tvm.transform.PassContext(opt_level=3):
        converted = relay.transform.ConvertLayout({"test.register.convert": ["NHWC", "default"]})
        assert calls(converted(of_x(call))) == ["negative"]
    assert str(asked["['NHWC', 'default']"]) == "[Tensor[(8), float32]]"
    with pytest.raises(tvm.error.TVMError, match="does not say how its layout is converted"):
        relay.transform.ConvertLayout({"test.register.legalize": ["NHWC"]})


def test_shape_functions() -> None:
    """The virtual machine asks the operator for the shape of a result that its type leaves open."""
    name = "test.register.twice"
    call = operator(name, relation=lambda types, attrs: relay.TensorType((relay.Any(),), types[0].dtype))

    @registry.register_compute(name)
    def twice(attrs: Any, inputs: Any, out_type: Any) -> Any:
        extent = inputs[0].shape[0]
        return [te.compute((extent * 2,), lambda i: inputs[0](i % extent))]

    @registry.register_shape_func(name, False)
    def shape_of_twice(attrs: Any, inputs: Any, out_ndims: Any) -> Any:
        assert [int(number) for number in out_ndims] == [1]
        return [te.compute((1,), lambda i: inputs[0](i) * 2)]

    registry.register_pattern(name, registry.OpPattern.OPAQUE)
    op = relay.op.get(name)
    assert op.get_attr("TShapeDataDependent") is False and op.get_attr("FShapeFunc") is shape_of_twice
    executor = relay.create_executor("vm", of_x(call, (relay.Any(),)), tvm.cpu(0), "llvm")
    for values in (DATA, DATA[:3]):
        np.testing.assert_array_equal(executor.evaluate()(values).numpy(), np.tile(values, 2))


def test_external_compilers() -> None:
    """What is registered is what the attribute gives."""
    operator("test.register.external")

    @registry.register_external_compiler("test.register.external")
    def external(attrs: Any, inputs: Any, compiler: str) -> bool:
        return compiler == "mine"

    found = relay.op.get("test.register.external").get_attr("FTVMExternalCompiler")
    assert found is external and found(None, [], "mine") and not found(None, [], "yours")


def test_integer_forms() -> None:
    """Between quantised tensors the operator becomes what its rule says."""
    call = operator("test.register.fake")
    seen: list[Any] = []

    @registry.register_fake_quantization_to_integer("test.register.fake")
    def rule(expr: Any, types: Any) -> Any:
        kind = types[expr.args[0]]
        seen.append(kind)
        return [relay.maximum(expr.args[0], kind.zero_point.astype("int8")), kind]

    x = relay.var("x", shape=(8,), dtype="int8")
    scale, zero = relay.const(0.5), relay.const(2)
    real = call(relay.qnn.op.dequantize(x, scale, zero))
    body = relay.qnn.op.quantize(real, scale, zero, out_dtype="int8")
    module = relay.transform.InferType()(tvm.IRModule.from_expr(relay.Function([x], body)))
    made = relay.transform.FakeQuantizationToInteger()(module)
    assert "qnn.quantize" not in calls(made) and "maximum" in calls(made)
    (kind,) = seen
    assert isinstance(kind, TensorAffineType) and kind.dtype == "int8"
    values = np.arange(-4, 4, dtype="int8")
    check(made, values, np.maximum(values, 2))
