"""Every error that Tilewright raises on purpose.

``TilewrightError`` is the root, and ``tilewright.TVMError`` is another name for it. Errors that a user can mend
say what was wrong, where, and what to do. ``InternalError`` is a defect of the compiler itself.
"""

from __future__ import annotations

from tilewright.support.span import Span, user_span


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


class ScheduleError(TilewrightError):
    """An illegal schedule step; names the stage, the axis and the reason. The schedule is as it was before."""


class LoweringError(TilewrightError):
    """A scheduled program cannot be lowered; names the operation and the reason."""


class VerifyError(TilewrightError):
    """A program breaks a rule of its IR."""


class ParseError(TilewrightError):
    """A text form cannot be read; shows the line with a caret."""


class TargetError(TilewrightError, ValueError):
    """A target description is wrong, or the target cannot do what was asked."""


class CodegenError(TilewrightError):
    """The code generator cannot express this program for this target."""


class ModelError(TilewrightError):
    """A model file or artefact cannot be used."""


class RuntimeFailure(TilewrightError):
    """Compiled code or the runtime library reported a failure."""


class RPCError(TilewrightError):
    """A remote device failed or could not be reached."""


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


class DiagnosticError(TilewrightError):
    """One or more diagnostics were emitted; the renderer has shown them."""
