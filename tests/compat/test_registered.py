"""TVM's modules of registered functions, and other modules that programs import by their path."""

import importlib

import numpy as np
import pytest

import tilewright as tvm
from tilewright import te, topi
from tilewright.compat.providers import NAMESPACES


@pytest.mark.parametrize("path", NAMESPACES)
def test_a_module_of_registered_functions_has_those_of_its_namespace(path):
    """Each can be imported, and its functions are the registered ones."""
    module = importlib.import_module(f"tilewright.{path}")
    for name in module.__all__:
        registered = tvm.get_global_func(f"{NAMESPACES[path]}.{name}")
        assert getattr(module, name).handle == registered.handle


def test_the_runtime_makes_modules_of_source():
    """``tvm.runtime._ffi_api.CSourceModuleCreate``, as code generators for TVM call it."""
    made = importlib.import_module("tilewright.runtime._ffi_api").CSourceModuleCreate(
        "int x;", "c", ["f"], None
    )
    assert made.get_source() == "int x;" and list(made.function_names) == ["f"]


def test_words_of_hybrid_script_run_in_python():
    """``HYBRID_GLOBALS`` has what a script needs to run as a plain function."""
    words = importlib.import_module("tilewright.te.hybrid.runtime").HYBRID_GLOBALS
    made = words["output_tensor"]((2, 2), "float32")
    for i in words["parallel"](2):
        made[i, i] = words["sqrt"](4.0)
    np.testing.assert_array_equal(made, np.eye(2, dtype="float32") * 2)


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("topi.x86.conv2d", "conv2d_nchw"),
        ("topi.x86.dense", "dense_nopack"),
        ("topi.cuda.softmax", "schedule_softmax"),
        ("topi.cpp.nn", "relu"),
        ("topi.cpp", "add"),
        ("relay.op.strategy.cuda", "conv2d_strategy"),
    ],
)
def test_files_of_packages_have_the_names_of_the_package(path, name):
    """A name is the same object in the file and in the package."""
    package, _, _ = path.rpartition(".")
    found = getattr(importlib.import_module(f"tilewright.{path}"), name)
    home = {"topi.cpp": "topi.nn", "topi": "topi"}.get(package, package)
    assert found is getattr(importlib.import_module(f"tilewright.{home}"), name)
    assert callable(topi.nn.conv2d) and callable(topi.x86.conv2d_nchw) and callable(te.compute)


def test_small_names_of_tvm():
    """Names that programs take from packages which define them elsewhere."""
    relay = importlib.import_module("tilewright.relay")
    assert relay.Expr.astext(relay.GlobalVar("f")) == repr(relay.GlobalVar("f"))
    assert relay.TypeConstraint is importlib.import_module("tilewright.relay.ty").TypeConstraint
    assert te.schedule.Buffer is tvm.tir.Buffer
    assert tvm.runtime.Report is tvm.runtime.profiling.Report
    assert (
        isinstance(tvm.nd.array(np.zeros(1)), tvm.runtime.ObjectTypes) and tvm.runtime.DataTypeCode.FLOAT == 2
    )
    assert importlib.import_module("tilewright.topi.x86.depthwise_conv2d")._fallback_schedule
    assert tvm.target.Target("vulkan -from_device=0").attrs["from_device"] == 0
