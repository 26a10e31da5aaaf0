"""Errors carry a message and a place."""

from pathlib import Path

import pytest

import tilewright as tvm
from tilewright.ir.expr import Var
from tilewright.runtime.failure import failure
from tilewright.support.errors import (
    ExpressionError,
    InternalError,
    OpAttributeInvalid,
    OpNotImplemented,
    TilewrightError,
)
from tilewright.support.span import SourceName, Span


def test_span_is_in_the_text() -> None:
    """The place follows the message."""
    error = TilewrightError("wrong", span=Span(SourceName("model.txt"), 3, 3, 5, 9))
    assert str(error) == "wrong\n  at model.txt:3:5"
    assert error.message == "wrong" and error.span is not None


def test_expression_error_names_the_users_line() -> None:
    """The line of the user's Python that made the expression is in the message."""
    with pytest.raises(ExpressionError) as raised:
        Var("x") / 2  # the offending line
    assert Path(__file__).name in str(raised.value)
    assert "the offending line" in str(raised.value)


def test_classes_are_also_pythons() -> None:
    """Scripts that catch Python's own classes catch these errors."""
    assert issubclass(ExpressionError, TypeError) and issubclass(ExpressionError, ValueError)
    assert issubclass(OpNotImplemented, NotImplementedError) and issubclass(
        OpAttributeInvalid, AttributeError
    )
    assert issubclass(TilewrightError, RuntimeError)


def test_internal_error_asks_for_a_report() -> None:
    """A defect of the compiler says that it is one."""
    assert "please report it" in str(InternalError("broken"))


def test_errors_of_programs_by_their_kind() -> None:
    """A registered class is what errors of its kind are instances of, under its own name or another."""

    @tvm.error.register_error
    class OutOfTea(tvm.error.TVMError):
        pass

    assert tvm.error.register_error("tests.Cold", OutOfTea) is OutOfTea
    assert isinstance(failure("OutOfTea", "none left"), OutOfTea)
    assert isinstance(failure("tests.Cold", "none left"), OutOfTea)
    assert issubclass(tvm.error.RPCSessionTimeoutError, tvm.error.RPCError)
