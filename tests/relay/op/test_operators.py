"""Every case of every table: its type, its value, its compiled code, its gradient, its shape at run time.

Compilation is what takes the time, so cases are compiled several at once, as the fields of one tuple. Where that
fails, each is compiled alone, and the message names those that are to blame.
"""

from __future__ import annotations

import importlib
import os
import zlib
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from tests.relay.op.cases import Case

import tilewright as tvm
from tilewright import relay
from tilewright.ir.op import Op
from tilewright.relay.expr_functor import post_order_visit
from tilewright.relay.op.definition import OpPattern
from tilewright.relay.op.shapes import dims, known
from tilewright.relay.testing import check_grad
from tilewright.runtime.container import ADT
from tilewright.runtime.ndarray import numpy_dtype
from tilewright.support.errors import TilewrightError
from tilewright.support.options import flag

TABLES = sorted(path.stem for path in Path(__file__).parent.glob("cases_*.py"))
BATCH = 12
"""Cases that are compiled together."""

WITHOUT_CASES = {
    "annotation.compiler_begin": "marks the edge of a region; tests/relay/transform/test_annotate_target.py",
    "annotation.compiler_end": "marks the edge of a region; tests/relay/transform/test_annotate_target.py",
    "debug": "calls into the debugger; tests/relay/op/annotation/test_annotation.py",
    "memory.alloc_storage": "allocates; tests/relay/op/memory/test_memory.py",
    "memory.alloc_tensor": "allocates; tests/relay/op/memory/test_memory.py",
    "memory.kill": "frees; tests/relay/op/memory/test_memory.py",
    "nn.contrib_conv2d_winograd_nnpack_weight_transform": "a type for what NNPACK, which is not linked, computes",
    "nn.internal.sparse_dense_padded": "the form that GPU schedules read; it is made by a layout rule, not by users",
    "vm.invoke_tvm_op": "an instruction of the virtual machine; tests/relay/op/vm/test_vm.py",
    "vm.reshape_tensor": "an instruction of the virtual machine; tests/relay/op/vm/test_vm.py",
    "vm.shape_func": "an instruction of the virtual machine; tests/relay/op/vm/test_vm.py",
    "vm.shape_of": "an instruction of the virtual machine; tests/relay/op/vm/test_vm.py",
}
"""Operators that no table has a case for, and why."""


class Program(NamedTuple):
    """A case as a typed function, its arguments, and what the reference gives for them."""

    case: Case
    function: relay.Function
    arguments: list[Any]
    value: Any


@pytest.fixture(autouse=True)
def run_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels that two levels share are compiled once a run; nothing is taken from an earlier one."""
    base = tmp_path_factory.getbasetemp()
    # Each worker of a parallel run has a folder of its own within that of the run.
    folder = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", str(folder / "operator_kernels"))


@cache
def cases(table: str) -> list[Case]:
    """The cases of one table."""
    return list(importlib.import_module(f"tests.relay.op.{table}").CASES)


def arrays(case: Case) -> list[np.ndarray[Any, Any]]:
    """The arguments of a case: always the same."""
    generator = np.random.default_rng(zlib.crc32(case.name.encode()))
    return [given.make(generator) for given in case.inputs]


def body(case: Case, values: Sequence[Any], variables: Sequence[relay.Var]) -> tuple[list[relay.Var], Any]:
    """The parameters that are left and the expression, with constants in place where the case wants them."""
    given = [
        relay.const(values[position]) if position in case.constants else variable
        for position, variable in enumerate(variables)
    ]
    made = case.build(*given)
    left = [one for position, one in enumerate(variables) if position not in case.constants]
    return left, made.astuple() if isinstance(made, relay.TupleWrapper) else made


def typed(function: relay.Function) -> relay.Function:
    """The function with its types."""
    return relay.transform.InferType()(tvm.IRModule.from_expr(function))["main"]


def parameters(values: Sequence[Any], prefix: str = "x", unknown: bool = False) -> list[relay.Var]:
    """A variable for each argument; with dimensions that the type does not tell where ``unknown``."""
    return [
        relay.var(
            f"{prefix}{position}",
            shape=tuple(relay.Any() for _ in value.shape) if unknown else value.shape,
            dtype=str(value.dtype),
        )
        for position, value in enumerate(values)
    ]


def program(case: Case) -> Program:
    """The case, ready to be run."""
    values = arrays(case)
    function = typed(relay.Function(*body(case, values, parameters(values))))
    arguments = [value for position, value in enumerate(values) if position not in case.constants]
    value = relay.create_executor("debug").evaluate(function)(*arguments)
    return Program(case, function, arguments, plain(value))


def plain(value: Any) -> Any:
    """Arrays of NumPy in place of the runtime's."""
    return [plain(part) for part in value] if isinstance(value, (list, tuple, ADT)) else value.numpy()


def tensor_types(kind: Any) -> list[relay.TensorType]:
    """The tensors of a type in order."""
    fields = getattr(kind, "fields", None)
    return [kind] if fields is None else [one for field in fields for one in tensor_types(field)]


def flat(value: Any) -> list[np.ndarray[Any, Any]]:
    """The arrays of a value in order."""
    if isinstance(value, (list, tuple, ADT)):
        return [array for part in value for array in flat(part)]
    return [np.asarray(value)]


def is_static(function: relay.Function) -> bool:
    """True if the shapes of all results are part of the type."""
    return all(known(*dims(one)) for one in tensor_types(function.checked_type.ret_type))


def adds_up(function: relay.Function) -> bool:
    """True if a result may be a sum: its rounding errors are then of the size of what was added, not of the total."""
    found = []

    def look(expr: Any) -> None:
        if isinstance(expr, Op):
            found.append(int(expr.get_attr("TOpPattern") or 0) >= OpPattern.COMM_REDUCE)

    post_order_visit(function, look)
    return any(found)


def difference(found: Any, wanted: Any, made: Program, same_type: bool = True) -> str | None:
    """What is different between two values beyond the case's tolerance; None if nothing is."""
    case = made.case
    one, other = flat(found), flat(wanted)
    if len(one) != len(other):
        return f"{len(one)} results, not {len(other)}"
    for got, right in zip(one, other, strict=True):
        if got.shape != right.shape or (same_type and got.dtype != right.dtype):
            return f"{got.dtype}{got.shape}, not {right.dtype}{right.shape}"
        exact = got.dtype.kind in "biu" and right.dtype.kind in "biu"
        wide = (got, right) if exact else (got.astype("float64"), right.astype("float64"))
        size = np.abs(wide[1][np.isfinite(wide[1])]).max(initial=1) if adds_up(made.function) else 1
        rtol, atol = (0.0, 0.0) if exact else (case.rtol, case.atol * size)
        try:
            np.testing.assert_allclose(*wide, equal_nan=True, rtol=rtol, atol=atol)
        except AssertionError as error:
            return " ".join(str(error).split())
    return None


def report(failures: dict[str, str]) -> None:
    """Fail with one line for each case that is wrong."""
    assert not failures, "\n".join(f"{name}: {text}" for name, text in failures.items())


def test_every_operator_has_a_case() -> None:
    """An operator is in a table, or in the list of those that need none, and never in both."""
    called: set[str] = set()

    def look(expr: Any) -> None:
        if isinstance(expr, Op):
            called.add(expr.name)

    for table in TABLES:
        for case in cases(table):
            values = arrays(case)
            post_order_visit(body(case, values, parameters(values))[1], look)
    defined = {
        name
        for name in Op.list_op_names()
        # What tests register beside this one has no reference; the documents' own operators do. Quantised ones have
        # random programs of their own (tests/relay/qnn).
        if not name.startswith(("tir.", "docs.", "qnn."))
        and (Op.get(name).has_attr("FReference") or name in WITHOUT_CASES)
    }
    assert defined - called - set(WITHOUT_CASES) == set()
    assert set(WITHOUT_CASES) & called == set()
    assert set(WITHOUT_CASES) - defined == set()


@pytest.mark.parametrize("table", TABLES)
def test_names_are_unique(table: str) -> None:
    """No two cases of a table share a name."""
    names = [case.name for case in cases(table)]
    assert sorted(set(names)) == sorted(names)


@pytest.mark.parametrize("table", TABLES)
def test_types_are_those_of_the_reference(table: str) -> None:
    """The relation says what the reference gives: element type, rank, and every dimension that it knows."""
    failures = {}
    for case in cases(table):
        try:
            made = program(case)
        except TilewrightError as error:
            failures[case.name] = str(error)
            continue
        kinds, values = tensor_types(made.function.checked_type.ret_type), flat(made.value)
        said = [(numpy_dtype(kind.dtype), dims(kind)) for kind in kinds]
        fits = len(kinds) == len(values) and all(
            dtype == value.dtype
            and len(shape) == value.ndim
            and all(not known(one) or one == extent for one, extent in zip(shape, value.shape, strict=True))
            for (dtype, shape), value in zip(said, values, strict=True)
        )
        if not fits:
            failures[case.name] = f"{said}, not {[(value.dtype, value.shape) for value in values]}"
    report(failures)


@pytest.mark.parametrize("table", TABLES)
def test_references_agree_with_independent_ones(table: str) -> None:
    """Where a case gives an independent reference, the operator's own agrees with it."""
    failures = {}
    for case in cases(table):
        if case.expected is None:
            continue
        made = program(case)
        with np.errstate(all="ignore"):
            wanted = case.expected(*arrays(case))
        text = difference(made.value, wanted, made, same_type=False)
        if text is not None:
            failures[case.name] = text
    report(failures)


def together(programs: Sequence[Program], unknown: bool = False) -> tuple[relay.Function, list[Any]]:
    """One function that gives the results of all, and its arguments."""
    bodies, left, arguments = [], [], []
    for number, made in enumerate(programs):
        values = arrays(made.case)
        free, result = body(made.case, values, parameters(values, f"x{number}_", unknown))
        left += free
        bodies.append(result)
        arguments += made.arguments
    return relay.Function(left, relay.Tuple(bodies)), arguments


def failures_of(
    programs: Sequence[Program],
    run: Callable[[relay.Function, list[Any]], Any],
    unknown: bool = False,
) -> dict[str, str]:
    """The cases whose compiled code fails or differs from the reference."""
    if not programs:
        return {}
    try:
        values = plain(run(*together(programs, unknown)))
    except (TilewrightError, NotImplementedError, TypeError, AttributeError, ValueError) as error:
        if len(programs) == 1:
            return {programs[0].case.name: f"{type(error).__name__}: {error}"}
        found: dict[str, str] = {}
        for made in programs:
            found |= failures_of([made], run, unknown)
        return found or {"all together": f"{type(error).__name__}: {error}"}
    texts = {
        made.case.name: difference(value, made.value, made)
        for made, value in zip(programs, values, strict=True)
    }
    return {name: text for name, text in texts.items() if text is not None}


def at_level(kind: str, level: int) -> Callable[[relay.Function, list[Any]], Any]:
    """Runs a function on an executor, compiled at an optimisation level."""

    def run(function: relay.Function, arguments: list[Any]) -> Any:
        with tvm.transform.PassContext(opt_level=level):
            return relay.create_executor(kind).evaluate(function)(*arguments)

    return run


BATCHES = [
    pytest.param(table, start, id=f"{table.removeprefix('cases_')}-{start}")
    for table in TABLES
    for start in range(0, len(cases(table)), BATCH)
]


@pytest.mark.parametrize("level", [0, 3])
@pytest.mark.parametrize(("table", "start"), BATCHES)
def test_compiled_code_agrees_with_the_reference(table: str, start: int, level: int) -> None:
    """On the graph executor, without the optional passes and with all of them."""
    programs = [program(case) for case in cases(table)[start : start + BATCH]]
    static = [made for made in programs if is_static(made.function)]
    if not static:
        pytest.skip("the shapes of all results are known at run time alone: the virtual machine runs these")
    report(failures_of(static, at_level("graph", level)))


@pytest.mark.parametrize("level", [1, 2])
@pytest.mark.parametrize("table", TABLES)
def test_the_levels_between_agree_too(table: str, level: int) -> None:
    """At the levels between, a sample of each table, or all of it where ``TILEWRIGHT_ALL_CASES`` is set."""
    chosen = cases(table)
    if not flag("TILEWRIGHT_ALL_CASES"):
        chosen = chosen[level :: max(len(chosen) // 4, 1)]
    programs = [program(case) for case in chosen]
    report(failures_of([made for made in programs if is_static(made.function)], at_level("graph", level)))


@pytest.mark.parametrize(("table", "start"), BATCHES)
def test_results_of_unknown_shape(table: str, start: int) -> None:
    """On the virtual machine: results whose shapes the types do not tell, from inputs whose shapes they do."""
    programs = [program(case) for case in cases(table)[start : start + BATCH]]
    report(failures_of([made for made in programs if not is_static(made.function)], at_level("vm", 3)))


@pytest.mark.parametrize(("table", "start"), BATCHES)
def test_inputs_of_unknown_shape(table: str, start: int) -> None:
    """On the virtual machine, with every dimension of every input left open. Such kernels take long to compile, so a
    sample of the cases is run, and all of them where ``TILEWRIGHT_ALL_CASES`` is set."""
    share = 1 if flag("TILEWRIGHT_ALL_CASES") else 8
    programs = [
        program(case)
        for number, case in enumerate(cases(table)[start : start + BATCH], start)
        if case.dynamic and number % share == 0
    ]
    report(failures_of(programs, at_level("vm", 3), unknown=True))


@pytest.mark.parametrize(
    "case",
    [pytest.param(case, id=case.name) for table in TABLES for case in cases(table) if case.gradient],
)
def test_gradients_agree_with_finite_differences(case: Case) -> None:
    """In float64, for every input that is a float."""
    values = [value.astype("float64") if value.dtype.kind == "f" else value for value in arrays(case)]
    function = relay.Function(*body(case, values, parameters(values)))
    given = [value for position, value in enumerate(values) if position not in case.constants]
    tested = [value for value in given if value.dtype.kind == "f"]
    check_grad(function, inputs=given, test_inputs=tested)
