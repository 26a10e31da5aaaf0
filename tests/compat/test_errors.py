"""TVM's classes of errors: what they are besides, and what raises them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import tilewright as tvm
from tilewright import autotvm, error, micro, relay, rpc, te, tir, topi
from tilewright.autotvm.task.space import InstantiationError
from tilewright.autotvm.task.task import FlopCalculationError, compute_flop
from tilewright.driver.tvmc.common import TVMCException
from tilewright.driver.tvmc.frontends import get_frontend_by_name
from tilewright.tir.schedule.schedule import ScheduleError


@pytest.mark.parametrize(
    ("kind", "bases"),
    [
        (error.RPCError, [error.TVMError]),
        (error.OpError, [error.TVMError]),
        (error.OpNotImplemented, [error.OpError, NotImplementedError]),
        (error.OpAttributeRequired, [error.OpError, AttributeError]),
        (error.OpAttributeInvalid, [error.OpError, AttributeError]),
        (error.OpAttributeUnImplemented, [error.OpError, NotImplementedError]),
        (error.DiagnosticError, [error.TVMError]),
        (ScheduleError, [error.TVMError]),
        (InstantiationError, [ValueError]),
        (FlopCalculationError, [RuntimeError]),
        (TVMCException, [Exception]),
        (micro.UnsupportedInModelLibraryFormatError, [Exception]),
    ],
)
def test_what_an_error_is(kind: type[Exception], bases: list[type[Exception]]) -> None:
    """A program that catches a base of TVM's catches it; its text is the message."""
    raised = kind("the message")
    assert all(isinstance(raised, one) for one in bases)
    assert str(raised) == "the message" and raised.args == ("the message",)


@pytest.mark.parametrize("name", ["OpNotImplemented", "OpAttributeInvalid", "RPCError", "InternalError"])
def test_errors_of_registered_functions(name: str) -> None:
    """An error that a registered function raises passes through compiled code as what it is."""
    kind = getattr(error, name)
    message = kind("from inside").args[0]

    @tvm.register_func("tests.errors.fail", override=True)
    def fail() -> None:
        raise kind("from inside")

    out = te.extern((1,), [], lambda ins, outs: tir.call_packed("tests.errors.fail"), dtype="float32")
    function = tvm.build(te.create_schedule(out.op), [out], "llvm")
    with pytest.raises(kind) as caught:
        function(tvm.nd.empty((1,)))
    assert type(caught.value) is kind and caught.value.args[0] == message


def _dilated_pool() -> None:
    x = relay.var("x", shape=(1, 1, 8, 8))
    pooled = relay.nn.max_pool2d(x, (2, 2), dilation=(2, 2))
    module = relay.transform.InferType()(tvm.IRModule.from_expr(relay.Function([x], pooled)))
    relay.transform.gradient(module["main"], module)


def _wrong_types() -> None:
    left, right = relay.var("left", shape=(2,)), relay.var("right", shape=(3,))
    relay.transform.InferType()(tvm.IRModule.from_expr(relay.Function([left, right], left + right)))


def _wrong_step() -> None:
    x = te.placeholder((8,), name="x")
    y = te.compute((8,), lambda i: x[i] + 1.0, name="y")
    schedule = tir.Schedule(te.create_prim_func([x, y]))
    (loop,) = schedule.get_loops(schedule.get_block("y"))
    schedule.fuse(loop)
    schedule.get(loop)


def _nothing_to_count() -> None:
    x = te.placeholder((8,), name="x")
    compute_flop(te.create_schedule(te.compute((8,), lambda i: x[i], name="y").op))


def _no_template() -> None:
    autotvm.task.task.MissingTask("nobody")(1)


@pytest.mark.parametrize(
    ("kind", "message", "run"),
    [
        (error.OpAttributeUnImplemented, "a dilation of .* has no gradient", _dilated_pool),
        (error.DiagnosticError, r"add.*cannot|shapes|broadcast", _wrong_types),
        (ScheduleError, "no longer exists", _wrong_step),
        (FlopCalculationError, r"call cfg\.add_flop", _nothing_to_count),
        (InstantiationError, "no template 'nobody'", _no_template),
        (TVMCException, "no model format 'theano'", lambda: get_frontend_by_name("theano")),
        (error.RPCError, "cannot connect to", lambda: rpc.connect("127.0.0.1", 1)),
        (topi.utils.InvalidShapeError, "not a multiple", lambda: topi.nn.depth_to_space(_six_channels(), 2)),
    ],
)
def test_what_raises_it(kind: type[Exception], message: str, run: Callable[[], Any]) -> None:
    """With the reason."""
    with pytest.raises(kind, match=message):
        run()


def _six_channels() -> Any:
    return te.placeholder((1, 6, 2, 2), name="x")
