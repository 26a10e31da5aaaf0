"""oneDNN, OpenBLAS and ONNX Runtime compute what the compiled model computes, in the same artefact."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilewright as tvm
from tilewright import relay, te
from tilewright.contrib import cblas, graph_executor
from tilewright.relay.backend.byoc import partition_for
from tilewright.relay.backend.byoc.report import refusals
from tilewright.relay.infer import infer_module
from tilewright.relay.op.contrib import BACKENDS, get_backend
from tilewright.support.errors import TilewrightError

GENERATOR = np.random.default_rng(0)
X = GENERATOR.normal(size=(1, 8, 12, 12)).astype("float32")

NEEDED = {"onednn": "libdnnl", "openblas": "scipy_openblas32", "onnxruntime": "onnxruntime"}


def needs(backend: str) -> None:
    """Skip where the backend's library is not installed."""
    reason = get_backend(backend).why_missing()
    if reason is not None:
        pytest.skip(reason)


def weights(*shape: int) -> Any:
    """A constant."""
    return relay.const(GENERATOR.normal(size=shape).astype("float32") * 0.2)


def network() -> tvm.IRModule:
    """Convolutions with all that follows them, pooling, a product and softmax."""
    x = relay.var("x", shape=X.shape)
    first = relay.nn.conv2d(x, weights(16, 8, 3, 3), padding=(1, 1))
    first = relay.nn.relu(relay.nn.bias_add(first, weights(16)))
    deep = relay.nn.conv2d(first, weights(16, 1, 3, 3), padding=(1, 1), groups=16, strides=(1, 1))
    deep = relay.clip(deep + weights(16, 1, 1), 0, 6)
    joined = relay.nn.relu(relay.nn.conv2d(deep, weights(16, 16, 1, 1)) + weights(16, 1, 1) + first)
    pooled = relay.nn.max_pool2d(joined, (3, 3), strides=(2, 2), padding=(1, 1))
    pooled = relay.nn.avg_pool2d(pooled, (2, 2), strides=(1, 1), padding=(1, 0), count_include_pad=False)
    flat = relay.nn.batch_flatten(relay.nn.global_avg_pool2d(pooled))
    hidden = relay.tanh(relay.nn.dense(flat, weights(12, 16)) + weights(12))
    scores = relay.nn.batch_matmul(relay.reshape(hidden, (1, 4, 3)), weights(1, 5, 3))
    return infer_module(tvm.IRModule.from_expr(relay.Function([x], relay.nn.softmax(scores))))


@pytest.fixture(scope="module")
def model() -> tvm.IRModule:
    """The network."""
    return network()


@pytest.fixture(scope="module")
def expected(model: tvm.IRModule) -> Any:
    """What the operators' references compute."""
    return relay.create_executor("debug", model).evaluate()(X).numpy()


def run(library: Any) -> Any:
    """The output."""
    executor = graph_executor.GraphModule(library["default"](tvm.cpu()))
    executor.run(x=X)
    executor.run(x=X)  # memory is used again
    return executor.get_output(0).numpy()


@pytest.mark.parametrize(
    "backends", [["onednn"], ["openblas"], ["onnxruntime"], ["openblas", "onednn"]], ids="-".join
)
def test_agreement_and_export(
    backends: list[str], model: tvm.IRModule, expected: Any, tmp_path: Path
) -> None:
    """The graph executor and the virtual machine agree with the reference, and so does what was loaded again."""
    for name in backends:
        needs(name)
    module = partition_for(model, backends)
    found = {str(one.attrs["Compiler"]) for one in module.functions.values() if one.attrs.get("Compiler")}
    assert found == set(backends)
    factory = relay.build(module, "llvm")
    np.testing.assert_allclose(run(factory), expected, rtol=1e-4, atol=1e-6)
    factory.export_library(str(tmp_path / "model.tar"))
    np.testing.assert_allclose(
        run(tvm.runtime.load_module(tmp_path / "model.tar")), expected, rtol=1e-4, atol=1e-6
    )
    value = relay.create_executor("vm", module).evaluate()(X).numpy()
    np.testing.assert_allclose(value, expected, rtol=1e-4, atol=1e-6)


def test_another_process(model: tvm.IRModule, expected: Any, tmp_path: Path) -> None:
    """A library with parts of two backends runs in a process that only imports the package."""
    for name in ("onednn", "openblas"):
        needs(name)
    relay.build(partition_for(model, ["openblas", "onednn"]), "llvm").export_library(str(tmp_path / "m.so"))
    np.save(tmp_path / "x.npy", X)
    program = (
        "import sys, numpy, tilewright as tvm; from tilewright.contrib import graph_executor as g;"
        "e = g.GraphModule(tvm.runtime.load_module(sys.argv[1] + '/m.so')['default'](tvm.cpu()));"
        "e.run(x=numpy.load(sys.argv[1] + '/x.npy')); numpy.save(sys.argv[1] + '/y.npy', e.get_output(0).numpy())"
    )
    subprocess.run([sys.executable, "-c", program, str(tmp_path)], check=True)
    np.testing.assert_allclose(np.load(tmp_path / "y.npy"), expected, rtol=1e-4, atol=1e-6)


def test_a_network_is_one_part(model: tvm.IRModule) -> None:
    """oneDNN takes all of the network, weights and post-operations included."""
    needs("onednn")
    module = partition_for(model, "onednn")
    assert len([one for one in module.functions.values() if one.attrs.get("Compiler")]) == 1
    assert isinstance(module["main"].body.op, relay.GlobalVar)


def test_reasons(model: tvm.IRModule) -> None:
    """Why an operator is not taken: its data type, its layout, its window, or that nobody has it."""
    x = relay.var("x", shape=(1, 8, 8, 4), dtype="float32")
    double = relay.var("y", shape=(4, 4), dtype="float64")
    image = relay.nn.conv2d(x, weights(3, 3, 4, 6), data_layout="NHWC", kernel_layout="HWIO")
    body = relay.Tuple([image, relay.nn.dense(double, double), relay.erf(x)])
    module = infer_module(tvm.IRModule.from_expr(relay.Function([x, double], body)))
    found = {one.operator: one.reasons for one in refusals(module, ["onednn"])}
    assert found == {
        "nn.conv2d": ("onednn: data_layout is NHWC, not NCHW",),
        "nn.dense": ("onednn: the data type is float64, not float32",),
        "erf": ("onednn has no erf",),
    }
    windows = {
        reason
        for one in refusals(model, ["openblas"])
        for reason in one.reasons
        if one.operator == "nn.conv2d"
    }
    assert windows == {"openblas: the window is larger than one element: OpenBLAS has products only"}


def test_a_backend_that_is_not_there(monkeypatch: pytest.MonkeyPatch, model: tvm.IRModule) -> None:
    """The error says what to install, and an unknown one which there are."""
    monkeypatch.setattr(BACKENDS["openblas"], "why_missing", lambda: "pip install it")
    with pytest.raises(TilewrightError, match="nothing can be taken out for openblas: pip install it"):
        partition_for(model, "openblas")
    with pytest.raises(TilewrightError, match="there is no backend 'openbals'; the backends are .*openblas"):
        partition_for(model, "openbals")


@pytest.mark.parametrize("flags", [(False, False), (True, False), (False, True)])
def test_products_in_tensor_expressions(flags: tuple[bool, bool]) -> None:
    """contrib.cblas, with either side transposed, beside code that is compiled."""
    if importlib.util.find_spec("scipy_openblas32") is None:
        pytest.skip("OpenBLAS is not installed")
    left = te.placeholder((5, 8) if flags[0] else (8, 5))
    right = te.placeholder((7, 5) if flags[1] else (5, 7))
    product = cblas.matmul(left, right, *flags)
    result = te.compute(product.shape, lambda i, j: product[i, j] + 1)
    function = tvm.build(te.create_schedule(result.op), [left, right, result], "llvm")
    a, b = (GENERATOR.uniform(size=[int(n) for n in one.shape]).astype("float32") for one in (left, right))
    made = tvm.nd.empty((8, 7))
    function(tvm.nd.array(a), tvm.nd.array(b), made)
    np.testing.assert_allclose(
        made.numpy(), (a.T if flags[0] else a) @ (b.T if flags[1] else b) + 1, rtol=1e-5
    )


def test_products_of_rows_of_matrices() -> None:
    """One side may have a single matrix; shapes that do not fit are refused."""
    needs("openblas")
    multiply = tvm.get_global_func("tvm.contrib.cblas.batch_matmul")
    a, b = GENERATOR.uniform(size=(3, 4, 5)), GENERATOR.uniform(size=(1, 6, 5))
    made = tvm.nd.empty((3, 4, 6), "float64")
    multiply(tvm.nd.array(a), tvm.nd.array(b), made, False, True)
    np.testing.assert_allclose(made.numpy(), a @ b.swapaxes(1, 2), rtol=1e-12)
    with pytest.raises(ValueError, match="cannot multiply"):
        multiply(tvm.nd.array(a), tvm.nd.array(b), made, False, False)
    with pytest.raises(TypeError, match="float32 and float64"):
        multiply(tvm.nd.array(a.astype("int32")), tvm.nd.array(b.astype("int32")), made, False, True)


@pytest.mark.parametrize("level", [0, 2])
def test_products_by_the_library_of_a_target(level: int) -> None:
    """``-libs=cblas`` has kernels call OpenBLAS for products, with what follows them compiled."""
    needs("openblas")
    x, y = relay.var("x", shape=(9, 16)), relay.var("y", shape=(12, 16))
    module = tvm.IRModule.from_expr(relay.Function([x, y], relay.nn.relu(relay.nn.dense(x, y))))
    with tvm.transform.PassContext(opt_level=level):
        factory = relay.build(module, "llvm -libs=cblas")
    assert "tvm.contrib.cblas.matmul" in factory.get_lib().get_source("ll")
    executor = graph_executor.GraphModule(factory["default"](tvm.cpu()))
    a, b = (GENERATOR.uniform(-1, 1, size=shape).astype("float32") for shape in ((9, 16), (12, 16)))
    executor.run(x=a, y=b)
    np.testing.assert_allclose(executor.get_output(0).numpy(), np.maximum(a @ b.T, 0), rtol=1e-5, atol=1e-6)


def test_pieces_of_patterns_are_not_left_over() -> None:
    """A bias is taken with its product, though nobody takes one by itself."""
    needs("onednn")
    x = relay.var("x", shape=(2, 4))
    bias = relay.const(np.ones(3, "float32"))
    product = relay.nn.bias_add(relay.nn.dense(x, weights(3, 4)), bias)
    for body, expected in (
        (product, []),
        (relay.nn.bias_add(relay.erf(product), bias), ["nn.bias_add", "erf"]),
    ):
        module = infer_module(tvm.IRModule.from_expr(relay.Function([x], body)))
        assert sorted(one.operator for one in refusals(module, ["onednn"])) == sorted(expected)


def test_two_backends_and_cuda_in_one_artefact(tmp_path: Path) -> None:
    """The library of a model for a GPU holds its kernels and the parts of both backends, also after it was loaded."""
    needs("openblas")
    needs("onednn")
    x = relay.var("x", shape=(2, 8))
    scores = relay.nn.softmax(relay.cumsum(relay.nn.dense(x, weights(8, 8)), axis=1))
    module = partition_for(
        tvm.IRModule.from_expr(relay.Function([x], relay.erf(scores))), ["openblas", "onednn"]
    )
    library = relay.build(module, "cuda -arch=sm_80")
    library.export_library(str(tmp_path / "model.so"))
    for one in (library.lib, tvm.runtime.load_module(str(tmp_path / "model.so"))):
        kinds = {part.type_key for part in one.imported_modules}
        assert {"cuda", "openblas_json", "onednn_json"} <= kinds
