"""Computes calls of the cases in tests/relay/op in the way that a test says: with a strategy, a schedule, a wrapper."""

from __future__ import annotations

import importlib
import zlib
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from tests.relay.op.cases import Case

import tilewright as tvm
from tilewright import relay, te

CPU = tvm.target.Target("llvm")

Implementation = tuple[Callable[..., Any], Callable[..., Any]]
"""A computation (attrs, inputs, out_type) and a schedule (attrs, outs, target)."""
Implement = Callable[[relay.Call, Sequence[te.Tensor]], Sequence[Implementation]]


@cache
def cases() -> dict[str, Case]:
    """Every case of every table by its name."""
    tables = sorted((Path(__file__).parent.parent / "relay" / "op").glob("cases_*.py"))
    every = [case for path in tables for case in importlib.import_module(f"tests.relay.op.{path.stem}").CASES]
    return {case.name: case for case in every}


def check_case(case: Case, implement: Implement, operator: str = "") -> None:
    """Compute a call of a case, the outermost or that of an operator, with each of its implementations: all must give
    what the operator's reference gives, and the reference what the case expects."""
    generator = np.random.default_rng(zlib.crc32(case.name.encode()))
    arrays = [given.make(generator) for given in case.inputs]
    parameters = [
        relay.var(f"x{place}", shape=one.shape, dtype=str(one.dtype)) for place, one in enumerate(arrays)
    ]
    function = relay.Function(parameters, case.build(*parameters))
    body = relay.transform.InferType()(tvm.IRModule.from_expr(function))["main"].body
    operator = operator or outermost(body).op.name
    by_name = {one.name_hint: array for one, array in zip(parameters, arrays, strict=True)}
    known: dict[Any, Any] = {}

    def value(node: Any) -> Any:
        if node not in known:
            known[node] = computed(node)
        return known[node]

    def computed(node: Any) -> Any:
        if isinstance(node, relay.Var):
            return by_name[node.name_hint]
        if isinstance(node, relay.Constant):
            return node.data.numpy()
        if isinstance(node, relay.Tuple):
            return tuple(value(field) for field in node.fields)
        if isinstance(node, relay.TupleGetItem):
            return value(node.tuple_value)[node.index]
        given = [value(argument) for argument in node.args]
        wanted = node.op.get_attr("FReference")(node.attrs, *given)
        if node.op.name == operator:
            check_call(node, flat(given), flat(wanted), implement, case)
        return wanted

    result = value(body)
    assert operator in [node.op.name for node in known if isinstance(node, relay.Call)]
    if case.expected is not None:
        compare(flat(result), flat(case.expected(*arrays)), case)


def outermost(node: Any) -> relay.Call:
    """The call whose result, or a part of it, the expression gives."""
    while not isinstance(node, relay.Call):
        node = node.tuple_value if isinstance(node, relay.TupleGetItem) else node.fields[0]
    return node


def check_call(
    call: relay.Call,
    arrays: Sequence[np.ndarray[Any, Any]],
    wanted: Sequence[np.ndarray[Any, Any]],
    implement: Implement,
    case: Case,
) -> None:
    """Build every implementation of one call and compare what it computes."""
    inputs = [te.placeholder(array.shape, str(array.dtype)) for array in arrays]
    with CPU:
        implementations = implement(call, inputs)
    assert implementations
    for compute, schedule in implementations:
        with CPU:
            outs = compute(call.attrs, inputs, call.checked_type)
            scheduled = schedule(call.attrs, outs, CPU)
        program = tvm.build(scheduled, [*inputs, *outs], CPU)
        results = [
            tvm.nd.array(np.zeros(array.shape, out.dtype)) for array, out in zip(wanted, outs, strict=True)
        ]
        program(*[tvm.nd.array(array) for array in arrays], *results)
        compare([result.numpy() for result in results], wanted, case)


def compare(
    found: Sequence[np.ndarray[Any, Any]], wanted: Sequence[np.ndarray[Any, Any]], case: Case
) -> None:
    """Equal within the tolerance of the case."""
    for one, other in zip(found, wanted, strict=True):
        assert one.dtype == other.dtype and one.shape == other.shape
        np.testing.assert_allclose(one, other, rtol=max(case.rtol, 1e-5), atol=max(case.atol, 1e-5))


def flat(value: Any) -> list[np.ndarray[Any, Any]]:
    """The arrays of a value in order."""
    if isinstance(value, (tuple, list)):
        return [array for part in value for array in flat(part)]
    return [np.asarray(value)]
