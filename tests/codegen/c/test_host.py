"""C source of whole functions compiles and computes what the interpreter does."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest
from tests.relay.number_fuzz import special_numbers

from tilewright import tir
from tilewright.codegen import build
from tilewright.codegen.c import generate_c
from tilewright.ir.intrinsics import MATH_UNARY
from tilewright.ir.module import IRModule
from tilewright.ir.transform import PassContext, Sequential
from tilewright.runtime import load_module
from tilewright.runtime.packed_func import PackedFunc
from tilewright.runtime.registry import register_func, remove_global_func
from tilewright.support.cbuild import find_compiler
from tilewright.support.errors import CodegenError
from tilewright.target import Target
from tilewright.tir.build_pipeline import host_passes, mixed_passes
from tilewright.tir.interpreter import interpret

C = Target("c")


def host_module(function: tir.PrimFunc) -> IRModule:
    module = IRModule({"f": function.with_attr({"global_symbol": "f", "target": C})})
    return Sequential(host_passes(C, C))(Sequential(mixed_passes(C, C))(module))


def compiled(compile_c: Any, function: tir.PrimFunc) -> PackedFunc:
    return compile_c(generate_c(host_module(function)), "f")


def agree(compile_c: Any, function: tir.PrimFunc, *arguments: Any) -> list[Any]:
    """Run compiled and interpreted on copies, and want the same."""
    results = []
    for run in (compiled(compile_c, function), lambda *given: interpret(function, *given)):
        given = [argument.copy() if isinstance(argument, np.ndarray) else argument for argument in arguments]
        run(*given)
        results.append(given)
    for actual, expected in zip(*results, strict=True):
        np.testing.assert_array_equal(actual, expected)
    return results[0]


def scalar_cases() -> list[tir.PrimExpr]:
    """Integer expressions of x and y that exercise every operator, in every width."""
    cases: list[tir.PrimExpr] = []
    for kind in ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"):
        x = tir.Cast(kind, X)
        y = tir.Cast(kind, Y)
        one = tir.const(1, kind)
        cases += [x + y, x - y, x * y, tir.min(x, y), tir.max(x, y), x & y, x | y, x ^ y, ~x]
        cases += [x << one, x >> one, tir.truncdiv(x, y | one), tir.truncmod(x, y | one)]
        cases += [tir.floordiv(x, y | one), tir.floormod(x, y | one), tir.floordiv(x, tir.const(4, kind))]
        cases += [tir.Select(x < y, x, y), tir.if_then_else(x >= y, x, y)]
        cases += [tir.Cast(kind, tir.all(x > y, x != y)), tir.Cast(kind, tir.any(x == y, tir.Not(x <= y)))]
        cases += [
            tir.const(int(tir.min_value(kind).value), kind),
            tir.const(int(tir.max_value(kind).value), kind),
        ]
    return [tir.Cast("int64", case) for case in cases]


X, Y = tir.Var("x", "int64"), tir.Var("y", "int64")


def test_integer_expressions(compile_c: Any) -> None:
    """Every operator wraps around and rounds as the interpreter says, for numbers of both signs."""
    cases = scalar_cases()
    out = tir.decl_buffer((len(cases),), "int64", name="out")
    body = tir.SeqStmt([tir.Store(out.data, case, place) for place, case in enumerate(cases)])
    function = tir.PrimFunc([X, Y, out], body)
    run = compiled(compile_c, function)
    for x, y in ((7, 3), (-7, 3), (100, -5), (-128, 127), (12345, 54321), (0, 0)):
        actual, expected = np.zeros(len(cases), "int64"), np.zeros(len(cases), "int64")
        run(x, y, actual)
        interpret(function, x, y, expected)
        wrong = [
            (str(cases[place]), actual[place], expected[place]) for place in np.nonzero(actual != expected)[0]
        ]
        assert not wrong


@pytest.mark.parametrize("kind", ["float32", "float64"])
def test_math_functions(compile_c: Any, kind: str) -> None:
    """Every intrinsic of one argument has a C function, within a few units in the last place."""
    x = tir.Var("x", kind)
    names = [name for name in MATH_UNARY if name != "acosh"]  # has no value below one
    out = tir.decl_buffer((len(names) + 4,), kind, name="out")
    cases = [tir.call_intrin(kind, f"tir.{name}", x) for name in names]
    binary = ("atan2", "pow", "hypot", "copysign")
    cases += [tir.call_intrin(kind, f"tir.{name}", x, tir.const(0.7, kind)) for name in binary]
    body = tir.SeqStmt([tir.Store(out.data, case, place) for place, case in enumerate(cases)])
    function = tir.PrimFunc([x, out], body)
    run = compiled(compile_c, function)
    actual, expected = np.zeros(len(cases), kind), np.zeros(len(cases), kind)
    for value in (0.3, 0.75, 0.999):
        run(value, actual)
        interpret(function, value, expected)
        np.testing.assert_allclose(actual, expected, rtol=8 * np.finfo(kind).eps)


def test_special_floats(compile_c: Any) -> None:
    """Infinities, NaN and tests for them."""
    x = tir.Var("x", "float32")
    nan, inf = tir.const(float("nan"), "float32"), tir.const(float("inf"), "float32")
    cases = [tir.isnan(x), tir.isinf(x), tir.isfinite(x), tir.isnan(nan), tir.isinf(-inf)]
    floats = [tir.max(x, nan), tir.max(nan, x), tir.min(x, inf), x * tir.const(1e-40, "float32")]
    out, more = (
        tir.decl_buffer((len(cases),), "bool", name="out"),
        tir.decl_buffer((len(floats),), name="more"),
    )
    body = [tir.Store(out.data, case, place) for place, case in enumerate(cases)]
    body += [tir.Store(more.data, case, place) for place, case in enumerate(floats)]
    function = tir.PrimFunc([x, out, more], tir.SeqStmt(body))
    for value in (1.5, float("inf"), float("nan")):
        agree(compile_c, function, value, np.zeros(len(cases), bool), np.zeros(len(floats), "float32"))


def test_vectors(compile_c: Any) -> None:
    """Vectors go lane by lane, and a store reads all lanes before it writes the first."""
    a, b = tir.decl_buffer((32,), name="A"), tir.decl_buffer((32,), name="B")
    ramp = lambda start, stride=1: tir.Ramp(start, stride, 4)
    load = lambda start, stride=1: tir.Load("float32x4", a.data, ramp(start, stride))
    even = tir.EQ(tir.floormod(ramp(0), tir.Broadcast(2, 4)), tir.Broadcast(0, 4))
    body = tir.SeqStmt(
        [
            tir.Store(b.data, load(0) + load(4, 2), ramp(0)),
            tir.Store(
                b.data, tir.Select(even, load(8), tir.Broadcast(tir.const(-1.0, "float32"), 4)), ramp(4)
            ),
            tir.Store(b.data, tir.Shuffle([load(0), load(4)], [7, 0, 3, 4]), ramp(8)),
            tir.Store(b.data, load(16), ramp(12), even),
            tir.Store(a.data, load(0), ramp(1)),
            tir.LetStmt(
                v := tir.Var("v", "float32x4"), load(20) * load(20), tir.Store(b.data, v, ramp(20, 3))
            ),
        ]
    )
    values = np.random.default_rng(0).standard_normal(32).astype("float32")
    agree(compile_c, tir.PrimFunc([a, b], body), values, np.zeros(32, "float32"))


def test_control_flow(compile_c: Any) -> None:
    """Loops from any start, while loops, branches, lets and allocations nest."""
    builder = tir.ir_builder.create()
    n, out = tir.Var("n"), builder.pointer("int32", name="out")
    work = builder.allocate("int32", 4, name="work")
    with builder.for_range(2, n, name="i") as i:
        work[0] = i
        work[1] = 0
        with builder.while_loop(work[0] > 0):
            work[1] = work[1] + tir.floormod(work[0], 10)
            work[0] = tir.floordiv(work[0], 10)
        with builder.if_scope(tir.floormod(i, 3).equal(0)):
            out[i] = work[1]
        with builder.else_scope():
            doubled = builder.let("doubled", work[1] * 2)
            out[i] = doubled + doubled
    agree(compile_c, tir.PrimFunc([n, out.asobject()], builder.get()), 60, np.zeros(64, "int32"))


def test_the_extent_of_a_loop_is_read_once(compile_c: Any) -> None:
    """A body that overwrites what the extent was read from does not change the number of iterations."""
    builder = tir.ir_builder.create()
    a = builder.pointer("int32", name="A")
    with builder.for_range(0, a[0], name="i") as i:
        a[0] = 100
        a[i + 1] = i
    (result,) = agree(compile_c, tir.PrimFunc([a.asobject()], builder.get()), np.full(8, 3, "int32"))
    np.testing.assert_array_equal(result, [100, 0, 1, 2, 3, 3, 3, 3])


def test_shared_expressions_do_not_explode(compile_c: Any) -> None:
    """A chain of sums of a value with itself stays linear in text."""
    x, out = tir.Var("x", "uint64"), tir.decl_buffer((1,), "uint64", name="out")
    value: tir.PrimExpr = x
    for _ in range(60):
        value = value + value
    module = host_module(tir.PrimFunc([x, out], tir.Store(out.data, value, 0)))
    source = generate_c(module)
    assert len(source) < 60_000
    result = np.zeros(1, "uint64")
    compile_c(source, "f")(3, result)
    assert result[0] == 3 << 60


def test_workspace(compile_c: Any) -> None:
    """Large buffers come from the pool, of symbolic size and of none."""
    builder = tir.ir_builder.create()
    n, out = tir.Var("n"), builder.pointer("float32", name="out")
    work = builder.allocate("float32", n, name="work")
    with builder.for_range(0, n, name="i") as i:
        work[i] = tir.Cast("float32", i * i)
    with builder.for_range(0, n, name="i") as i:
        out[i] = work[n - 1 - i]
    function = tir.PrimFunc([n, out.asobject()], builder.get())
    for size in (5000, 1, 0):
        agree(compile_c, function, size, np.zeros(max(size, 1), "float32"))


def test_packed_calls(compile_c: Any) -> None:
    """Arguments of every kind arrive, results come back, and errors travel through."""
    seen: list[Any] = []

    def remember(*values: Any) -> Any:
        seen[:] = [value.numpy().copy() if hasattr(value, "numpy") else value for value in values]
        return sum(value for value in values if isinstance(value, int) and not isinstance(value, bool))

    register_func("tests.codegen.remember", remember)
    a, x = tir.decl_buffer((2, 3), name="A"), tir.Var("x", "float32")
    out = tir.decl_buffer((1,), "int32", name="out")
    shape = tir.call_intrin("handle", "tir.tvm_stack_make_shape", 2, 3)
    array = tir.call_intrin(
        "handle", "tir.tvm_stack_make_array", a.data, shape, 0, 2, tir.const(0, "float32"), 0
    )
    call = tir.call_packed("tests.codegen.remember", array, 40, x, "text", True, 2)
    function = compiled(compile_c, tir.PrimFunc([a, x, out], tir.Store(out.data, call, 0)))
    values, result = np.arange(6, dtype="float32").reshape(2, 3), np.zeros(1, "int32")
    try:
        function(values, 2.5, result)
    finally:
        remove_global_func("tests.codegen.remember")
    assert result[0] == 42
    np.testing.assert_array_equal(seen[0], values)
    assert seen[1:] == [40, 2.5, "text", True, 2]
    with pytest.raises(Exception, match=r"tests\.codegen\.remember"):
        function(values, 2.5, result)


def test_results_must_be_numbers(compile_c: Any) -> None:
    """A packed function that returns something else where a number is used is an error."""
    register_func("tests.codegen.text", lambda: "text")
    out = tir.decl_buffer((1,), "int32", name="out")
    function = compiled(
        compile_c, tir.PrimFunc([out], tir.Store(out.data, tir.call_packed("tests.codegen.text"), 0))
    )
    try:
        with pytest.raises(TypeError, match=r"tests\.codegen\.text returned a string, expected a number"):
            function(np.zeros(1, "int32"))
    finally:
        remove_global_func("tests.codegen.text")


def test_nothing_is_zero(compile_c: Any) -> None:
    """A packed function that is called for what it does returns None, which reads as zero."""
    calls: list[int] = []
    register_func("tests.codegen.note", calls.append)
    out = tir.decl_buffer((1,), "int32", name="out")
    store = tir.Store(out.data, tir.call_packed("tests.codegen.note", 3) + 5, 0)
    function = compiled(compile_c, tir.PrimFunc([out], store))
    result = np.zeros(1, "int32")
    try:
        function(result)
    finally:
        remove_global_func("tests.codegen.note")
    assert calls == [3] and result[0] == 5


def test_assertions(compile_c: Any) -> None:
    """A failed assertion is an error of its kind with the values at the time; switched off, it is gone."""
    x = tir.Var("x")
    message = tir.call_intrin(
        "handle", "tir.format_message", "IndexError: {0} is out of range", tir.Cast("int64", x)
    )
    function = tir.PrimFunc([x], tir.AssertStmt(x < 10, message, tir.Evaluate(0)))
    run = compiled(compile_c, function)
    run(9)
    with pytest.raises(IndexError, match="12 is out of range"):
        run(12)
    plain = tir.PrimFunc([x], tir.AssertStmt(x < 10, "x is small", tir.Evaluate(0)))
    with pytest.raises(AssertionError, match="x is small"):
        compiled(compile_c, plain)(10)
    with PassContext(config={"tir.disable_assert": True}):
        source = generate_c(host_module(function))
    assert "out of range" not in source and "set_error" not in source


def test_plain_functions_need_no_runtime(tmp_path: Any) -> None:
    """Without packed arguments the text is a C function that links with nothing of ours."""
    a, i = tir.decl_buffer((8,), name="A"), tir.Var("i")
    body = tir.For(i, 0, 8, 0, tir.Store(a.data, tir.Cast("float32", i * i), i))
    target = Target("c -unpacked-api=1")
    module = IRModule({"f": tir.PrimFunc([a], body, attrs={"global_symbol": "squares", "tir.noalias": True})})
    module = Sequential(host_passes(target, target))(Sequential(mixed_passes(target, target))(module))
    source = generate_c(module)
    assert "tilewright" not in source and "int32_t squares(float* restrict arg0)" in source
    (tmp_path / "code.c").write_text(source)
    find_compiler().run(
        ["-std=c99", "-shared", "-fPIC", tmp_path / "code.c", "-o", tmp_path / "code.so", "-lm"]
    )
    values = np.zeros(8, "float32")
    assert ctypes.CDLL(str(tmp_path / "code.so")).squares(values.ctypes.data_as(ctypes.c_void_p)) == 0
    np.testing.assert_array_equal(values, np.arange(8) ** 2)


def test_the_module(compile_c: Any) -> None:
    """Building for the target c gives a module with the source and the names of its functions."""
    a = tir.decl_buffer((1,), name="A")
    module = build(host_module(tir.PrimFunc([a], tir.Store(a.data, tir.const(1.0, "float32"), 0))), "c")
    assert module.type_key == "c" and module.function_names == ("f",)
    assert "int32_t __tvm_ffi_f(" in module.get_source("c")


def test_export(compile_c: Any, tmp_path: Any) -> None:
    """The module is compiled when it is exported, and the library runs like any other."""
    a, i = tir.decl_buffer((8,), name="A"), tir.Var("i")
    body = tir.For(i, 0, 8, 0, tir.Store(a.data, tir.Load("float32", a.data, i) + 1.0, i))
    build(host_module(tir.PrimFunc([a], body)), "c").export_library(str(tmp_path / "code.so"))
    loaded = load_module(str(tmp_path / "code.so"))
    values = np.arange(8, dtype="float32")
    loaded["f"](values)
    np.testing.assert_array_equal(values, np.arange(8) + 1)
    with pytest.raises(ValueError, match="has 2 dimensions, expected 1"):
        loaded["f"](np.zeros((2, 4), "float32"))


def test_what_c_cannot_say() -> None:
    """Types and intrinsics without a C form are errors that name them."""
    a = tir.decl_buffer((1,), "int4", name="A")
    with pytest.raises(CodegenError, match="C has no type for int4"):
        generate_c(host_module(tir.PrimFunc([a], tir.Store(a.data, tir.const(1, "int4"), 0))))
    call = tir.call_intrin("int32", "tir.tvm_warp_shuffle", 1, 2, 3, 4, 5)
    with pytest.raises(CodegenError, match=r"C has no tir\.tvm_warp_shuffle; register a rule"):
        generate_c(host_module(tir.PrimFunc([], tir.Evaluate(call))))


INTEGERS = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]


def over_arrays(makers: list[Any], sources: list[Any]) -> tuple[tir.PrimFunc, list[Any]]:
    """A function that applies each maker to the elements of arrays, and arrays for the results."""
    size = len(sources[0])
    reads = [tir.decl_buffer((size,), str(array.dtype), f"x{place}") for place, array in enumerate(sources)]
    i = tir.Var("i", "int32")
    values = [made(*[tir.Load(buffer.dtype, buffer.data, i) for buffer in reads]) for made in makers]
    writes = [tir.decl_buffer((size,), str(value.dtype), f"y{place}") for place, value in enumerate(values)]
    body = tir.stmt_seq(*(tir.Store(out.data, value, i) for out, value in zip(writes, values, strict=True)))
    function = tir.PrimFunc([*reads, *writes], tir.For(i, 0, size, tir.ForKind.SERIAL, body))
    return function, [np.zeros(size, str(value.dtype)) for value in values]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_floats_out_of_range(compile_c: Any, dtype: str) -> None:
    """Casts end where the type does, NaN is zero, and minima and maxima of NaN are NaN, though C says none of this."""
    rng = np.random.default_rng(3)
    a, b = (special_numbers(rng, dtype, (400,)) for _ in range(2))
    makers = [lambda x, y, kind=kind: tir.Cast(kind, x) for kind in INTEGERS]
    function, results = over_arrays([*makers, tir.Max, tir.Min], [a, b])
    with np.errstate(all="ignore"):
        agree(compile_c, function, a, b, *results)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers_out_of_range(compile_c: Any, dtype: str) -> None:
    """Divisors of zero and minus one, and shifts by any count, are defined."""
    rng = np.random.default_rng(4)
    a, b = (special_numbers(rng, dtype, (400,)) for _ in range(2))
    makers = [tir.Div, tir.Mod, tir.FloorDiv, tir.FloorMod, lambda x, y: x >> y]
    if dtype.startswith("u"):
        makers.append(lambda x, y: x << y)
    function, results = over_arrays(makers, [a, b])
    agree(compile_c, function, a, b, *results)
