"""Products on tensor cores: matrix products and convolutions of any layout, run by simulated threads, and assembled."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.schedule.gpu.device import run

import tilewright as tvm
import tilewright.topi.testing
from tilewright import te, topi
from tilewright.schedule import schedule
from tilewright.schedule.decisions import Decisions
from tilewright.schedule.gpu.tensor_core.boxes import find_boxes
from tilewright.schedule.gpu.tensor_core.factors import find_product
from tilewright.schedule.gpu.tensor_core.tiling import candidates, choose_tiling
from tilewright.target.gpu import describe_gpu
from tilewright.te.extern import ExternOp
from tilewright.te.schedule.auto_inline import auto_inline_injective
from tilewright.topi.nn.convolution import conv

ARCHES = ("sm_80", "sm_90a")


def placeholder(*shape: int, name: str = "x", dtype: str = "float16") -> Any:
    return te.placeholder(shape, dtype, name)


def arrays(*tensors: Any) -> list[Any]:
    random = np.random.default_rng(3)
    return [
        (random.standard_normal([int(extent) for extent in one.shape]) / 2).astype(str(one.dtype))
        for one in tensors
    ]


def product_of(output: Any) -> Any:
    made = te.create_schedule(output.op)
    auto_inline_injective(made)
    found = [
        find_product(stage.op) for stage in made.normalize().stages if getattr(stage.op, "reduce_axis", ())
    ]
    assert len(found) == 1
    return found[0]


def stages_of(output: Any, arch: str) -> list[Any]:
    return [stage.op for stage in schedule([output], tvm.target.Target(f"cuda -arch={arch}")).stages]


@pytest.mark.parametrize("arch", ARCHES)
@pytest.mark.parametrize(
    ("rows", "columns", "depth", "transposed"),
    [
        (33, 40, 72, (False, True)),
        (64, 64, 64, (False, False)),
        (40, 72, 24, (True, False)),
        (3, 20, 17, (False, True)),
    ],
)
def test_matrix_products(
    arch: str, rows: int, columns: int, depth: int, transposed: tuple[bool, bool]
) -> None:
    """Of sizes that fill no tile, contiguous along either axis, with a bias and an activation in the same kernel."""
    a = placeholder(depth, rows, name="a") if transposed[0] else placeholder(rows, depth, name="a")
    b = placeholder(columns, depth, name="b") if transposed[1] else placeholder(depth, columns, name="b")
    bias = placeholder(columns, name="bias")
    made = topi.nn.relu(topi.add(topi.nn.matmul(a, b, None, "float16", *transposed), bias))
    x, y, z = arrays(a, b, bias)
    (found,) = run([a, b, bias], [made], x, y, z, target=tvm.target.Target(f"cuda -arch={arch}"))
    left, right = (x.T if transposed[0] else x), (y.T if transposed[1] else y)
    wanted = np.maximum(left.astype("float32") @ right.astype("float32") + z, 0)
    np.testing.assert_allclose(found, wanted, rtol=4e-3, atol=1e-2)


@pytest.mark.parametrize("transposed", [(False, True), (True, False)])
def test_float32_in_two_parts(transposed: tuple[bool, bool]) -> None:
    """Three products of TF32 are as exact as float32; with one of them, errors would be a thousand times as large."""
    rows, columns, depth = 40, 36, 72
    a = placeholder(*((depth, rows) if transposed[0] else (rows, depth)), name="a", dtype="float32")
    b = placeholder(*((columns, depth) if transposed[1] else (depth, columns)), name="b", dtype="float32")
    made = topi.nn.matmul(a, b, None, "float32", *transposed)
    assert any(isinstance(one, ExternOp) for one in stages_of(made, "sm_90a"))
    x, y = arrays(a, b)
    (found,) = run([a, b], [made], x, y)
    left, right = (x.T if transposed[0] else x), (y.T if transposed[1] else y)
    wanted = left.astype("float64") @ right.astype("float64")
    assert np.abs(found - wanted).max() <= 2e-6


def test_tiles_are_a_choice_of_tuners() -> None:
    """Another tiling than the estimate's best gives the same numbers; one that does not fit is refused."""
    a, b = placeholder(40, 64, name="a"), placeholder(48, 64, name="b")
    made = topi.nn.dense(a, b, None, "float32")
    x, y = arrays(a, b)
    with Decisions() as asked:
        stages_of(made, "sm_90a")
    choice = asked.asked["tensor_core_tile"]
    other = next(one for one in choice.candidates if one[:2] != choice.constructed[:2])
    with Decisions({"tensor_core_tile": other}):
        (found,) = run([a, b], [made], x, y, target=tvm.target.Target("cuda -arch=sm_90a"))
    np.testing.assert_allclose(found, x.astype("float32") @ y.astype("float32").T, rtol=1e-3, atol=1e-3)
    with (
        Decisions({"tensor_core_tile": (1, 2, 3, 4, 5, 6, 7)}),
        pytest.raises(tvm.TVMError, match="cannot be"),
    ):
        stages_of(made, "sm_90a")


@pytest.mark.parametrize(
    ("batch", "depth", "transposed"),
    [(1, 456, (False, True)), (1, 72, (True, False)), (2, 72, (False, False))],
)
def test_the_copy_engine_fetches_tiles(batch: int, depth: int, transposed: tuple[bool, bool]) -> None:
    """Of either layout and of a batch; with more steps than stages, and with tiles beyond the edges."""
    rows, columns = 40, 72
    shapes = [(depth, rows) if transposed[0] else (rows, depth)]
    shapes.append((columns, depth) if transposed[1] else (depth, columns))
    if batch == 1:
        a, b = placeholder(*shapes[0], name="a"), placeholder(*shapes[1], name="b")
        made = topi.nn.matmul(a, b, None, "float16", *transposed)
    else:
        a, b = placeholder(batch, *shapes[0], name="a"), placeholder(batch, *shapes[1], name="b")
        made = topi.nn.batch_matmul(a, b, None, "float16", *transposed)
    target = tvm.target.Target("cuda -arch=sm_90a")
    x, y = arrays(a, b)
    with Decisions() as asked:
        schedule([made], target)
    candidates = asked.asked["tensor_core_tile"].candidates
    tile = next(one for one in candidates if one[:2] == (64, 64) and one[3] == one[-1] == 1)
    with Decisions({"tensor_core_tile": tile}):
        made_schedule = schedule([made], target)
        ptx = tvm.build(made_schedule, [a, b, made], target).imported_modules[0].get_source("ptx")
        (found,) = run([a, b], [made], x, y, target=target)
    assert "cp.async.bulk.tensor" in ptx
    left, right = (x.swapaxes(-1, -2) if transposed[0] else x), (y.swapaxes(-1, -2) if transposed[1] else y)
    wanted = left.astype("float32") @ right.astype("float32")
    np.testing.assert_allclose(found, wanted, rtol=4e-3, atol=2e-2)


def test_what_the_copy_engine_cannot_fetch() -> None:
    """Rows that begin at odd addresses, windows, and a matrix times itself, whose two maps would be one."""
    odd = topi.nn.dense(placeholder(64, 65, name="a"), placeholder(64, 65, name="b"), None, "float16")
    square = placeholder(64, 64, name="a")
    itself = topi.nn.dense(square, square, None, "float16")
    data, weight = placeholder(1, 8, 8, 64, name="a"), placeholder(64, 3, 3, 64, name="w")
    window = conv(data, weight, 1, 1, 1, 1, "NHWC", "OHWI", "float16", "conv", "conv")
    plain = topi.nn.dense(placeholder(64, 64, name="a"), placeholder(64, 64, name="b"), None, "float16")
    assert [find_boxes(product_of(one)) is None for one in (odd, itself, window, plain)] == [
        *[True] * 3,
        False,
    ]


def test_strict_float32_uses_no_matrix_units() -> None:
    """Who needs infinities in a product says so."""
    a, b = placeholder(64, 64, name="a", dtype="float32"), placeholder(64, 64, name="b", dtype="float32")
    with tvm.transform.PassContext(config={"tir.strict_float32": True}):
        stages = stages_of(topi.nn.matmul(a, b), "sm_90a")
    assert not any(isinstance(one, ExternOp) for one in stages)


@pytest.mark.parametrize("arch", ARCHES)
@pytest.mark.parametrize(
    ("channels", "outputs", "groups", "stride", "padding", "dilation", "layout"),
    [
        (16, 24, 1, 1, 1, 1, "OHWI"),
        (16, 24, 1, 2, 1, 1, "HWIO"),
        (3, 16, 1, 1, 2, 2, "OHWI"),
        (32, 32, 2, 1, 1, 1, "OHWI"),
    ],
)
def test_convolutions(
    arch: str, channels: int, outputs: int, groups: int, stride: int, padding: int, dilation: int, layout: str
) -> None:
    """Strided, dilated, in groups, with few channels, and with the weights in either order; padding is never stored."""
    sizes = {"O": outputs, "H": 3, "W": 3, "I": channels // groups}
    a = placeholder(1, 6, 7, channels, name="a")
    w = placeholder(*(sizes[letter] for letter in layout), name="w")
    made = conv(a, w, stride, padding, dilation, groups, "NHWC", layout, "float16", "conv", "conv")
    x, y = arrays(a, w)
    (found,) = run([a, w], [made], x, y, target=tvm.target.Target(f"cuda -arch={arch}"))
    weights = y.transpose([layout.index(letter) for letter in "OIHW"]).astype("float32")
    spread = np.zeros((*weights.shape[:2], 2 * dilation + 1, 2 * dilation + 1), "float32")
    spread[:, :, ::dilation, ::dilation] = weights
    data = x.transpose(0, 3, 1, 2).astype("float32")
    wanted = topi.testing.conv2d_nchw_python(data, spread, stride, padding, groups).transpose(0, 2, 3, 1)
    np.testing.assert_allclose(found, wanted, rtol=4e-3, atol=2e-2)


def test_batches_and_another_order_of_the_result() -> None:
    """What follows may reorder the result: it is stored where it belongs."""
    a, b = placeholder(2, 20, 24, name="a"), placeholder(2, 32, 24, name="b")
    made = topi.transpose(topi.nn.batch_matmul(a, b, out_dtype="float16"), (1, 0, 2))
    assert sum(isinstance(one, ExternOp) for one in stages_of(made, "sm_90a")) == 1
    x, y = arrays(a, b)
    (found,) = run([a, b], [made], x, y, target=tvm.target.Target("cuda -arch=sm_90a"))
    wanted = (x.astype("float32") @ y.swapaxes(1, 2).astype("float32")).transpose(1, 0, 2)
    np.testing.assert_allclose(found, wanted, rtol=4e-3, atol=1e-2)


def test_long_sums_are_split(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks that share the depth store their sums, and what follows adds them up."""
    a, b, bias = placeholder(16, 512, name="a"), placeholder(16, 512, name="b"), placeholder(16, name="bias")
    made = topi.nn.relu(topi.add(topi.nn.dense(a, b, out_dtype="float16"), bias))
    gpu = describe_gpu("cuda -arch=sm_90a")
    split = next(
        one
        for one in candidates(product_of(topi.nn.dense(a, b, out_dtype="float16")), gpu)
        if one.splits == 4
    )
    monkeypatch.setattr("tilewright.schedule.gpu.tensor_core.replace.choose_tiling", lambda *_: split)
    x, y, z = arrays(a, b, bias)
    (found,) = run([a, b, bias], [made], x, y, z, target=tvm.target.Target("cuda -arch=sm_90a"))
    wanted = np.maximum(x.astype("float32") @ y.T.astype("float32") + z, 0)
    np.testing.assert_allclose(found, wanted, rtol=4e-3, atol=2e-2)


def test_roles_of_axes() -> None:
    """A convolution in groups is a batch of products; positions are rows, taps and channels the depth."""
    a, w = placeholder(1, 8, 8, 32, name="a"), placeholder(3, 3, 8, 64, name="w")
    product = product_of(conv(a, w, 1, 1, 1, 4, "NHWC", "HWIO", "float16", "conv", "conv"))
    assert [axis.extent for axis in product.batch if axis.extent > 1] == [4]
    assert [axis.extent for axis in product.columns] == [16]
    assert [axis.extent for axis in product.depth] == [3, 3, 8]
    assert product.reads_columns and not product.reads_rows


def test_tilings_fit_the_device() -> None:
    """Tiles, threads and shared memory stay within what a block may have; a large product gets large tiles."""
    a, b = placeholder(4096, 4096, name="a"), placeholder(4096, 4096, name="b")
    product = product_of(topi.nn.dense(a, b, out_dtype="float16"))
    for arch in ARCHES:
        gpu = describe_gpu(f"cuda -arch={arch}")
        for one in candidates(product, gpu):
            assert one.shared_bytes(2) <= gpu.shared_bytes and one.threads <= gpu.block_threads
        best = choose_tiling(product, gpu)
        assert best.rows * best.columns >= 128 * 64 and best.splits == 1


@pytest.mark.parametrize("arch", ARCHES)
@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_bytes(arch: str, dtype: str) -> None:
    """Exact sums, also over a depth that fills no tile."""
    a, b = placeholder(40, 150, name="a", dtype=dtype), placeholder(36, 150, name="b", dtype=dtype)
    made = topi.nn.dense(a, b, None, "int32")
    assert any(isinstance(one, ExternOp) for one in stages_of(made, arch))
    random = np.random.default_rng(4)
    limits = np.iinfo(dtype)
    x, y = (
        random.integers(limits.min, limits.max + 1, shape).astype(dtype) for shape in ((40, 150), (36, 150))
    )
    (found,) = run([a, b], [made], x, y, target=tvm.target.Target(f"cuda -arch={arch}"))
    np.testing.assert_array_equal(found, x.astype("int32") @ y.astype("int32").T)


def test_other_types_have_other_schedules() -> None:
    """What the matrix units cannot multiply goes to ordinary cores."""
    dtype = out_dtype = "float64"
    a, b = placeholder(64, 64, name="a", dtype=dtype), placeholder(64, 64, name="b", dtype=dtype)
    assert not any(
        isinstance(one, ExternOp) for one in stages_of(topi.nn.dense(a, b, None, out_dtype), "sm_90a")
    )
