"""``lower`` and ``build``: what they take, what they give, and what a built function checks when it is called."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilewright as tvm
from tilewright import te, tir
from tilewright.driver import OperatorModule, get_binds, schedule_to_module
from tilewright.script import tir as T
from tilewright.support.errors import LoweringError, TilewrightError


def add_one(extent: Any = 8, dtype: str = "float32") -> tuple[te.Schedule, te.Tensor, te.Tensor]:
    """A vector plus one."""
    a = te.placeholder((extent,), name="A", dtype=dtype)
    b = te.compute((extent,), lambda i: a[i] + tir.const(1, dtype), name="B")
    return te.create_schedule(b.op), a, b


def names(module: tvm.IRModule) -> list[str]:
    """The names of a module's functions."""
    return sorted(variable.name_hint for variable in module.functions)


def run_add_one(function: Any) -> None:
    """The function adds one to eight numbers."""
    values, result = np.arange(8, dtype="float32"), np.zeros(8, "float32")
    function(values, result)
    assert result.tolist() == [1, 2, 3, 4, 5, 6, 7, 8]


# -- the program that the project grew from -----------------------------------------------------------------------


@pytest.mark.parametrize("tgt", ["llvm", "cuda"])
def test_myadd(tgt: str) -> None:
    """As it stands, bindings included, it runs on the host, and gives CUDA source on a machine with no GPU."""
    n = te.var("n")
    A = te.placeholder((n,), name="A")
    B = te.placeholder((n,), name="B")
    C = te.compute(A.shape, lambda i: A[i] + B[i], name="C")
    s = te.create_schedule(C.op)
    bx, tx = s[C].split(C.op.axis[0], factor=64)
    s[C].bind(bx, te.thread_axis("blockIdx.x"))
    s[C].bind(tx, te.thread_axis("threadIdx.x"))
    fadd = tvm.build(s, [A, B, C], tgt, target_host="llvm", name="myadd")
    if tgt == "cuda":
        source = fadd.imported_modules[0].get_source()
        assert "myadd" in source and "blockIdx.x" in source and "threadIdx.x" in source
        return
    dev = tvm.device(tgt, 0)
    n = 1000
    a = tvm.nd.array(np.random.uniform(size=n).astype(A.dtype), dev)
    b = tvm.nd.array(np.random.uniform(size=n).astype(B.dtype), dev)
    c = tvm.nd.array(np.zeros(n, dtype=C.dtype), dev)
    fadd(a, b, c)
    np.testing.assert_allclose(c.numpy(), a.numpy() + b.numpy())


# -- lower --------------------------------------------------------------------------------------------------------


def test_lowering_a_schedule() -> None:
    """A module with one function of the given name, with flat memory."""
    s, a, b = add_one()
    module = tvm.lower(s, [a, b], name="plus")
    assert isinstance(module, tvm.IRModule) and names(module) == ["plus"]
    assert module["plus"].attrs["global_symbol"] == "plus"
    assert bool(module["plus"].attrs["tir.noalias"])
    assert names(tvm.lower(s, [a, b])) == ["main"]


def test_lowering_a_function_and_a_module() -> None:
    """A PrimFunc gets the name; a module keeps its names."""
    s, a, b = add_one()
    function = schedule_to_module(s, [a, b])["main"]
    assert names(tvm.lower(function, name="plus")) == ["plus"]
    module = tvm.IRModule({"one": function, "two": function.with_attr("global_symbol", "two")})
    lowered = tvm.lower(module)
    assert names(lowered) == ["one", "two"]


@T.prim_func
def row_sums(a: T.handle, b: T.handle) -> None:
    A = T.match_buffer(a, (4, 8))
    B = T.match_buffer(b, (4,))
    for i, k in T.grid(4, 8):
        with T.block("B"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                B[vi] = T.float32(0)
            B[vi] = B[vi] + A[vi, vk]


def test_building_a_module_with_blocks() -> None:
    """Functions that are not lowered yet are lowered; those that are stay as they are; the module that was given does
    not change."""
    s, a, b = add_one(8)
    module = tvm.lower(s, [a, b], name="plus")
    module["sums"] = row_sums.with_attr("global_symbol", "sums")
    for inputs, options in [(module, {"target": "llvm"}), ({"llvm": module}, {})]:
        built = tvm.build(inputs, **options)
        values, sums = np.arange(32, dtype="float32").reshape(4, 8), np.zeros(4, "float32")
        built["sums"](values, sums)
        np.testing.assert_array_equal(sums, values.sum(axis=1))
        result = np.zeros(8, "float32")
        built["plus"](values[0], result)
        np.testing.assert_array_equal(result, values[0] + 1)
        (kept,) = built.ir_module_by_target.values()
        assert kept["plus"] is module["plus"]
    assert "T.block" in str(module["sums"])


def test_simple_mode_keeps_loops_whole() -> None:
    """Loops with guards are partitioned only without it."""
    s, a, b = add_one(30)
    s[b].split(b.op.axis[0], factor=8)
    whole, cut = tvm.lower(s, [a, b], simple_mode=True), tvm.lower(s, [a, b])
    assert "T.likely" in str(whole)
    assert "T.likely" not in str(cut)


def test_a_scalar_argument() -> None:
    """Variables and buffers may be among the arguments."""
    a = te.placeholder((4,), name="A")
    factor = te.var("factor", "float32")
    b = te.compute((4,), lambda i: a[i] * factor, name="B")
    function = tvm.build(te.create_schedule(b.op), [factor, a, b], "llvm")
    values, result = np.ones(4, "float32"), np.zeros(4, "float32")
    function(2.5, values, result)
    assert result.tolist() == [2.5] * 4


def test_binds_give_buffers() -> None:
    """A tensor lives in the buffer that ``binds`` names: here one with strides of its own."""
    s, a, b = add_one(4)
    stride = te.var("stride")
    buffer = tir.decl_buffer((4,), "float32", "strided", strides=[stride])
    function = tvm.build(s, [a, b], "llvm", binds={a: buffer})
    values, result = np.arange(12, dtype="float32")[::3], np.zeros(4, "float32")
    function(values, result)
    assert result.tolist() == [1, 4, 7, 10]


def test_get_binds() -> None:
    """A buffer for each tensor; symbolic dimensions may be broadcast unless they are to be compact."""
    n = te.var("n")
    a, buffer, scalar = te.placeholder((n,), name="A"), tir.decl_buffer((3,)), te.var("x")
    binds, arguments = get_binds([a, buffer, scalar])
    assert arguments == [binds[a], buffer, scalar]
    assert binds[a].buffer_type == "auto_broadcast"
    assert get_binds([a], compact=True)[0][a].buffer_type == ""
    with pytest.raises(LoweringError, match="not 3"):
        get_binds([3])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda s, a, b: tvm.lower(s), "needs the list of its arguments"),
        (lambda s, a, b: tvm.lower(s, [a, 3]), "not 3"),
        (lambda s, a, b: tvm.lower(s, [a, b, a]), "A occurs twice"),
        (lambda s, a, b: tvm.lower(s, [b]), "tensor A is used but is neither an argument"),
        (lambda s, a, b: tvm.lower("text"), "not str"),
        (lambda s, a, b: tvm.lower(s, a), "list of its arguments, not one tensor"),
        (lambda s, a, b: tvm.build("text"), "not str"),
        (lambda s, a, b: tvm.build([s]), "has a Schedule"),
        (lambda s, a, b: tvm.build([tvm.lower(s, [a, b])] * 2), "two of the modules have a function main"),
        (lambda s, a, b: tvm.build(tvm.IRModule()), "no function to build"),
        (lambda s, a, b: tvm.build(s, [a, b], "no_such_target"), "no_such_target"),
        (lambda s, a, b: tvm.build({}), "no function to build"),
    ],
)
def test_bad_arguments(make: Any, message: str) -> None:
    """Each is a Tilewright error that says what was wrong."""
    with pytest.raises(TilewrightError, match=message):
        make(*add_one())


# -- build --------------------------------------------------------------------------------------------------------


def test_building_each_kind_of_input() -> None:
    """A schedule, a function, a module, a list of modules, and modules by target."""
    s, a, b = add_one()
    run_add_one(tvm.build(s, [a, b]))
    function = schedule_to_module(s, [a, b], "plus")["plus"]
    run_add_one(tvm.build(function, target="llvm"))
    run_add_one(tvm.build(function, target="llvm")["plus"])
    module = tvm.lower(s, [a, b], name="first")
    run_add_one(tvm.build(module, target="llvm")["first"])
    both = tvm.build([module, tvm.lower(s, [a, b], name="second")], target="llvm")
    run_add_one(both["first"])
    run_add_one(both["second"])
    run_add_one(tvm.build({"llvm": module})["first"])
    with tvm.target.Target("llvm"):
        run_add_one(tvm.build(s, [a, b]))


def test_host_and_device_in_one() -> None:
    """Modules by target: the host's functions in the module, the device's kernels among its imports."""
    s, a, b = add_one()
    host = tvm.lower(s, [a, b], name="on_host")
    s[b].bind(b.op.axis[0], te.thread_axis("threadIdx.x"))
    device = tvm.lower(s, [a, b], name="on_device")
    built = tvm.build({"llvm": host, "cuda": device}, target_host="llvm")
    run_add_one(built["on_host"])
    assert [one.type_key for one in built.imported_modules] == ["cuda"]
    assert "on_device" in built.imported_modules[0].get_source()


def test_what_build_gives() -> None:
    """A module with its name, its loops and its sources."""
    s, a, b = add_one()
    built = tvm.build(s, [a, b], "llvm", name="plus")
    assert isinstance(built, OperatorModule)
    assert built.entry_name == "__tvm_main__" and "plus" in built.function_names
    (target,) = built.ir_module_by_target
    assert target.kind.name == "llvm" and names(built.ir_module_by_target[target]) == ["plus"]
    assert "define" in built.get_source("ll") and "plus" in built.get_source("ll")
    assert built.get_source("asm").strip()
    assert not built.imported_modules
    with pytest.raises(AttributeError, match="absent"):
        built.get_function("absent")


def test_export_and_load(tmp_path: Path) -> None:
    """The exported library computes the same, by the function's name and by its entry."""
    n = te.var("n")
    s, a, b = add_one(n)
    built = tvm.build(s, [a, b], "llvm", name="plus")
    path = tmp_path / "plus.so"
    built.export_library(str(path))
    loaded = tvm.runtime.load_module(str(path))
    run_add_one(loaded)
    run_add_one(loaded["plus"])
    with pytest.raises(TilewrightError, match="dtype|float32"):
        loaded(np.zeros(8), np.zeros(8, "float32"))


# -- what a function checks ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def checked() -> Any:
    """A function of a symbolic matrix, a vector of eight, a scalar and a result."""
    n = te.var("n")
    a = te.placeholder((n, 8), name="matrix")
    b = te.placeholder((8,), name="bias", dtype="int32")
    x = te.var("factor", "int32")
    c = te.compute((n, 8), lambda i, j: a[i, j] * x.astype("float32") + b[j].astype("float32"), name="result")
    return tvm.build(te.create_schedule(c.op), [a, b, x, c], "llvm", name="affine")


def arguments() -> list[Any]:
    """Arguments that fit."""
    return [np.ones((3, 8), "float32"), np.arange(8, dtype="int32"), 2, np.zeros((3, 8), "float32")]


def test_arguments_that_fit(checked: Any) -> None:
    """NumPy arrays, arrays of the runtime, and rows of a larger matrix."""
    given = arguments()
    checked(*given)
    assert given[3][1].tolist() == [2, 3, 4, 5, 6, 7, 8, 9]
    given = [tvm.nd.array(one) if isinstance(one, np.ndarray) else one for one in arguments()]
    checked(*given)
    assert given[3].numpy()[2].tolist() == [2, 3, 4, 5, 6, 7, 8, 9]


@pytest.mark.parametrize(
    ("position", "value", "parts"),
    [
        (0, np.ones((3, 8)), ("matrix", "float32")),
        (0, np.ones(8, "float32"), ("matrix", "2")),
        (0, np.ones((3, 7), "float32"), ("matrix", "8", "7")),
        (3, np.ones((4, 8), "float32"), ("result", "3", "4")),
        (0, np.ones((8, 3), "float32").T, ("matrix", "stride")),
        (1, np.ones(8, "int64"), ("bias", "int32")),
        (1, np.ones(9, "int32"), ("bias", "8", "9")),
        (2, np.zeros(3, "float32"), ("factor",)),
        (0, None, ("matrix",)),
        (0, "text", ("matrix",)),
    ],
)
def test_arguments_that_do_not_fit(checked: Any, position: int, value: Any, parts: tuple[str, ...]) -> None:
    """The message says which argument, what was expected and what came; the result is not touched."""
    given = arguments()
    given[position] = value
    with pytest.raises((TilewrightError, TypeError)) as caught:
        checked(*given)
    for part in parts:
        assert part in str(caught.value)
    if position != 3:
        assert not given[3].any()


def test_a_wrong_count_of_arguments(checked: Any) -> None:
    """Too few and too many."""
    for given in (arguments()[:3], [*arguments(), 1]):
        with pytest.raises(TilewrightError, match=f"(?s)4.*{len(given)}|{len(given)}.*4"):
            checked(*given)


def test_alignment_is_checked() -> None:
    """Memory that is not aligned as the function needs it is refused, or used right: never misread."""
    s, a, b = add_one()
    _, inner = s[b].split(b.op.axis[0], factor=8)
    s[b].vectorize(inner)
    function = tvm.build(s, [a, b], "llvm")
    raw = np.zeros(8 * 4 + 65, "uint8")
    start = (-raw.ctypes.data) % 64 + 1
    values = raw[start : start + 32].view("float32")
    result = np.zeros(8, "float32")
    with pytest.raises(TilewrightError, match="(?i)align"):
        function(values, result)


# -- contexts -----------------------------------------------------------------------------------------------------


def test_bound_checkers_find_an_access_out_of_range() -> None:
    """With the option on, reading past the end of an input is an error that says so."""
    a = te.placeholder((4,), name="A")
    where = te.placeholder((3,), name="W", dtype="int32")
    b = te.compute((3,), lambda i: a[where[i]], name="B")
    s = te.create_schedule(b.op)
    with tvm.transform.PassContext(config={"tir.instrument_bound_checkers": True}):
        function = tvm.build(s, [a, where, b], "llvm")
    values, result = np.arange(4, dtype="float32"), np.zeros(3, "float32")
    function(values, np.array([3, 0, 2], "int32"), result)
    assert result.tolist() == [3, 0, 2]
    for outside in (4, -1):
        with pytest.raises(TilewrightError, match="(?i)bound"):
            function(values, np.array([3, outside, 2], "int32"), result)


def test_config_keys_change_lowering() -> None:
    """Vectorisation off, trivial loops kept, unrolling to a depth, no aliasing promise."""
    s, a, b = add_one(16)
    _, inner = s[b].split(b.op.axis[0], factor=4)
    s[b].vectorize(inner)
    assert "T.ramp" in str(tvm.lower(s, [a, b]))
    with tvm.transform.PassContext(config={"tir.disable_vectorize": True}):
        assert "T.ramp" not in str(tvm.lower(s, [a, b]))
    with tvm.transform.PassContext(config={"tir.noalias": False}):
        assert "tir.noalias" not in tvm.lower(s, [a, b])["main"].attrs
    s, a, b = add_one(1)
    assert "for " not in str(schedule_to_module(s, [a, b]))
    with tvm.transform.PassContext(config={"tir.debug_keep_trivial_loop": True}):
        assert "for " in str(schedule_to_module(s, [a, b]))
    s, a, b = add_one(4)
    with tvm.transform.PassContext(config={"tir.UnrollLoop": {"auto_max_step": 16, "explicit_unroll": True}}):
        assert "for " not in str(tvm.lower(s, [a, b]))
    with pytest.raises(TilewrightError, match=r"tir\.no_such_key"):
        tvm.transform.PassContext(config={"tir.no_such_key": 1})


def test_added_passes_run_in_lowering() -> None:
    """A pass of the user's own sees the functions at its phase."""
    seen: list[str] = []

    @tvm.tir.transform.prim_func_pass(opt_level=0)
    def look(function: tir.PrimFunc, module: tvm.IRModule, context: Any) -> tir.PrimFunc:
        seen.append(str(function.attrs["global_symbol"]))
        return function

    s, a, b = add_one()
    with tvm.transform.PassContext(config={"tir.add_lower_pass": [(1, look)]}):
        tvm.lower(s, [a, b], name="plus")
    assert seen == ["plus"]


def test_instruments_watch_building(capsys: pytest.CaptureFixture[str]) -> None:
    """Pass timing lists passes of lowering and of code generation; PrintIR prints the module."""
    s, a, b = add_one()
    timing = tvm.instrument.PassTimingInstrument()
    with tvm.transform.PassContext(instruments=[timing]):
        tvm.build(s, [a, b], "llvm")
        profile = timing.render()
    assert "StorageFlatten" in profile and "MakePackedAPI" in profile
    with tvm.transform.PassContext(config={"tir.add_lower_pass": [(3, tvm.transform.PrintIR("here"))]}):
        tvm.lower(s, [a, b])
    printed = capsys.readouterr()
    assert "here" in printed.out + printed.err and "def main" in printed.out + printed.err


def test_functions_of_a_module_are_found_by_their_names() -> None:
    """A function without a global symbol is exported under the name it has in the module."""

    @T.prim_func
    def doubled(a: T.handle) -> None:
        A = T.match_buffer(a, [4], "float32")
        for i in T.serial(4):
            A[i] = A[i] * T.float32(2)

    built = tvm.build(tvm.IRModule({"twice": doubled}), target="llvm")
    values = tvm.nd.array(np.ones(4, "float32"))
    built["twice"](values)
    assert values.numpy().tolist() == [2, 2, 2, 2]
