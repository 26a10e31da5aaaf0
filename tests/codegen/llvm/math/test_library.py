"""Every function is within its stated error of the float64 (or, for float64, the 80-bit) value, over all inputs.

The samples run through all exponents and both signs; ``sweep.py`` beside this file goes through every float32.
"""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
import scipy.special

from tilewright.codegen.llvm.math.library import FUNCTIONS
from tilewright.ir.expr import Call, Load, Ramp, Var
from tilewright.target.cpu import describe_cpu
from tilewright.target.target import Target
from tilewright.tir.stmt import For, ForKind, Store

ROUNDING = {"floor", "ceil", "trunc", "round", "nearbyint"}
SPECIAL = [
    0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e-45, -1e-45, 2.0**-126, 3.4028235e38, -3.4028235e38,
    0.5, -0.5, 2.0, 88.72284, -103.97, 89.41599, 128.0, -149.0, 38.53, 1.9999999, 0.99999994, 1.0000001,
]  # fmt: skip
UNARY = [name for name, function in FUNCTIONS.items() if function.arguments == 1 and not function.result]
REFERENCES = {
    "sigmoid": scipy.special.expit,
    "erf": scipy.special.erf,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "exp10": lambda x: np.power(x.dtype.type(10), x),
    "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan,
    "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh,
    "round": lambda x: np.copysign(np.floor(np.abs(x) + 0.5), x), "nearbyint": np.rint,
    "pow": np.power, "atan2": np.arctan2,
}  # fmt: skip


def reference(name):
    """NumPy's or SciPy's function of this name."""
    return REFERENCES.get(name) or getattr(np, name)


def errors(got: np.ndarray, exact: np.ndarray) -> np.ndarray:
    """The distance from the exact value in units of the last place of the nearest number of the result's type."""
    kind = got.dtype
    with np.errstate(all="ignore"):
        near = exact.astype(kind)
        largest = np.finfo(kind).max
        unit = np.spacing(np.minimum(np.abs(near), largest)).astype(exact.dtype)
        distance = np.abs(got.astype(exact.dtype) - exact) / unit
    distance[np.isnan(got) & np.isnan(exact)] = 0
    # Beyond the largest number the nearest is infinity.
    distance[np.isinf(got) & np.isinf(near) & (np.sign(got) == np.sign(near))] = 0
    distance[np.isnan(distance)] = np.inf
    return distance


def sample(count: int) -> np.ndarray:
    """float32 numbers of every size, the special ones, and many of moderate size."""
    step = 2**32 // count
    everywhere = np.arange(0, 2**32, step, dtype=np.uint64).astype(np.uint32).view(np.float32)
    near = [np.linspace(-bound, bound, count // 8, dtype=np.float32) for bound in (1, 10, 110)]
    found = np.concatenate([everywhere, np.array(SPECIAL, np.float32), *near])
    return found[: len(found) // 16 * 16].copy()


def call(name, lanes, dtype="float32"):
    """The intrinsic as a function of vectors."""
    return lambda *values: Call(dtype if lanes == 1 else f"{dtype}x{lanes}", f"tir.{name}", list(values))


@pytest.mark.parametrize("name", UNARY)
def test_float32(kit, name):
    """The error stays within the stated bound; zeros keep their sign; NaN and infinities come out as they should."""
    x = sample(1 << 18)
    with np.errstate(all="ignore"):
        exact = reference(name)(x.astype(np.float64))
    got = kit.elementwise(call(name, 8), [x], "float32", lanes=8)
    distance = errors(got, exact)
    worst = int(np.argmax(distance))
    assert distance[worst] <= FUNCTIONS[name].single_ulp, (
        f"{name}({x[worst]!r}) = {got[worst]!r}, not {exact[worst]!r}"
    )
    zeros = (exact == 0) & (x == 0)
    np.testing.assert_array_equal(np.signbit(got[zeros]), np.signbit(exact[zeros]))


AVX512, AVX2 = "llvm -mcpu=skylake-avx512", "llvm -mcpu=haswell"


def runs(target):
    """A mark that leaves a case out where the machine that runs the tests lacks what the target has."""
    wanted = describe_cpu(Target(target)).features
    return pytest.mark.skipif(
        not wanted & {"avx512f", "avx2"} <= describe_cpu(Target("llvm")).features, reason=f"not a {target}"
    )


@pytest.mark.parametrize(
    ("target", "lanes"),
    [
        pytest.param(target, lanes, marks=runs(target))
        for target, lanes in ((AVX512, 16), (AVX512, 32), (AVX512, 4), (AVX2, 8), (AVX2, 48))
    ],
)
@pytest.mark.parametrize("name", ["exp", "exp2", "exp10", "sigmoid", "tanh", "erf"])
def test_registers_of_every_width(kit, name, target, lanes):
    """The bounds hold for whole registers, halves of them and several of them, each with instructions of its own."""
    x = sample(1 << 15)
    x = x[: len(x) // 96 * 96].copy()
    with np.errstate(all="ignore"):
        exact = reference(name)(x.astype(np.float64))
    got = kit.elementwise(call(name, lanes), [x], "float32", lanes=lanes, target=target)
    distance = errors(got, exact)
    worst = int(np.argmax(distance))
    assert distance[worst] <= FUNCTIONS[name].single_ulp, (
        f"{name}({x[worst]!r}) = {got[worst]!r}, not {exact[worst]!r}"
    )


@pytest.mark.parametrize("name", ["sigmoid", "tanh", "erf"])
@pytest.mark.parametrize("lanes", [1, 8, 16])
def test_limits_are_exact(kit, name, lanes):
    """Far out each is its limit, and nowhere more: what rounds to 1 is 1."""
    x = np.concatenate([np.linspace(3, 20, 4080), [30, 100, 1e30, np.inf], np.full(12, 1e4)]).astype(
        np.float32
    )
    x = np.concatenate([x, -x])
    got = kit.elementwise(call(name, lanes), [x], "float32", lanes=lanes)
    far = x > (3.95 if name == "erf" else 17.5)
    np.testing.assert_array_equal(got[far], 1)
    assert np.abs(got).max() == 1
    if name != "sigmoid":
        np.testing.assert_array_equal(got, -got[np.r_[4096:8192, 0:4096]])


@pytest.mark.parametrize(
    ("name", "target", "lanes", "most"),
    [
        ("exp", AVX512, 16, 14), ("exp", AVX2, 8, 20), ("sigmoid", AVX512, 16, 19), ("sigmoid", AVX2, 8, 24),
        ("tanh", AVX512, 16, 22), ("tanh", AVX2, 8, 23), ("erf", AVX512, 16, 18), ("erf", AVX2, 8, 24),
    ],
)  # fmt: skip
def test_few_instructions(kit, name, target, lanes, most):
    """A vector takes few instructions and no branch, call or lane on its own."""
    source, result, i = kit.buffer("x", 4 * lanes), kit.buffer("y", 4 * lanes), Var("i")
    index = Ramp(i * lanes, 1, lanes)
    value = call(name, lanes)(Load(f"float32x{lanes}", source.data, index))
    body = For(i, 0, 4, ForKind.SERIAL, Store(result.data, value, index))
    text = kit.build([source, result], body, target).get_source("asm")
    # The function comes four times: its loop has a constant count.
    arithmetic = re.findall(r"^\t(v[a-z0-9]+)\t.*%[yz]mm", text, re.MULTILINE)
    counted = [found for found in arithmetic if not re.match(r"v(mov|pxor|broadcast|pbroadcast|zero)", found)]
    assert 0 < len(counted) <= 4 * most, counted
    assert not re.search(r"v(extract|insert|pextr|pinsr)|call.*(exp|erf|tanh)", text)


@pytest.mark.parametrize("name", ["exp", "log", "log10", "sin", "tan", "tanh", "erf", "atan"])
def test_without_fma(kit, name):
    """The same bounds hold on a machine without fused multiply-add, in vectors of four, and for single numbers."""
    x = sample(1 << 15)
    with np.errstate(all="ignore"):
        exact = reference(name)(x.astype(np.float64))
    for lanes in (1, 4):
        got = kit.elementwise(call(name, lanes), [x], "float32", lanes=lanes, target="llvm -mcpu=x86-64")
        assert errors(got, exact).max() <= FUNCTIONS[name].single_ulp


@pytest.mark.parametrize(
    ("dtype", "target"), [("float32", "llvm"), ("float64", "llvm"), ("float64", "llvm -mcpu=x86-64")]
)
@pytest.mark.parametrize("name", ["pow", "atan2", "hypot", "fmod", "copysign"])
def test_two_arguments(kit, name, dtype, target):
    """C's special values for every pair of special arguments, and the stated bound for random ones."""
    rng = np.random.default_rng(0)
    special = [*SPECIAL[:15], 3, -3, 7.5, -7]
    pairs = np.array(np.meshgrid([*special, 16777216], [*special, 16777217]), dtype).reshape(2, -1)
    bits = {"float32": np.uint32, "float64": np.uint64}[dtype]
    random = rng.integers(0, np.iinfo(bits).max, (2, 20000), dtype=bits, endpoint=True).view(dtype)
    moderate = np.stack([np.exp(rng.uniform(-9, 9, 20000)), rng.uniform(-9, 9, 20000)]).astype(dtype)
    # Powers that only the logarithm's last bits decide.
    near_one = np.stack([1 + rng.uniform(-1e-3, 1e-3, 20000), rng.uniform(-1e5, 1e5, 20000)]).astype(dtype)
    x, y = np.concatenate([pairs, random, moderate, near_one], axis=1)
    wide = np.float64 if dtype == "float32" else np.longdouble
    with np.errstate(all="ignore"):
        exact = reference(name)(x.astype(wide), y.astype(wide))
    got = kit.elementwise(call(name, 8, dtype), [x.copy(), y.copy()], dtype, lanes=8, target=target)
    distance = errors(got, exact)
    worst = int(np.argmax(distance))
    function = FUNCTIONS[name]
    assert distance[worst] <= (function.single_ulp if dtype == "float32" else function.double_ulp), (
        f"{name}({x[worst]}, {y[worst]}) = {got[worst]}, not {exact[worst]}"
    )
    zeros = exact == 0
    np.testing.assert_array_equal(np.signbit(got[zeros]), np.signbit(exact[zeros]))


def test_neighbours_and_scaling(kit):
    """nextafter is NumPy's bit for bit; ldexp is exact, rounds denormals once and saturates."""
    rng = np.random.default_rng(1)
    x, y = (
        rng.integers(0, 2**32, 4096, dtype=np.uint64).astype(np.uint32).view(np.float32) for _ in range(2)
    )
    x[:4], y[:4] = [0, -0.0, 1, 1], [1, -1, 1, np.nan]
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(
            kit.elementwise(call("nextafter", 8), [x, y], "float32", lanes=8), np.nextafter(x, y)
        )
        powers = rng.integers(-300, 300, 4096).astype("int32")
        powers[:2] = [2**31 - 1, -(2**31)]
        np.testing.assert_array_equal(
            kit.elementwise(call("ldexp", 8), [x, powers], "float32", lanes=8), np.ldexp(x, powers)
        )
        wide = rng.integers(0, 2**64, 4096, dtype=np.uint64).view(np.float64)
        powers = rng.integers(-2200, 2200, 4096).astype("int32")
        powers[:2] = [2**31 - 1, -(2**31)]
        np.testing.assert_array_equal(
            kit.elementwise(call("ldexp", 8, "float64"), [wide, powers], "float64", lanes=8),
            np.ldexp(wide, powers),
        )


def test_exact_powers(kit):
    """Powers of whole numbers that a float64 has are those numbers."""
    x, y = np.array([(x, y) for x in range(2, 200) for y in range(8) if x**y < 2**53], np.float64).T
    x, y = (one[: len(one) // 8 * 8].copy() for one in (x, y))
    got = kit.elementwise(call("pow", 8, "float64"), [x, y], "float64", lanes=8)
    np.testing.assert_array_equal(got, [float(int(a) ** int(b)) for a, b in zip(x, y, strict=True)])


@pytest.mark.parametrize(("name", "wanted"), [("sin", 1.0), ("cos", -4.68716592425462761112e-19)])
def test_the_number_nearest_to_a_multiple_of_half_pi(kit, name, wanted):
    """The reduction keeps all bits of the remainder of the float64 that leaves the smallest one."""
    got = kit.elementwise(
        call(name, 8, "float64"), [np.full(8, 6381956970095103.0 * 2.0**797)], "float64", lanes=8
    )
    np.testing.assert_array_equal(got, np.full(8, wanted))


def test_classification(kit):
    """isnan, isinf and isfinite of every kind of number, in every float type."""
    for dtype in ("float16", "float32", "float64"):
        x = np.array([0, -1, np.inf, -np.inf, np.nan, 1e-5, 65504, -0.0], dtype)
        tests = [
            lambda v, name=name: Call("boolx8", f"tir.{name}", [v]) for name in ("isnan", "isinf", "isfinite")
        ]
        results = kit.elementwise(tests, [x], "bool", lanes=8)
        np.testing.assert_array_equal(results, [np.isnan(x), np.isinf(x), np.isfinite(x)])


DOUBLE = [(name, 4, "llvm") for name in UNARY if name not in ROUNDING]
TRIGONOMETRY = [
    (name, lanes, "llvm -mcpu=x86-64") for name in ("sin", "cos", "tan", "asin", "atan") for lanes in (1, 2)
]


@pytest.mark.parametrize(("name", "lanes", "target"), [*DOUBLE, *TRIGONOMETRY])
def test_float64(kit, name, lanes, target):
    """float64 functions are within their stated error of the 80-bit value."""
    rng = np.random.default_rng(3)
    bits = rng.integers(0, 2**64, 1 << 13, dtype=np.uint64).view(np.float64)
    x = np.concatenate(
        [
            bits,
            SPECIAL[:16],
            np.linspace(-1, 1, 4000),
            np.linspace(-50, 50, 4000),
            np.linspace(-750, 720, 4000),
            np.linspace(9e5, 8e6, 2000),
            np.round(rng.uniform(0, 7e5, 2000)) * np.pi / 2,
        ]
    )
    x = x[: len(x) // 8 * 8].copy()
    with np.errstate(all="ignore"):
        precise = x.astype(np.longdouble)
        if name == "sigmoid":
            tail = np.exp(-np.abs(precise))
            exact = np.where(x < 0, tail, 1) / (1 + tail)
        elif name == "erf":
            exact = np.array([math.erf(one) for one in x], np.longdouble)
        else:
            exact = reference(name)(precise)
    got = kit.elementwise(call(name, lanes, "float64"), [x], "float64", lanes=lanes, target=target)
    distance = errors(got, exact)
    worst = int(np.argmax(distance))
    # The reference of erf is a float64 as well.
    bound = FUNCTIONS[name].double_ulp + (1.0 if name == "erf" else 0.0)
    assert distance[worst] <= bound, f"{name}({x[worst]!r}) = {got[worst]!r}, not {exact[worst]!r}"


@pytest.mark.parametrize("name", ["exp", "tanh", "sigmoid", "log"])
def test_float16_is_computed_in_float32(kit, name):
    """Every float16 gives the float16 nearest to the exact value, but for the last rounding's rare ties."""
    x = np.arange(65536, dtype=np.uint16).view(np.float16)
    with np.errstate(all="ignore"):
        exact = reference(name)(x.astype(np.float64))
    got = kit.elementwise(call(name, 8, "float16"), [x], "float16", lanes=8)
    assert errors(got, exact).max() <= 0.51
