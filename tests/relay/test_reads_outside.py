"""Programs whose indices or shapes lead outside of a tensor: compiled code reads nothing there.

They run in child processes with guard pages, which such a read would end; a child prints its cases as it begins them.
What has a defined result gives it; an axis that is too short for what is asked of it is an error that says so.
"""

from __future__ import annotations

import platform
import sys

import pytest
from tests.guarded import run_guarded

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there are no guard pages on Windows")

_HEAD = """
import sys
import numpy as np
import tilewright as tvm
from tilewright import relay, te, tir

def on_machine(expr, inputs, *values):
    program = tvm.IRModule.from_expr(relay.Function(inputs, expr))
    machine = tvm.runtime.vm.VirtualMachine(relay.vm.compile(program, "llvm"), tvm.cpu())
    result = machine.run(*[tvm.nd.array(value) for value in values])
    return result.numpy() if hasattr(result, "numpy") else [part.numpy() for part in result]

def same(actual, expected):
    np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-5)

def case(*parts):
    print(*parts, flush=True)
    return parts
"""


def passes(script: str, *arguments: str, mode: str = "end") -> None:
    """The script must run to its end."""
    done = run_guarded(_HEAD + script, *arguments, mode=mode)
    last = done.stdout.strip().rpartition("\n")[2]
    assert done.returncode == 0, f"status {done.returncode} in case {last}\n{done.stderr[-2000:]}"


_CHOSEN = """
import tempfile

def built(schedule, arguments, target):
    library = tvm.build(schedule, arguments, target)
    if target != "c":
        return library
    with tempfile.TemporaryDirectory() as folder:
        library.export_library(f"{folder}/library.so")
        return tvm.runtime.load_module(f"{folder}/library.so")

indices = te.placeholder((64,), "int32", name="I")
data = te.placeholder((64,), "float32", name="A")
values = np.arange(64, dtype="float32") + 1
expected = np.zeros(64, "float32")
expected[::2] = values[:32]
for clamped in (True, False):
    def element(i):
        inside = tir.all(indices[i] >= 0, indices[i] < 64)
        index = te.min(te.max(indices[i], 0), 63) if clamped else indices[i]
        return tir.Select(inside, data[index], tir.const(0, "float32"))
    made = te.compute((64,), element, name="B")
    schedule = te.create_schedule(made.op)
    _, inner = schedule[made].split(made.op.axis[0], 16)
    schedule[made].vectorize(inner)
    for target in ("llvm", "llvm -mcpu=x86-64 -mtriple=x86_64-unknown-linux-gnu", "c"):
        function = built(schedule, [indices, data, made], target)
        for outside in (64, -1, 10**6, 2**29, -2**31, 2**31 - 1):
            case("clamped" if clamped else "bare", target, outside)
            given = np.full(64, outside, "int32")
            given[::2] = np.arange(32)
            result = tvm.nd.empty((64,))
            function(tvm.nd.array(given), tvm.nd.array(values), result)
            same(result.numpy(), expected)
"""


@pytest.mark.skipif(platform.machine() != "x86_64", reason="names a processor of this kind")
def test_a_vectorized_select_reads_only_what_it_is_asked_for() -> None:
    """Whether the index has a clamp, which the condition implies, or only the condition keeps it inside."""
    passes(_CHOSEN)


_GATHERED = """
x, i = relay.var("x", shape=(64,)), relay.var("i", shape=(64,), dtype="int64")
test = relay.logical_and(i >= relay.const(0, "int64"), i < relay.const(64, "int64"))
values = np.arange(64, dtype="float32")
for mode in ("clip", "wrap"):
    expr = relay.where(test, relay.take(x, i, mode=mode), relay.const(0.0))
    for outside in (64, 10**9, -65, 2**40):
        case(mode, outside)
        given = np.full(64, outside)
        given[::2] = np.arange(32) * 2
        same(on_machine(expr, [x, i], values, given), np.where(given == outside, 0, values[given % 64]))
"""


def test_a_gather_under_where_is_safe() -> None:
    """``where(0 <= i < n, take(x, i), 0)``, fused into one kernel."""
    passes(_GATHERED)


_SAMPLED = """
x, grid = relay.var("x", shape=(1, 1, 4, 5)), relay.var("grid", shape=(1, 2, 8, 8))
image = np.arange(1, 21, dtype="float32").reshape(1, 1, 4, 5)
places = ((1.0, 20), (-1.0, 1), *((far, None) for far in (1.01, 2.0, -3.0, 1e9, -1e30, np.inf, np.nan)))
for method in ("bilinear", "nearest", "bicubic"):
    expr = relay.image.grid_sample(x, grid, method, padding_mode="zeros", align_corners=True)
    for place, pixel in places:
        case(method, place)
        made = on_machine(expr, [x, grid], image, np.full((1, 2, 8, 8), place, "float32"))
        if pixel is not None:
            same(made, np.full((1, 1, 8, 8), pixel))
"""


@pytest.mark.parametrize("guard", ["end", "start"])
def test_grid_sample_reads_no_pixel_beside_the_image(guard: str) -> None:
    """At the outermost pixels, whose neighbours are outside, and far away."""
    passes(_SAMPLED, mode=guard)


_DEFORMED = """
x, offset, weight = (relay.var(name, shape=shape) for name, shape in (
    ("x", (1, 2, 8, 8)), ("offset", (1, 18, 8, 8)), ("weight", (3, 2, 3, 3))))
expr = relay.nn.deformable_conv2d(x, offset, weight, padding=(1, 1), kernel_size=(3, 3), channels=3)
image, taps = np.ones((1, 2, 8, 8), "float32"), np.ones((3, 2, 3, 3), "float32")
far = ((0.0, 18), (100.0, 0), (-100.0, 0), (1e9, 0), (np.nan, 0))
for moved, pixel in (*far, *((near, None) for near in (0.5, 1.0, -0.5, 6.75, -7.0))):
    case(moved)
    made = on_machine(expr, [x, offset, weight], image, np.full((1, 18, 8, 8), moved, "float32"), taps)
    if pixel is not None:
        same(made[0, 0, 4, 4], pixel)
"""


@pytest.mark.parametrize("guard", ["end", "start"])
def test_deformable_convolution_reads_no_pixel_beside_the_image(guard: str) -> None:
    """However far its taps are moved."""
    passes(_DEFORMED, mode=guard)


_PADDED = """
x, widths = relay.var("x", shape=(3, relay.Any())), ((0, 0), (5, 4))
for mode in ("reflect", "symmetric", "edge"):
    mirrored = mode == "symmetric"
    expr = relay.nn.mirror_pad(x, widths, "SYMMETRIC") if mirrored else relay.nn.pad(x, widths, pad_mode=mode)
    for length in (0, 1, 2, 4, 5, 6, 9):
        case(mode, length)
        data = np.arange(3 * length, dtype="float32").reshape(3, length)
        try:
            made = on_machine(expr, [x], data)
        except Exception as error:
            assert f"padding in mode {mode} adds 5 elements at an end of axis 1" in str(error), error
            assert length < {"edge": 1, "symmetric": 5, "reflect": 6}[mode], length
        else:
            same(made, np.pad(data, widths, mode=mode))
"""


@pytest.mark.parametrize("guard", ["end", "start"])
def test_an_axis_too_short_for_its_padding_is_an_error(guard: str) -> None:
    """It says how many elements the padding needs; an axis that has them is padded as NumPy does."""
    passes(_PADDED, mode=guard)


_COMPUTED_WIDTHS = """
x, widths = relay.var("x", shape=(relay.Any(),)), relay.var("widths", shape=(1, 2), dtype="int64")
for mode in ("reflect", "edge"):
    expr = relay.nn.pad(x, widths, pad_mode=mode)
    for length, width in ((0, 2), (1, 2), (2, 2), (3, 2), (0, 0)):
        case(mode, length, width)
        data = np.arange(length, dtype="float32")
        try:
            made = on_machine(expr, [x, widths], data, np.array([[width, width]]))
        except Exception as error:
            assert "no edge to repeat" in str(error) or "wider than the data" in str(error), error
            assert width > 0 and length < {"edge": 1, "reflect": 3}[mode], length
        else:
            same(made, np.pad(data, width, mode=mode) if width else data)
"""


def test_an_axis_too_short_for_widths_that_the_program_computes_is_an_error() -> None:
    """As with widths that are known."""
    passes(_COMPUTED_WIDTHS)


_LARGEST = """
x = relay.var("x", shape=(2, relay.Any()))
expr = relay.topk(x, 5).astuple()
for length in (0, 1, 4, 5, 9):
    case(length)
    data = np.random.default_rng(length).permutation(2 * length).astype("float32").reshape(2, length)
    try:
        values, places = on_machine(expr, [x], data)
    except Exception as error:
        assert "the first 5 of an axis with fewer elements are requested" in str(error), error
        assert length < 5, length
    else:
        same(values, -np.sort(-data, axis=1)[:, :5])
        same(np.take_along_axis(data, places.astype("int64"), 1), values)
"""


def test_topk_of_an_axis_with_fewer_elements_is_an_error() -> None:
    """A constant number of elements, of an axis whose length only the program knows."""
    passes(_LARGEST)


_EMPTY = """
x = relay.var("x", shape=(relay.Any(), 2, relay.Any(), 3))
grid, places = relay.var("grid", shape=(relay.Any(), 2, 4, 4)), np.zeros((1, 2, 4, 4), "float32")
rois, regions = relay.var("rois", shape=(1, 5)), np.zeros((1, 5), "float32")
operators = {
    "resize2d": (relay.image.resize2d(x, (4, 4)), (), ()),
    "resize2d to the nearest": (relay.image.resize2d(x, (4, 4), method="nearest_neighbor"), (), ()),
    "grid_sample": (relay.image.grid_sample(x, grid), (grid,), (places,)),
    "roi_align": (relay.vision.roi_align(x, rois, (2, 2), 1.0), (rois,), (regions,)),
    "roi_pool": (relay.vision.roi_pool(x, rois, (2, 2), 1.0), (rois,), (regions,)),
}
for name, (expr, inputs, values) in operators.items():
    case(name)
    assert on_machine(expr, [x, *inputs], np.ones((1, 2, 5, 3), "float32"), *values).size
    try:
        on_machine(expr, [x, *inputs], np.zeros((1, 2, 0, 3), "float32"), *values)
    except Exception as error:
        assert "there are no pixels in" in str(error), error
    else:
        raise AssertionError("an image without pixels was read")
"""


def test_reading_an_image_without_pixels_is_an_error() -> None:
    """There is no nearest pixel."""
    passes(_EMPTY)
