"""Functions of the operator library, called with an operator's inputs and attributes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright as tvm
from tilewright import relay, te, topi
from tilewright.relay.op.strategy import generic

CPU = tvm.target.Target("llvm")


def run(call: Any, compute: Any, arrays: list[np.ndarray[Any, Any]]) -> np.ndarray[Any, Any]:
    """The result of a computation for a call, scheduled as it is."""
    parameters = [
        relay.var(f"x{number}", shape=array.shape, dtype=str(array.dtype))
        for number, array in enumerate(arrays)
    ]
    made = call(*parameters)
    function = relay.transform.InferType()(tvm.IRModule.from_expr(relay.Function(parameters, made)))["main"]
    inputs = [te.placeholder(array.shape, str(array.dtype)) for array in arrays]
    (out,) = compute(made.attrs, inputs, function.ret_type)
    program = tvm.build(generic.naive_schedule(made.attrs, [out], CPU), [*inputs, out], CPU)
    result = tvm.nd.array(np.zeros([int(extent) for extent in out.shape], str(out.dtype)))
    program(*[tvm.nd.array(array) for array in arrays], result)
    wanted = made.op.get_attr("FReference")(made.attrs, *arrays)
    np.testing.assert_allclose(result.numpy(), wanted, rtol=1e-4, atol=1e-5)
    return result.numpy()


def values(*shape: int) -> np.ndarray[Any, Any]:
    """Random numbers."""
    return np.random.default_rng(5).normal(size=shape).astype("float32")


@pytest.mark.parametrize(
    ("call", "compute", "shapes"),
    [
        (
            lambda x, w: relay.nn.conv2d(x, w, strides=2, padding=(1, 0)),
            generic.wrap_compute_conv2d(topi.nn.conv2d_nchw),
            [(1, 3, 5, 5), (2, 3, 3, 3)],
        ),
        (
            lambda x, w: relay.nn.conv2d(x, w, groups=2),
            generic.wrap_compute_conv2d(topi.nn.group_conv2d_nchw, has_groups=True),
            [(1, 4, 5, 5), (2, 2, 3, 3)],
        ),
        (
            lambda x, w: relay.nn.contrib_conv2d_nchwc(
                x,
                w,
                channels=4,
                kernel_size=3,
                data_layout="NCHW2c",
                kernel_layout="OIHW2i4o",
                out_layout="NCHW4c",
            ),
            generic.wrap_compute_conv2d(topi.nn.conv2d_NCHWc, need_data_layout=True, need_out_layout=True),
            [(1, 2, 4, 4, 2), (1, 2, 3, 3, 2, 4)],
        ),
        (
            lambda x, w: relay.nn.conv1d(x, w, padding=1, dilation=2),
            generic.wrap_compute_conv1d(topi.nn.conv1d_ncw),
            [(1, 3, 6), (2, 3, 3)],
        ),
        (
            lambda x, w: relay.nn.conv3d(x, w, padding=1),
            generic.wrap_compute_conv3d(topi.nn.conv3d_ncdhw),
            [(1, 2, 3, 3, 3), (2, 2, 2, 2, 2)],
        ),
        (
            lambda x, w: relay.nn.conv2d_transpose(x, w, strides=2, output_padding=1),
            generic.wrap_compute_conv2d_transpose(topi.nn.conv2d_transpose_nchw),
            [(1, 3, 3, 3), (3, 2, 3, 3)],
        ),
        (
            lambda x, w: relay.nn.matmul(x, w, transpose_a=True),
            generic.wrap_compute_matmul(topi.nn.matmul),
            [(4, 3), (4, 5)],
        ),
        (relay.nn.dense, generic.wrap_compute_dense(topi.nn.dense), [(3, 4), (5, 4)]),
        (
            relay.nn.batch_matmul,
            generic.wrap_compute_batch_matmul(topi.nn.batch_matmul),
            [(2, 3, 4), (2, 5, 4)],
        ),
        (
            lambda x: relay.nn.softmax(x, axis=0),
            generic.wrap_compute_softmax(topi.nn.softmax),
            [(3, 4)],
        ),
        (lambda x: relay.sort(x, axis=0), generic.wrap_compute_sort(topi.sort), [(5, 2)]),
        (
            lambda x: relay.cumsum(x, axis=1, exclusive=True),
            generic.wrap_compute_scanop(topi.cumsum),
            [(2, 5)],
        ),
        (
            lambda x, w: relay.image.dilation2d(x, w),
            generic.wrap_compute_dilation2d(topi.image.dilation2d_nchw),
            [(1, 2, 4, 4), (2, 2, 2)],
        ),
        (
            lambda x, y: relay.nn.correlation(x, y, 1, 1, 1, 1, 1, True, "NCHW"),
            generic.wrap_compute_correlation(topi.nn.correlation_nchw),
            [(1, 2, 3, 3), (1, 2, 3, 3)],
        ),
    ],
)
def test_wrapped_computations_give_what_the_reference_gives(
    call: Any, compute: Any, shapes: list[tuple[int, ...]]
) -> None:
    """The attributes arrive in the right order."""
    run(call, compute, [values(*shape) for shape in shapes])


def test_a_tensor_times_itself_is_copied() -> None:
    """What a schedule does to one operand must not touch the other."""
    x, y = te.placeholder((3, 3)), te.placeholder((3, 3))
    assert generic.copy_if_identical(x, y) is y
    copied = generic.copy_if_identical(x, x)
    assert copied is not x
    assert list(copied.op.input_tensors) == [x]
