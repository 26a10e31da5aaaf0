"""Device code becomes functions of its own, which the host calls with their values and extents."""

import pytest

from tilewright import te, tir
from tilewright.ir.function import CallingConv
from tilewright.ir.module import IRModule
from tilewright.support.errors import LoweringError
from tilewright.target import Target
from tilewright.tir.transform.split_host_device import SplitHostDevice
from tilewright.tir.undefined import undefined_vars


def kernel(builder, out, source, extent, threads=32):
    """One launch that adds one to ``extent`` elements."""
    with builder.new_scope():
        bx, tx = te.thread_axis("blockIdx.x"), te.thread_axis("threadIdx.x")
        builder.scope_attr(bx, "thread_extent", (extent + threads - 1) // threads)
        builder.scope_attr(tx, "thread_extent", threads)
        index = bx.var * threads + tx.var
        with builder.if_scope(index < extent):
            out[index] = source[index] + 1.0


def split(function):
    return SplitHostDevice()(IRModule({"main": function}))


def program(launches=1):
    builder = tir.ir_builder.create()
    n = tir.Var("n")
    a, b = builder.pointer("float32", name="A"), builder.pointer("float32", name="B")
    for _ in range(launches):
        kernel(builder, b, a, n)
    return tir.PrimFunc(
        [a.asobject(), b.asobject(), n],
        builder.get(),
        attrs={"global_symbol": "main", "target": Target("cuda")},
    )


def test_one_kernel(nodes_of):
    """The kernel has what it uses as parameters, and its attributes say how it is launched."""
    module = split(program())
    made = module["main_kernel0"]
    assert made.attrs["calling_conv"] == CallingConv.DEVICE_KERNEL_LAUNCH
    assert [axis.thread_tag for axis in made.attrs["tir.device_thread_axis"]] == ["blockIdx.x", "threadIdx.x"]
    assert sorted(param.name for param in made.params) == ["A", "B", "n"]
    assert made.params[-1].name == "n"
    assert undefined_vars(made.body, made.params) == []
    host = module["main"]
    assert not nodes_of(host.body, (tir.Store, tir.AttrStmt))
    call = host.body.value
    assert call.op.name == "tir.tvm_call_packed" and call.args[0].value == "main_kernel0"
    assert list(call.args[1:4]) == list(made.params)
    assert len(call.args) == 6 and int(call.args[5]) == 32


def test_several_kernels():
    """Each launch is a function, numbered in order."""
    module = split(program(3))
    names = sorted(variable.name_hint for variable in module.functions)
    assert names == ["main", "main_kernel0", "main_kernel1", "main_kernel2"]


def test_host_code_stays():
    """A module without device code is the very same afterwards."""
    a = tir.decl_buffer((1,), name="A")
    function = tir.PrimFunc(
        [a], tir.Store(a.data, tir.const(0.0, "float32"), 0), attrs={"target": Target("llvm")}
    )
    module = IRModule({"main": function})
    assert SplitHostDevice()(module) is module


def test_dynamic_shared_memory(nodes_of):
    """Its size in bytes is the last argument of the launch."""
    builder = tir.ir_builder.create()
    n, out = tir.Var("n"), builder.pointer("float32", name="out")
    tx = te.thread_axis("threadIdx.x")
    builder.scope_attr(tx, "thread_extent", 32)
    shared = builder.allocate("float32", n, name="S", scope="shared.dyn")
    shared[tx.var] = 1.0
    out[tx.var] = shared[tx.var]
    function = tir.PrimFunc(
        [out.asobject(), n], builder.get(), attrs={"global_symbol": "f", "target": Target("cuda")}
    )
    module = split(function)
    assert module["f_kernel0"].attrs["tir.device_use_dyn_shared_memory"]
    launch = module["main"].body.value
    assert launch.args[-1].dtype == "int64" and "n" in str(launch.args[-1]) and "4" in str(launch.args[-1])


def test_two_extents_of_one_index():
    """One thread index has one extent in a kernel."""
    builder = tir.ir_builder.create()
    out = builder.pointer("float32", name="out")
    builder.scope_attr(te.thread_axis("blockIdx.x"), "thread_extent", 1)
    for extent in (16, 32):
        with builder.new_scope():
            tx = te.thread_axis("threadIdx.x")
            builder.scope_attr(tx, "thread_extent", extent)
            out[tx.var] = 1.0
    function = tir.PrimFunc(
        [out.asobject()], builder.get(), attrs={"global_symbol": "f", "target": Target("cuda")}
    )
    with pytest.raises(LoweringError, match=r"threadIdx.x has two extents in one kernel: 16 and 32"):
        split(function)


def test_a_target_is_needed():
    """Without a target it is not known what the kernels are for."""
    with pytest.raises(LoweringError, match="run BindTarget before SplitHostDevice"):
        split(program().without_attr("target"))
