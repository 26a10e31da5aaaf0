"""Every error that Tilewright raises on purpose.

``TilewrightError`` is the root, and ``tilewright.TVMError`` is an alias. Errors that a user can fix say what was wrong,
where, and what to do. ``InternalError`` is a bug in the compiler.
"""

from __future__ import annotations

from typing import Any

from tilewright.support.span import Span, user_span

REGISTERED: dict[str, type[Exception]] = {}
"""Errors of programs that use Tilewright, by the kind that compiled code reports them under."""


def register_error(func_name: Any = None, cls: type[Exception] | None = None) -> Any:
    """Makes the errors of a kind instances of a class: ``@register_error`` by its own name, or under a name."""
    if isinstance(func_name, type):
        func_name, cls = func_name.__name__, func_name

    def register(error_class: type[Exception]) -> type[Exception]:
        REGISTERED[str(func_name or error_class.__name__)] = error_class
        return error_class

    return register if cls is None else register(cls)


class TilewrightError(RuntimeError):
    """Root of all Tilewright errors; carries the place that caused it, when one is known."""

    def __init__(self, message: str = "", *, span: Span | None = None) -> None:
        self.message = message
        self.span = span if span is not None else None
        super().__init__(f"{message}\n  at {span}" if span is not None else message)


class InternalError(TilewrightError):
    """The compiler broke one of its own rules. Please report it with the program that led here."""

    def __init__(self, message: str = "", *, span: Span | None = None) -> None:
        super().__init__(
            f"{message}\nThis is a defect of Tilewright: please report it with the program that caused it.",
            span=span,
        )


class ExpressionError(TilewrightError, TypeError, ValueError):
    """An expression or statement cannot be built from these operands; names the user's line."""

    def __init__(self, message: str = "", *, span: Span | None = None) -> None:
        super().__init__(message, span=span if span is not None else user_span())


class ScheduleError(TilewrightError, ValueError):
    """An illegal schedule step; names the stage, the axis and the reason. The schedule is as it was before."""


class LoweringError(TilewrightError, ValueError):
    """A scheduled program cannot be lowered; names the operation and the reason."""


class VerifyError(TilewrightError):
    """A program breaks a rule of its IR."""


class DiagnosticError(TilewrightError):
    """One or more diagnostics were emitted; the renderer has shown them."""


class ParseError(DiagnosticError, ValueError):
    """A text form cannot be read; shows the line with a caret."""


class TargetError(TilewrightError, ValueError):
    """A target description is wrong, or the target cannot do what was asked."""


class HostWithoutTarget(TargetError, AssertionError):
    """A host was given, and no target that it could be the host of."""


class CodegenError(TilewrightError):
    """The code generator cannot express this program for this target."""


class ModelError(TilewrightError):
    """A model file or artefact cannot be used."""

    node: str | None = None
    """The node of the model that the error is about, where it is about one."""


class RuntimeFailure(TilewrightError):
    """Compiled code or the runtime library reported a failure."""


class RPCError(TilewrightError):
    """A remote device failed or could not be reached."""


class RPCSessionTimeoutError(RPCError, TimeoutError):
    """A remote device did not answer in time."""


class OpError(TilewrightError):
    """Base of the errors about operators."""


class OpNotImplemented(OpError, NotImplementedError):
    """An operator has no implementation here."""


class OpAttributeRequired(OpError, AttributeError):
    """An operator lacks an attribute it needs."""


class OpAttributeInvalid(OpError, AttributeError):
    """An operator's attribute has a value it must not have."""


class OpAttributeUnImplemented(OpError, NotImplementedError):
    """An operator's attribute has a value that is not supported."""


REGISTERED.update(
    {
        kind.__name__: kind
        for kind in (
            InternalError,
            OpNotImplemented,
            OpAttributeRequired,
            OpAttributeInvalid,
            OpAttributeUnImplemented,
            RPCError,
        )
    }
)
