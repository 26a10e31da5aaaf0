"""TVM's ``relay.transform.mixed_precision``: categories of operators, lists of them, and rules for one of one's own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tilewright.relay.expr import Call
from tilewright.relay.op.op import register_mixed_precision_conversion
from tilewright.relay.transform.lib.mixed_precision_lists import ALWAYS, FOLLOW, NEVER, Category

MIXED_PRECISION_ALWAYS = int(Category.ALWAYS)
MIXED_PRECISION_FOLLOW = int(Category.FOLLOW)
MIXED_PRECISION_NEVER = int(Category.NEVER)
DEFAULT_ALWAYS_LIST, DEFAULT_FOLLOW_LIST, DEFAULT_NEVER_LIST = list(ALWAYS), list(FOLLOW), list(NEVER)

Rule = Callable[[Call, str], list[Any]]
"""From a call and the narrow type: the category, the type to accumulate in, and that of the result."""


def register_func_to_op_list(list_ops: Sequence[str]) -> Callable[[Rule], Rule]:
    """Make a function the rule of several operators; a decorator."""

    def register(func: Rule) -> Rule:
        for name in list_ops:
            register_mixed_precision_conversion(name, func)
        return func

    return register


def get_generic_out_dtypes(call_node: Call, mixed_precision_type: str) -> list[str]:
    """The types to accumulate in and of the result: float32 to add up in, where an operator can say so."""
    if hasattr(call_node.attrs, "out_dtype"):
        return ["float32", mixed_precision_type]
    return [mixed_precision_type, mixed_precision_type]


def generic_always_op(call_node: Call, mixed_precision_type: str) -> list[Any]:
    """The rule of an operator whose arguments are converted."""
    return [MIXED_PRECISION_ALWAYS, *get_generic_out_dtypes(call_node, mixed_precision_type)]


def generic_follow_op(call_node: Call, mixed_precision_type: str) -> list[Any]:
    """The rule of an operator that is narrow where its arguments are."""
    return [MIXED_PRECISION_FOLLOW, *get_generic_out_dtypes(call_node, mixed_precision_type)]


def generic_never_op(call_node: Call, mixed_precision_type: str) -> list[Any]:
    """The rule of an operator that stays wide."""
    return [MIXED_PRECISION_NEVER, *get_generic_out_dtypes(call_node, mixed_precision_type)]
