"""``relay.build_module``, executor factories, what lowering calls, and tensor arrays, by TVM's names."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import tilewright as tvm
from tilewright import relay
from tilewright.contrib import graph_executor
from tilewright.relay.backend import executor_factory, te_compiler
from tilewright.relay.build_module import BuildModule, build_target_by_device_type_map
from tilewright.relay.interpreter import Interpreter
from tilewright.relay.prelude import Prelude, TensorArrayOps

WEIGHT = np.random.default_rng(3).normal(size=(4, 6)).astype("float32")
DATA = np.random.default_rng(4).normal(size=(2, 6)).astype("float32")
EXPECTED = np.maximum(DATA @ WEIGHT.T, 0)


def layer() -> tvm.IRModule:
    """A layer whose weight is a parameter."""
    x, w = relay.var("x", shape=DATA.shape), relay.var("w", shape=WEIGHT.shape)
    return tvm.IRModule.from_expr(relay.Function([x, w], relay.nn.relu(relay.nn.dense(x, w))))


def test_the_steps_of_a_build() -> None:
    """What ``build`` returns is what can be asked for afterwards, and runs."""
    module = BuildModule()
    with pytest.raises(tvm.error.TVMError, match="nothing is built yet"):
        module.get_graph_json()
    graph, library, params = module.build(layer(), "llvm", params={"w": WEIGHT}, mod_name="layer")
    assert module.get_graph_json() == graph and module.get_module() is library
    assert [node["name"] for node in json.loads(graph)["nodes"]][0] == "x"
    (value,) = module.get_params().values()
    assert list(module.get_params()) == list(params) and sorted(value.numpy().ravel()) == sorted(
        WEIGHT.ravel()
    )
    executor = graph_executor.create(graph, library, tvm.cpu(0))
    executor.set_input("x", DATA, **module.get_params())
    executor.run()
    np.testing.assert_allclose(executor.get_output(0).numpy(), EXPECTED, rtol=1e-5)


def test_sizes_of_functions() -> None:
    """The model and each kernel, in bytes by target; ahead-of-time builds keep the loops, and know their scratch."""
    x, w = relay.var("x", shape=DATA.shape), relay.var("w", shape=WEIGHT.shape)
    body = relay.nn.softmax(relay.nn.relu(relay.nn.dense(x, w)))
    model = tvm.IRModule.from_expr(relay.Function([x, w], body))
    for executor, target in (("graph", "llvm"), ("aot", "c")):
        module = BuildModule()
        with tvm.transform.PassContext(opt_level=0):
            module.build(model, target, params={"w": WEIGHT}, executor=executor, mod_name="sized")
        found = dict(module.get_function_metadata())
        main = found.pop("__tvm_main__")
        (own,) = main.io_sizes
        assert own.kind.name == target
        assert main.io_sizes == {own: (2 * 6 + 2 * 4) * 4}
        assert main.constant_sizes == {own: WEIGHT.nbytes}
        # The results of dense and relu: the one is read while the other is written.
        assert main.workspace_sizes[own] >= 2 * 2 * 4 * 4
        assert main.relay_primfuncs[own].params[0].name_hint == "x"
        dense, relu, softmax = found.values()
        assert dense.io_sizes == {own: DATA.nbytes + WEIGHT.nbytes + 2 * 4 * 4}
        assert relu.io_sizes == softmax.io_sizes == {own: 2 * 2 * 4 * 4}
        assert relu.relay_primfuncs[own].body.op.name == "nn.relu"
        for name, one in found.items():
            assert (
                list(one.tir_primfuncs) == list(one.workspace_sizes) == ([own] if executor == "aot" else [])
            )
            for function in one.tir_primfuncs.values():
                assert str(function.attrs["global_symbol"]) == name
        if executor == "aot":
            assert relu.workspace_sizes == {own: 0} and softmax.workspace_sizes[own] > 0


def test_optimisation_without_code() -> None:
    """``optimize`` gives the module after the passes, with parameters as constants."""
    made, left = BuildModule().optimize(layer(), "llvm", {"w": WEIGHT})
    assert not left and [parameter.name_hint for parameter in made["main"].params] == ["x"]
    value = relay.create_executor("debug", made).evaluate()(DATA)
    np.testing.assert_allclose(value.numpy(), EXPECTED, rtol=1e-5)


def test_targets_by_the_kind_of_their_device() -> None:
    """The numbers are DLPack's; targets may be objects or text, one or one a device."""
    assert list(build_target_by_device_type_map("llvm")) == [tvm.cpu().device_type]
    found = build_target_by_device_type_map({"cpu": "llvm -mcpu=generic", "cuda": tvm.target.Target("cuda")})
    assert {number: target.kind.name for number, target in found.items()} == {1: "llvm", 2: "cuda"}
    assert found[1].mcpu == "generic"


def test_configurations_of_executors() -> None:
    """The graph for the graph executor, nothing for ahead-of-time code; a factory of another kind says its own."""
    graph = relay.build(layer(), "llvm", params={"w": WEIGHT})
    assert graph.get_executor_config() == graph.get_graph_json()
    ahead = relay.build(layer(), "c -executor=aot", params={"w": WEIGHT})
    assert isinstance(ahead, executor_factory.AOTExecutorFactoryModule)
    assert ahead.get_executor_config() is None and tuple(ahead)[1] is ahead.get_lib()

    class Own(executor_factory.ExecutorFactoryModule):
        lib, params = "library", {"w": 1}

        def get_executor_config(self) -> Any:
            with pytest.raises(NotImplementedError):
                super().get_executor_config()
            return {"threads": 2}

    config, library, params = Own()  # type: ignore[misc]
    assert (config, library, params) == ({"threads": 2}, "library", {"w": 1})


def test_shapes_of_tensor_expressions() -> None:
    """Known dimensions are of the indices' type where they fit; each unknown one becomes a variable of its own."""
    batch = tvm.tir.Var("batch", "int32")
    large = tvm.tir.IntImm("int64", 1 << 40)
    shape = [tvm.tir.IntImm("int64", 3), relay.Any(), relay.Any(), batch, large]
    known, first, second, *rest = te_compiler.get_shape(shape)
    assert known == 3 and known.dtype == "int32"
    assert isinstance(first, tvm.tir.SizeVar) and isinstance(second, tvm.tir.SizeVar) and first is not second
    assert rest[0] is batch and rest[1] is large


def test_densenet() -> None:
    """The workload has values for every parameter, and the result one number a class."""
    module, params = relay.testing.densenet.get_workload(classes=7, batch_size=1, image_shape=(3, 64, 64))
    main = relay.transform.InferType()(module)["main"]
    assert tuple(main.ret_type.shape) == (1, 7)
    shapes = {one.name_hint: tuple(one.checked_type.shape) for one in main.params if one.name_hint != "data"}
    assert shapes == {name: value.shape for name, value in params.items()}


@pytest.mark.parametrize("rank", range(1, 7))
def test_unstacking_tensor_arrays(rank: int) -> None:
    """A tensor of each rank comes apart along its first axis, into tensors of one rank less."""
    prelude = Prelude(tvm.IRModule())
    arrays = TensorArrayOps(prelude, "float64")
    arrays.define_tensor_adt()
    getattr(arrays, f"define_tensor_array_unstack_tensor{rank}")()
    assert arrays.get_type("tensor_t").name_hint == "tensor_float64_t"
    constructor = arrays.get_ctor(f"tensor{rank - 1}")
    assert constructor.belong_to is arrays.get_type("tensor_t")
    function = arrays.get_global_var(f"tensor_array_unstack_tensor{rank}")
    assert function in prelude.mod.get_global_vars()

    values = np.arange(3 * 2 ** (rank - 1), dtype="float64").reshape(3, *[2] * (rank - 1))
    x = relay.var("x", shape=values.shape, dtype="float64")
    prelude.mod["main"] = relay.Function([x], function(x))
    module = relay.transform.InferType()(prelude.mod)
    found = Interpreter(module).run(module["main"], [values])
    parts = []
    while len(found):
        head, found = found
        assert head.constructor == constructor
        parts.append(head[0])
    np.testing.assert_array_equal(np.stack(parts), values)
