"""Rules that replace quantised operators, as attributes of the operators.

A rule takes (attrs, arguments, types of the arguments and of the result) to an expression, or None to leave the call.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from tilewright.ir.op import register_op_attr

CANONICAL: Final = "FTVMQnnCanonicalize"
"""The attribute with the form of an operator in ordinary operators."""
LEGAL: Final = "FTVMQnnLegalize"
"""The attribute with what a target wants in an operator's place."""

Rule = Callable[[Any, Any, Any], Any]


def register_qnn_canonicalize(op_name: str, canonicalize: Rule | None = None, level: int = 10) -> Any:
    """Set the canonical form of an operator; a decorator without the function."""
    return register_op_attr(op_name, CANONICAL, canonicalize, level)


def register_qnn_legalize(op_name: str, legal_op: Rule | None = None, level: int = 10) -> Any:
    """Set what takes an operator's place before it is brought into its canonical form; a decorator without the
    function."""
    return register_op_attr(op_name, LEGAL, legal_op, level)
