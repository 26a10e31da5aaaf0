"""From schedules to loops: the buffers of arguments."""

import numpy as np

import tilewright as tvm
from tilewright import te
from tilewright.compile.lower import schedule_to_module


def test_sizes_that_no_loop_knows_are_broadcast():
    """A dimension of size one stands for any size where the loops run over another variable; other sizes are read as
    they are."""
    rows, many, width = (te.size_var(name) for name in ("rows", "many", "width"))
    a, b = te.placeholder((rows, 3), name="A"), te.placeholder((many, width), name="B")
    c = te.compute((many, 3), lambda i, j: a[i, j] + b[i, j], name="C")
    buffers = list(schedule_to_module(te.create_schedule(c.op), [a, b, c])["main"].buffer_map.values())
    assert [buffer.buffer_type for buffer in buffers] == ["auto_broadcast", "auto_broadcast", ""]
    assert buffers[0].strides[1].value == 1
    function = tvm.build(te.create_schedule(c.op), [a, b, c], "llvm")
    rng = np.random.default_rng(3)
    for first, second in (((1, 3), (4, 3)), ((4, 3), (4, 1)), ((4, 3), (4, 3))):
        x, y = rng.random(first, "float32"), rng.random(second, "float32")
        result = tvm.nd.empty((4, 3))
        function(tvm.nd.array(x), tvm.nd.array(y), result)
        np.testing.assert_array_equal(result.numpy(), x + y)


def test_sizes_of_loops_stay_compact():
    """Where the loops run over the sizes of the arguments nothing is broadcast, and rows are contiguous."""
    n, k = te.size_var("n"), te.size_var("k")
    a = te.placeholder((n, k), name="A")
    axis = te.reduce_axis((0, k), name="axis")
    b = te.compute((n,), lambda i: te.sum(a[i, axis], axis=axis), name="B")
    buffers = schedule_to_module(te.create_schedule(b.op), [a, b])["main"].buffer_map.values()
    assert all(buffer.buffer_type == "" and not buffer.strides for buffer in buffers)
