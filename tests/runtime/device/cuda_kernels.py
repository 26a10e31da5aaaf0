"""Kernels for NVIDIA GPUs, written by hand in PTX: what the tests of the CUDA device launch.

The simulated driver (mock_cuda_kernels.c) has a function of the same meaning for each, found by its name.
"""

from __future__ import annotations

from tilewright.runtime.device_module import DeviceModule, Kernel, TensorMap

_GRID = ("blockIdx.x", "threadIdx.x")

# The number of the thread in the grid, in %r3.
_THREAD = """
    mov.u32 %r0, %ctaid.x;
    mov.u32 %r1, %ntid.x;
    mov.u32 %r2, %tid.x;
    mad.lo.u32 %r3, %r0, %r1, %r2;"""

_REGISTERS = """
    .reg .pred %p<4>;
    .reg .b16 %h<8>;
    .reg .b32 %r<16>;
    .reg .b64 %rd<16>;
    .reg .f32 %f<4>;
    .reg .f64 %fd<8>;"""

BASE = f""".version 7.0
.target sm_70
.address_size 64

.extern .shared .align 16 .b8 scratch[];

.visible .entry add(.param .u64 a, .param .u64 b, .param .u64 c)
{{{_REGISTERS}{_THREAD}
    ld.param.u64 %rd0, [a];
    ld.param.u64 %rd1, [b];
    ld.param.u64 %rd2, [c];
    mul.wide.u32 %rd3, %r3, 4;
    add.u64 %rd0, %rd0, %rd3;
    add.u64 %rd1, %rd1, %rd3;
    add.u64 %rd2, %rd2, %rd3;
    ld.global.f32 %f0, [%rd0];
    ld.global.f32 %f1, [%rd1];
    add.f32 %f2, %f0, %f1;
    st.global.f32 [%rd2], %f2;
    ret;
}}

.visible .entry fill(.param .u64 to, .param .u32 value)
{{{_REGISTERS}{_THREAD}
    ld.param.u64 %rd0, [to];
    ld.param.u32 %r4, [value];
    mul.wide.u32 %rd1, %r3, 4;
    add.u64 %rd0, %rd0, %rd1;
    add.u32 %r4, %r4, %r3;
    st.global.u32 [%rd0], %r4;
    ret;
}}

.visible .entry use_shared(.param .u64 to)
{{{_REGISTERS}{_THREAD}
    ld.param.u64 %rd0, [to];
    mov.u32 %r4, scratch;
    shl.b32 %r5, %r2, 2;
    add.u32 %r6, %r4, %r5;
    st.shared.u32 [%r6], %r2;
    bar.sync 0;
    sub.u32 %r7, %r1, 1;
    sub.u32 %r7, %r7, %r2;
    shl.b32 %r7, %r7, 2;
    add.u32 %r7, %r4, %r7;
    ld.shared.u32 %r8, [%r7];
    mul.wide.u32 %rd1, %r2, 4;
    add.u64 %rd0, %rd0, %rd1;
    st.global.u32 [%rd0], %r8;
    ret;
}}

.visible .entry show_args(.param .u64 to, .param .s8 a, .param .s16 b, .param .s32 c, .param .s64 d, .param .f32 e,
    .param .f64 f)
{{{_REGISTERS}
    ld.param.u64 %rd0, [to];
    ld.param.s8 %h0, [a];
    cvt.rn.f64.s16 %fd0, %h0;
    st.global.f64 [%rd0], %fd0;
    ld.param.s16 %h1, [b];
    cvt.rn.f64.s16 %fd1, %h1;
    st.global.f64 [%rd0+8], %fd1;
    ld.param.s32 %r0, [c];
    cvt.rn.f64.s32 %fd2, %r0;
    st.global.f64 [%rd0+16], %fd2;
    ld.param.s64 %rd1, [d];
    cvt.rn.f64.s64 %fd3, %rd1;
    st.global.f64 [%rd0+24], %fd3;
    ld.param.f32 %f0, [e];
    cvt.f64.f32 %fd4, %f0;
    st.global.f64 [%rd0+32], %fd4;
    ld.param.f64 %fd5, [f];
    st.global.f64 [%rd0+40], %fd5;
    ret;
}}

// Writes a number after so many nanoseconds.
.visible .entry spin(.param .u64 to, .param .u64 nanoseconds, .param .u32 value)
{{{_REGISTERS}
    ld.param.u64 %rd0, [to];
    ld.param.u64 %rd1, [nanoseconds];
    ld.param.u32 %r0, [value];
    mov.u64 %rd2, %globaltimer;
    add.u64 %rd3, %rd2, %rd1;
AGAIN:
    mov.u64 %rd4, %globaltimer;
    setp.lt.u64 %p0, %rd4, %rd3;
    @%p0 bra AGAIN;
    st.global.u32 [%rd0], %r0;
    ret;
}}

.visible .entry crash()
{{{_REGISTERS}
    mov.u64 %rd0, 16;
    mov.u32 %r0, 1;
    st.global.u32 [%rd0], %r0;
    ret;
}}
"""

HOPPER = f""".version 8.0
.target sm_90
.address_size 64

// Brings the box of 32 by 8 floats at (x, y) of the mapped tensor to memory, with 256 threads.
.visible .entry tma_copy(.param .u64 to, .param .align 64 .b8 map[128], .param .u32 x, .param .u32 y)
{{{_REGISTERS}
    .shared .align 128 .b8 tile[1024];
    .shared .align 8 .b64 arrived;
    mov.u32 %r0, %tid.x;
    mov.b64 %rd0, map;
    cvta.param.u64 %rd1, %rd0;
    mov.u32 %r1, tile;
    mov.u32 %r2, arrived;
    ld.param.u32 %r3, [x];
    ld.param.u32 %r4, [y];
    setp.ne.u32 %p0, %r0, 0;
    @%p0 bra READY;
    mbarrier.init.shared::cta.b64 [%r2], 1;
    fence.proxy.async;
    mbarrier.arrive.expect_tx.shared::cta.b64 %rd2, [%r2], 1024;
    cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd1, {{%r3, %r4}}], [%r2];
READY:
    bar.sync 0;
WAIT:
    mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r2], 0;
    @!%p1 bra WAIT;
    shl.b32 %r5, %r0, 2;
    add.u32 %r6, %r1, %r5;
    ld.shared.f32 %f0, [%r6];
    ld.param.u64 %rd3, [to];
    mul.wide.u32 %rd4, %r0, 4;
    add.u64 %rd3, %rd3, %rd4;
    st.global.f32 [%rd3], %f0;
    ret;
}}

// Every block writes how many blocks its cluster has.
.visible .entry cluster_size(.param .u64 to)
{{{_REGISTERS}
    griddepcontrol.wait;
    ld.param.u64 %rd0, [to];
    mov.u32 %r0, %ctaid.x;
    mov.u32 %r1, %cluster_nctaid.x;
    mul.wide.u32 %rd1, %r0, 4;
    add.u64 %rd0, %rd0, %rd1;
    st.global.u32 [%rd0], %r1;
    ret;
}}
"""

_BASE_KERNELS = (
    Kernel("add", ("handle", "handle", "handle"), _GRID),
    Kernel("fill", ("handle", "int32"), _GRID),
    Kernel("use_shared", ("handle",), ("threadIdx.x",), True),
    Kernel("show_args", ("handle", "int8", "int16", "int32", "int64", "float32", "float64")),
    Kernel("spin", ("handle", "int64", "int32")),
    Kernel("crash", ()),
)

_TENSOR = TensorMap(
    position=1,
    base=0,
    dtype="float32",
    dims=(96, 40),
    strides=(96 * 4,),
    box=(32, 8),
    offset=4096,
)


def base_module() -> DeviceModule:
    """Kernels for every GPU."""
    return DeviceModule(2, BASE.encode() + b"\0", _BASE_KERNELS, type_key="cuda", sources={"ptx": BASE})


def hopper_module() -> DeviceModule:
    """Kernels with tensor maps, clusters and early launches. ``tma_copy`` reads a tensor of 40 rows of 96 floats that
    begins 4096 bytes behind the place it writes to."""
    kernels = (
        Kernel("tma_copy", ("handle", "int32", "int32"), ("threadIdx.x",), tensor_maps=(_TENSOR,)),
        Kernel("cluster_size", ("handle",), ("blockIdx.x", "clusterCtaIdx.x"), overlaps=True),
    )
    return DeviceModule(2, HOPPER.encode() + b"\0", kernels, type_key="cuda", sources={"ptx": HOPPER})
