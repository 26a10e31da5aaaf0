"""The same constructs on a GPU, and the errors of the math functions there: ``pytest -m gpu tests/codegen/nvptx``."""

from __future__ import annotations

import math
import sys
from typing import Any

import numpy as np
import pytest
from tests.codegen.nvptx import kernels
from tests.codegen.nvptx.cases import CASES, elementwise

import tilewright as tvm
from tilewright import tir
from tilewright.codegen.nvptx.math import FUNCTIONS
from tilewright.ir.intrinsics import MATH_BINARY, MATH_UNARY
from tilewright.target import describe_gpu

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not tvm.cuda(0).exist, reason="there is no NVIDIA GPU"),
]


def run(schedule: Any, args: list[Any], arrays: list[Any]) -> list[Any]:
    """Build for this machine's GPU, call with the arrays there, and give what they hold afterwards."""
    module = tvm.lower(schedule, args) if args else tvm.lower(schedule)
    built = tvm.build(module, target="cuda")
    device = tvm.cuda(0)
    given = [tvm.nd.array(np.array(array), device) for array in arrays]
    built["main"](*given)
    device.sync()
    return [array.numpy() for array in given]


@pytest.mark.parametrize("name", CASES)
def test_construct(name: str) -> None:
    case = CASES[name]()
    if describe_gpu("cuda").number < int(case.arch.removeprefix("sm_").rstrip("a")):
        pytest.skip(f"needs {case.arch}")
    if name.startswith("mma_bfloat16"):
        pytest.skip("NumPy has no bfloat16 arrays; mma of float16 has the same fragments")
    for array, wanted in zip(run(case.schedule, case.args, case.arrays), case.wanted, strict=True):
        if wanted is not None:
            np.testing.assert_allclose(array, wanted, rtol=case.tolerance, atol=case.tolerance)


def test_conversions_saturate() -> None:
    """What an integer cannot hold becomes its nearest end, NaN zero."""
    values = np.array([300.0, -300.0, np.nan, np.inf, -np.inf, 1e30, 127.9, -128.9] * 8, "float32")
    s, args = elementwise(64, ["float32"], lambda a: a.astype("int8"))
    found = run(s, args, [values, np.zeros(64, "int8")])[1]
    np.testing.assert_array_equal(found, np.array([127, -128, 0, 127, -128, 127, 127, -128] * 8, "int8"))


@pytest.mark.parametrize(("rows", "columns", "depth"), [(32, 16, 64), (128, 64, 256)])
def test_warp_product(rows: int, columns: int, depth: int) -> None:
    generator = np.random.default_rng(1)
    a, b = (generator.standard_normal(shape).astype("float16") for shape in ((rows, depth), (columns, depth)))
    found = run(kernels.warp_product(rows, columns, depth), [], [a, b, np.zeros((rows, columns), "float32")])[
        2
    ]
    np.testing.assert_allclose(found, a.astype("float32") @ b.T.astype("float32"), rtol=1e-3, atol=1e-2)


@pytest.mark.parametrize(("columns", "swizzle"), [(8, 32), (16, 64), (64, 128), (128, 128), (256, 128)])
def test_group_product(columns: int, swizzle: int) -> None:
    """wgmma, bulk tensor copies and barriers: the swizzles of all sizes."""
    if not describe_gpu("cuda").has_wgmma:
        pytest.skip("needs sm_90a")
    depth, generator = 7 * swizzle // 2, np.random.default_rng(1)
    a, b = (generator.standard_normal(shape).astype("float16") for shape in ((64, depth), (columns, depth)))
    program = kernels.group_product(columns, depth, stages=3, swizzle=swizzle)
    found = run(program, [], [a, b, np.zeros((64, columns), "float32")])[2]
    np.testing.assert_allclose(found, a.astype("float32") @ b.T.astype("float32"), rtol=1e-3, atol=1e-2)


@pytest.mark.parametrize(
    ("n", "a_type", "c_type", "stored", "options"),
    [*kernels.KINDS_OF_WGMMA, (256, "float16", "float32", "float16", {})],
)
def test_kinds_of_wgmma(n: int, a_type: str, c_type: str, stored: str, options: dict[str, bool]) -> None:
    """The layouts in shared memory without a swizzle, transposed operands, and fragments in registers."""
    if not describe_gpu("cuda").has_wgmma:
        pytest.skip("needs sm_90a")
    a, b = kernels.wgmma_operands(n, stored)
    program = kernels.one_wgmma(n, a_type, c_type, stored, **options)
    found = run(program, [], [a, b, np.zeros((64, n), c_type)])[2]
    np.testing.assert_allclose(found, kernels.wgmma_result(a, b, a_type, c_type), rtol=1e-3)


@pytest.mark.parametrize("swizzle", [0, 128])
def test_boxes(swizzle: int) -> None:
    if not describe_gpu("cuda").has_bulk_copy:
        pytest.skip("needs sm_90")
    a = np.random.default_rng(1).standard_normal((12, 44)).astype("float32")
    np.testing.assert_array_equal(run(kernels.box_copy(12, 44, swizzle), [], [a, np.zeros_like(a)])[1], a)


def test_roles() -> None:
    if not describe_gpu("cuda").has_bulk_copy:
        pytest.skip("needs sm_90")
    a = np.random.default_rng(1).standard_normal((2, 64)).astype("float16")
    found = run(kernels.roles(), [], [a, np.zeros_like(a)])[1]
    np.testing.assert_array_equal(found.reshape(2, 8, 8), a.reshape(2, 8, 8).transpose(0, 2, 1))


# The math functions

_DOMAINS = {
    **dict.fromkeys(("log", "log2", "log10", "sqrt", "rsqrt"), (1e-38, 1e38)),
    **dict.fromkeys(("asin", "acos", "atanh"), (-1.0, 1.0)),
    **dict.fromkeys(("exp", "sinh", "cosh"), (-103.0, 89.0)),
    "exp2": (-149.0, 128.0),
    "exp10": (-44.0, 38.5),
    "acosh": (1.0, 1e38),
    "log1p": (-0.9999, 1e30),
    "sigmoid": (-104.0, 30.0),
    "tanh": (-10.0, 10.0),
    "erf": (-4.5, 4.5),
    **dict.fromkeys(("sin", "cos", "tan"), (-1e5, 1e5)),
}
_REFERENCE: dict[str, Any] = {
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "exp10": lambda x: np.power(np.longdouble(10), x),
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    "fabs": np.abs,
    "round": lambda x: np.copysign(np.floor(np.abs(x) + 0.5), x),
    "nearbyint": np.rint,
    "atan2": np.arctan2,
    "pow": np.power,
}


def _inputs(name: str, count: int) -> np.ndarray[Any, Any]:
    """Numbers of every magnitude in a function's domain, of both signs where it has them."""
    low, high = _DOMAINS.get(name, (-1e6, 1e6))
    generator = np.random.default_rng(7)
    if low > 0:
        return np.exp(generator.uniform(np.log(low), np.log(high), count)).astype("float32")
    even = generator.uniform(low, high, count // 2)
    small = np.exp(generator.uniform(np.log(1e-7), np.log(min(-low, high)), count - count // 2))
    return np.concatenate([even, small * generator.choice([-1.0, 1.0], small.size)]).astype("float32")


def _reference(name: str, *inputs: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    wide = [one.astype(np.longdouble) for one in inputs]
    if name == "erf":
        return np.array([math.erf(float(one)) for one in inputs[0]], np.longdouble)
    function = _REFERENCE.get(name) or getattr(np, name)
    return np.asarray(function(*wide), np.longdouble)


def _units(found: np.ndarray[Any, Any], wanted: np.ndarray[Any, Any], dtype: str) -> float:
    """The largest error in units in the last place of the result; what overflows must be infinite."""
    rounded = wanted.astype(dtype)
    finite = np.isfinite(rounded) & np.isfinite(found)
    unit = np.abs(np.spacing(rounded[finite]).astype(np.longdouble))
    errors = np.abs(found[finite].astype(np.longdouble) - wanted[finite]) / unit
    assert (finite | (found == rounded) | (np.isnan(found) & np.isnan(rounded))).mean() > 0.999
    return float(errors.max())


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16"])
def test_errors_of_math_functions(dtype: str, record_property: Any) -> None:
    """Each function is within its stated error; the table is printed."""
    count, table, wrong = 1 << 17, [], []
    for name in (*MATH_UNARY, "atan2", "pow", "fmod"):
        if name == "fabs" or (
            dtype == "float16" and name not in ("exp", "sigmoid", "tanh", "log", "erf", "sqrt")
        ):
            continue
        x = _inputs(name, count).astype(dtype)
        inputs = [x]
        if name in MATH_BINARY:
            y = np.random.default_rng(3).uniform(-3, 3, count).astype(dtype)
            inputs = [np.abs(x) % 50 if name == "pow" else x, y]

        def body(*values: Any, name: str = name) -> Any:
            return tir.call_intrin(dtype, f"tir.{name}", *values)

        s, args = elementwise(count, [dtype] * len(inputs), body, threads=256)
        found = run(s, args, [*inputs, np.zeros(count, dtype)])[-1]
        with np.errstate(all="ignore"):
            error = _units(found, _reference(name, *inputs), dtype)
        half = f"{name}_half"
        function = FUNCTIONS[half] if dtype == "float16" and half in FUNCTIONS else FUNCTIONS[name]
        stated = function.double_ulp if dtype == "float64" else function.single_ulp
        stated = max(stated, 1.0 if dtype == "float16" else 0.5)
        if (name, dtype) == ("erf", "float64"):
            # The reference is a float64, too.
            stated += 1.0
        table.append(f"{name:10} {error:8.2f} {stated:8.2f}")
        if error > stated + 0.01:
            wrong.append(table[-1])
    sys.stdout.write(
        f"\n{dtype}: function, largest error, stated error, in units in the last place\n" + "\n".join(table)
    )
    record_property("table", table)
    assert not wrong, wrong
