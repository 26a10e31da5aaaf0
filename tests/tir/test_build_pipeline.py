"""The passes of the build, as lists: what they contain for each target, and what comes out."""

from tilewright import te, tir
from tilewright.ir.function import CallingConv
from tilewright.ir.module import IRModule
from tilewright.ir.transform import PassContext, Sequential
from tilewright.target import Target
from tilewright.tir.build_pipeline import device_passes, host_passes, mixed_passes

LLVM, CUDA = Target("llvm"), Target("cuda")


def names(passes):
    return [each.name.removeprefix("tir.") for each in passes]


def program(bound):
    """B = A + 1, on threads or in a loop."""
    a, b, i = tir.decl_buffer((64,), name="A"), tir.decl_buffer((64,), name="B"), tir.Var("i")
    if bound:
        axis = te.thread_axis("threadIdx.x")
        store = tir.Store(b.data, tir.Load("float32", a.data, axis.var) + 1.0, axis.var)
        body = tir.AttrStmt(axis, "thread_extent", 64, store)
    else:
        body = tir.For(i, 0, 64, 0, tir.Store(b.data, tir.Load("float32", a.data, i) + 1.0, i))
    return IRModule({"f": tir.PrimFunc([a, b], body, attrs={"global_symbol": "f"})})


def test_cpu_programs_skip_threads():
    """A CPU needs neither barriers nor reductions across threads."""
    assert names(mixed_passes(LLVM, LLVM)) == [
        "BindTarget",
        "VerifyMemory",
        "ThreadsToLoops",
        "BlockLongSums",
        "MakePackedAPI",
        "SplitHostDevice",
    ]


def test_gpu_programs_have_all():
    """The order is that of the inventory: barriers, then reductions with their own, then the calling convention."""
    assert names(mixed_passes(CUDA, LLVM)) == [
        *("BindTarget", "VerifyMemory", "SoftwarePipeline", "ThreadSync", "ThreadSync"),
        "MergeDynamicSharedMemoryAllocations",
        *("ThreadSync", "InferFragment", "LowerThreadAllreduce", "MakePackedAPI", "SplitHostDevice"),
    ]


def test_options():
    """Options of the context and of the target add or replace passes."""
    with PassContext(config={"tir.is_entry_func": True, "tir.disable_assert": True}):
        assert "AnnotateEntryFunc" in names(mixed_passes(LLVM, LLVM))
        assert names(host_passes(LLVM, LLVM)).index("SkipAssert") < names(host_passes(LLVM, LLVM)).index(
            "LowerTVMBuiltin"
        )
    assert "MakeUnpackedAPI" in names(mixed_passes(Target("c -unpacked-api=1"), LLVM))


def test_host_and_device_come_apart():
    """Kernels go one way and their callers the other, each with its target."""
    mixed = Sequential(mixed_passes(CUDA, LLVM))(program(True))
    host, device = Sequential(host_passes(CUDA, LLVM))(mixed), Sequential(device_passes(CUDA, LLVM))(mixed)
    assert [variable.name_hint for variable in host.functions] == ["f"]
    assert [variable.name_hint for variable in device.functions] == ["f_kernel0"]
    assert host["f"].attrs["target"] == LLVM and device["f_kernel0"].attrs["target"] == CUDA
    assert host["f"].attrs["calling_conv"] == CallingConv.C_PACKED_FUNC


def test_a_cpu_program_has_no_device_part():
    """All of it is host code."""
    mixed = Sequential(mixed_passes(LLVM, LLVM))(program(False))
    assert len(Sequential(device_passes(LLVM, LLVM))(mixed).functions) == 0
    assert len(Sequential(host_passes(LLVM, LLVM))(mixed).functions) == 1
