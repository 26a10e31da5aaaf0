"""Whole models on another machine: the graph executor and the virtual machine."""

import numpy as np
import pytest

import tilewright as tvm
from tilewright import nd, relay, rpc
from tilewright.contrib import graph_executor
from tilewright.driver import tvmc
from tilewright.runtime.vm import VirtualMachine


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A small model, its inputs and its result."""
    x, w = relay.var("x", shape=(2, 8)), relay.var("w", shape=(4, 8))
    body = relay.nn.relu(relay.nn.dense(x, w))
    module = tvm.IRModule.from_expr(relay.Function([x, w], body))
    random = np.random.default_rng(0)
    values, weights = (random.standard_normal(shape).astype("float32") for shape in ((2, 8), (4, 8)))
    folder = tmp_path_factory.mktemp("model")
    library = relay.build(module, "llvm", params={"w": weights})
    library.export_library(str(folder / "graph.tar"))
    relay.vm.compile(module, "llvm", params={"w": weights}).mod.export_library(str(folder / "vm.tar"))
    tvmc.compile(
        tvmc.TVMCModel(module, {"w": nd.array(weights)}), "llvm", package_path=str(folder / "package.tar")
    )
    return folder, library, values, np.maximum(values @ weights.T, 0)


@pytest.fixture
def remote(server):
    with rpc.connect("127.0.0.1", server.port) as session:
        yield session


def test_graph_executor(remote, model):
    folder, library, values, wanted = model
    remote.upload(folder / "graph.tar")
    loaded, device = remote.load_module("graph.tar"), remote.cpu()
    module = graph_executor.GraphModule(loaded["default"](device))
    module.set_input("x", values)
    module.run()
    np.testing.assert_allclose(module.get_output(0).numpy(), wanted, rtol=1e-5)
    assert module.get_input_info() == ({"x": (2, 8)}, {"x": "float32"})
    module.run(x=nd.array(values + 1, device))
    module.run(x=values)
    np.testing.assert_allclose(module.get_output(0, nd.empty((2, 4))).numpy(), wanted, rtol=1e-5)
    assert 0 < module.benchmark(device, repeat=2, number=3).mean < 1
    with pytest.raises(ValueError, match="the graph has no input"):
        module.module.set_input("nonsense", values)
    made = graph_executor.create(library.get_graph_json(), loaded, device)
    made.load_params(relay.save_param_dict(library.get_params()))
    made.run(x=values)
    np.testing.assert_allclose(made.get_output(0).numpy(), wanted, rtol=1e-5)
    with pytest.raises(ValueError, match="is not a device of"):
        graph_executor.create(library.get_graph_json(), loaded, tvm.cpu())


def test_virtual_machine(remote, model):
    folder, _, values, wanted = model
    remote.upload(folder / "vm.tar")
    machine = VirtualMachine(remote.load_module("vm.tar"), remote.cpu())
    np.testing.assert_allclose(machine.invoke("main", values).numpy(), wanted, rtol=1e-5)
    np.testing.assert_allclose(machine.run(x=values).numpy(), wanted, rtol=1e-5)
    machine.set_input("main", values)
    assert 0 < machine.benchmark(remote.cpu(), values, repeat=1, number=3).mean < 1


def test_tvmc_runs_there(server, model):
    """The command's options, with the profile of the kernels there."""
    folder, _, values, wanted = model
    package = tvmc.TVMCPackage(str(folder / "package.tar"))
    result = tvmc.run(
        package,
        "cpu",
        hostname="127.0.0.1",
        port=server.port,
        inputs={"x": values},
        repeat=2,
        number=2,
        profile=True,
    )
    np.testing.assert_allclose(result.outputs["output_0"], wanted, rtol=1e-5)
    assert result.times.mean > 0
    assert result.profile.total_seconds > 0
    with pytest.raises(tvmc.errors.TVMCException, match="no device cuda"):
        tvmc.run(package, "cuda", hostname="127.0.0.1", port=server.port)
    with pytest.raises(tvmc.errors.TVMCException, match="give its hostname"):
        tvmc.run(package, "cpu", rpc_key="board")
