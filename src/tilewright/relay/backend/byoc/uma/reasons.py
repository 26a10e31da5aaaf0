"""Why operators are not taken by a backend whose patterns decide."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright.ir.functor import post_order
from tilewright.ir.module import IRModule
from tilewright.relay.dataflow_pattern.groups import Grouper
from tilewright.relay.expr import Call
from tilewright.relay.op.contrib.backends import Check


def checks_of(
    name: str, module: IRModule, table: Sequence[tuple[Any, ...]], noted: list[tuple[str, str]]
) -> Check:
    """For the calls of a typed module: None if a pattern takes them, else the reason. The checks of the table's
    entries (name, pattern, check) append their reasons to ``noted``."""
    main = module["main"]
    present = {expr for expr in post_order(main.body) if isinstance(expr, Call)}
    found: dict[Any, str | None] = {}
    for pattern_name, pattern, check in table:
        for root, group in Grouper(pattern, main).run().items():
            before = len(noted)
            taken = check(root)
            said = noted[-1][1] if len(noted) > before else f"the check of {pattern_name} said no"
            for member in group.members:
                if taken:
                    found[member] = None
                else:
                    found.setdefault(member, said)

    def why_not(call: Call) -> str | None:
        if call in found:
            return found[call]
        if call not in present:
            return None  # a pass of the backend has rewritten it
        return f"no pattern of {name} takes {getattr(call.op, 'name', 'it')} here"

    return why_not
