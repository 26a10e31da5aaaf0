"""What a profile has: times that add up, memory, graphs and code."""

import json

import pytest

from tilewright.driver import profile, tvmc
from tilewright.driver.profile.passes import OUTSIDE, CompileWatch
from tilewright.support.errors import TilewrightError


def test_times_add_up(small_profile):
    """Every call belongs to one kernel, the kernels' times are the whole, and their shares are one."""
    kernels = small_profile.kernels
    listed = kernels.kernels()
    assert sum(kernel.calls for kernel in listed) == len(kernels.steps) > 0
    assert sum(kernel.seconds for kernel in listed) == pytest.approx(kernels.total_seconds)
    assert sum(kernel.share for kernel in listed) == pytest.approx(1.0)
    assert [kernel.seconds for kernel in listed] == sorted((k.seconds for k in listed), reverse=True)
    assert kernels.total_seconds > 0
    assert sum(kernel.flops for kernel in listed) == kernels.flops
    for kernel in listed:
        assert kernel.gigabytes_per_second == pytest.approx(kernel.size_bytes / kernel.seconds / 1e9)


def test_work_and_nodes_come_from_the_model(small_profile):
    """x[2, 4] times weight[4, 3] with bias and ReLU is 48 + 6 + 6 operations, for nodes that the model names."""
    product = next(kernel for kernel in small_profile.kernels.kernels() if "dense" in kernel.name)
    assert product.flops == 2 * 2 * 3 * 4 + 6 + 6
    names = {name for kernel in small_profile.kernels.kernels() for name in kernel.model_nodes}
    assert {"MatMul multiply", "Add shift", "Relu clamp", "Softmax normalise"} <= names


def test_compile_time_by_pass_is_the_whole(small_profile):
    """The passes' own times and what is outside passes are the time of the compilation."""
    compiling = small_profile.compiling
    assert sum(one.seconds for one in compiling.totals) == pytest.approx(compiling.seconds)
    names = {one.name for one in compiling.totals}
    assert {"FuseOps", "FoldConstant", "tir.StorageFlatten", OUTSIDE} <= names
    assert all(one.seconds >= -1e-9 for one in compiling.totals)


def test_graphs_before_and_after_fusion(small_profile):
    """Operators know their kernel; every kernel's call stands in the graph after fusion."""
    before, after = small_profile.before_fusion, small_profile.after_fusion
    kernels = {kernel.name for kernel in small_profile.kernels.kernels()}
    assert {node.kernel for node in before.nodes if node.kind == "operator"} <= kernels
    assert {"nn.relu", "nn.softmax"} <= {node.label for node in before.nodes}
    assert {node.kernel for node in after.nodes if node.kind == "kernel"} == kernels
    assert [node.label for node in after.nodes if node.kind == "input"] == ["x"]
    for graph in (before, after):
        assert all(0 <= source < target < len(graph.nodes) for source, target in graph.edges)


def test_code_of_every_kernel_in_every_form(small_profile):
    """Relay, loops, LLVM IR and assembly of each kernel, under its own name."""
    for kernel in small_profile.kernels.kernels():
        code = small_profile.code[kernel.name]
        assert list(code) == ["relay", "tir", "ll", "asm"]
        assert code["relay"].startswith("fn") or "fn (" in code["relay"]
        assert f"def {kernel.name}(" in code["tir"]
        assert f"@__tvm_ffi_{kernel.name}(" in code["ll"]
        assert f"__tvm_ffi_{kernel.name}:" in code["asm"]


def test_profile_as_json_has_no_holes(small_profile):
    """What programs read is plain JSON."""
    found = json.loads(json.dumps(small_profile.as_json(), allow_nan=False))
    assert found["model"] == "small.onnx" and found["compiling"]["passes"]
    assert found["memory"]["arena_bytes"] >= found["memory"]["peak_bytes"] > 0
    assert found["limits"]["flops_per_second"] > 1e8
    assert found["limits"]["bandwidths"][-1]["level"] == "memory"


def test_package_has_the_same_kernels(small_profile, small_package):
    """A package knows its kernels' work and their nodes in the model; passes and code stayed behind."""
    found = profile.collect.profile_package(tvmc.TVMCPackage(small_package), "small.tar", repeat=2)
    expected = {kernel.name: kernel for kernel in small_profile.kernels.kernels()}
    assert {kernel.name for kernel in found.kernels.kernels()} == set(expected)
    for kernel in found.kernels.kernels():
        assert kernel.flops == expected[kernel.name].flops
        assert kernel.model_nodes == expected[kernel.name].model_nodes
    assert found.compiling is None and found.before_fusion is None and found.code is None
    assert found.memory.arena_bytes == small_profile.memory.arena_bytes


def test_kernels_for_a_gpu_show_their_ptx(small_onnx):
    """The functions that each launches, in the place of the host's code around them."""
    model, settings = tvmc.load(small_onnx), tvmc.compiler.make_settings("cuda -arch=sm_80")
    compiled = settings.compile(model.mod, model.params)
    functions = profile.collect._functions(compiled)
    code = profile.collect._code(compiled.lib, functions, CompileWatch())
    assert code and set(code) == set(functions)
    for name, forms in code.items():
        assert list(forms) == ["relay", "tir", "ptx"]
        assert forms["ptx"].startswith(f".visible .entry {name}_kernel0(")


def test_a_model_compiled_ahead_of_time_is_not_timed(small_onnx):
    """It is one function: the executor is refused, with its name and those to take."""
    settings = tvmc.compiler.make_settings("llvm", executor="aot")
    with pytest.raises(TilewrightError, match="the aot executor has no kernels .* graph or vm"):
        profile.collect.profile_model(tvmc.load(small_onnx), settings)


def test_other_machines_are_not_measured(small_onnx):
    """Code for another processor is refused before it is compiled."""
    settings = tvmc.compiler.make_settings("llvm -mtriple=aarch64-linux-gnu")
    with pytest.raises(TilewrightError, match="cannot run on this machine"):
        profile.collect.profile_model(tvmc.load(small_onnx), settings)
