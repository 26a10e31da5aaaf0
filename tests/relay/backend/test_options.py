"""Executors and runtimes as values."""

import numpy as np
import pytest

from tilewright import relay
from tilewright.contrib.graph_executor import GraphModule
from tilewright.ir.module import IRModule
from tilewright.relay.backend.options import Executor, Runtime
from tilewright.relay.backend.targets import build_targets, with_options
from tilewright.runtime.device import cpu
from tilewright.support.errors import TilewrightError


def test_options_have_defaults_and_types() -> None:
    """What is not given has its default; a wrong name or type is said."""
    executor = Executor("aot", {"interface-api": "c"})
    assert str(executor) == "aot" and executor["interface-api"] == "c" and not executor["link-params"]
    assert "unpacked-api" not in executor and executor == Executor("aot", {"interface-api": "c"})
    assert Runtime("c", {"system-lib": True}) != Runtime("c") and "crt" in Runtime.list_runtimes()
    assert Executor.list_executor_options(executor)["interface-api"] == "runtime.String"
    with pytest.raises(TilewrightError, match='Executor "tree" is not defined; there are: graph, aot'):
        Executor("tree")
    with pytest.raises(TilewrightError, match='"bark" is not available on this Runtime; it has: system-lib'):
        Runtime("cpp", {"bark": 1})
    with pytest.raises(TilewrightError, match='should have type "IntImm" but instead found "runtime.String"'):
        Runtime("cpp", {"system-lib": "yes"})


def test_a_model_is_built_for_them() -> None:
    """``relay.build`` takes what they say as it takes options of the target."""
    assert Executor.list_registered() == ["graph", "aot"] and Runtime.list_registered()[0] == "cpp"
    assert Executor.list_registered_options("graph") == {"link-params": "IntImm"}
    x, w = relay.var("x", shape=(1, 4)), relay.var("w", shape=(2, 4))
    model = IRModule.from_expr(relay.Function([x, w], relay.nn.dense(x, w)))
    params = {"w": np.arange(8, dtype="float32").reshape(2, 4)}
    linked = relay.build(
        model,
        "llvm",
        params=params,
        executor=Executor("graph", {"link-params": True}),
        runtime=Runtime("cpp"),
    )
    executor = GraphModule(linked["default"](cpu()))
    executor.run(x=np.ones((1, 4), "float32"))
    assert executor.get_output(0).numpy().tolist() == [[6, 22]]
    assert linked.lib.implements_function("_lookup_linked_param", query_imports=True)
    c_interface = Executor("aot", {"interface-api": "c", "unpacked-api": True})
    ahead = relay.build(model, "c", params=params, executor=c_interface, runtime=Runtime("crt"))
    assert ahead.lib.interface == "c"
    on_gpu = with_options(
        build_targets("cuda", "llvm"), Executor("graph", {"link-params": True}).target_options()
    )
    assert on_gpu.host.attrs["link-params"] and on_gpu.default.host.attrs["link-params"]
