"""How each operator of each fused function is computed, and why: strategy rows, chosen and rejected."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from tilewright.ir.base import RelayExpr
from tilewright.ir.functor import post_order
from tilewright.ir.module import IRModule
from tilewright.relay.backend.te_compiler import kernel_name, tensor_expression
from tilewright.relay.expr import Call
from tilewright.relay.function import Function
from tilewright.schedule import scheduler_for
from tilewright.strategy import Choice
from tilewright.support.recursion import recursion_room
from tilewright.target import Target

_WIDTHS = (7, 30, 35)
"""Columns of the table under an operator, so that lines end within 80."""


@dataclass(frozen=True)
class KernelChoices:
    """The choices for one fused function, in the order of its computation, and what schedules the whole."""

    kernel: str
    choices: tuple[Choice, ...]
    scheduler: str

    def text(self) -> str:
        """The choices as a table of 80 columns. Operators without a choice share one line."""
        # The name without the common prefix; a long one continues on the next line.
        lines = textwrap.wrap(self.kernel[max(self.kernel.find("fused_"), 0) :], 78, subsequent_indent="  ")
        lines.append(f"  scheduler: {self.scheduler}")
        plain = list(dict.fromkeys(one.operator for one in self.choices if _is_plain(one)))
        for one in self.choices:
            if _is_plain(one):
                continue
            lines.append(f"  {one.operator}")
            lines += _row("taken", one.name, f"{one.computation}: {one.reason}")
            for other in one.refused:
                lines += _row("passed", other.name, other.reason)
        if plain:
            lines += textwrap.wrap(
                f"as defined: {', '.join(plain)}", 80, initial_indent="  ", subsequent_indent=" " * 14
            )
        return "\n".join(lines)

    def as_json(self) -> dict[str, Any]:
        """For programs."""
        return {
            "kernel": self.kernel,
            "scheduler": self.scheduler,
            "operators": [
                {
                    "operator": one.operator,
                    "row": one.name,
                    "computation": one.computation,
                    "scheduler": one.scheduler,
                    "reason": one.reason,
                    "passed_over": [{"row": row.name, "reason": row.reason} for row in one.refused],
                }
                for one in self.choices
            ],
        }


def explain_function(function: Function, target: Target) -> list[Choice]:
    """The choice for each operator of a fused function, in the order of its computation."""
    return tensor_expression(function, target).choices


def explain_kernels(kernels: Mapping[str, Function], target: Target) -> list[KernelChoices]:
    """The choices for fused functions by name."""
    found = []
    for name, function in kernels.items():
        program = tensor_expression(function, target)
        scheduler = scheduler_for(target).key if program.anchor is None else program.anchor.scheduler
        found.append(KernelChoices(name, tuple(program.choices), scheduler))
    return found


def explain_module(module: IRModule, target: Target) -> list[KernelChoices]:
    """The choices for every primitive function of a module whose operators are fused, each structure once. Those that
    other code generators take are left out."""
    return explain_kernels({name: calls[0] for name, calls in kernel_functions(module).items()}, target)


def kernel_functions(module: IRModule) -> dict[str, list[Function]]:
    """The primitive functions of a module whose operators are fused, by the name of the kernel that computes them, in
    the order of the computation. Those that other code generators take are left out."""
    kernels: dict[str, list[Function]] = {}
    with recursion_room():
        for function in module.functions.values():
            if not isinstance(function, RelayExpr):
                continue
            # A call comes after its arguments: kernels stand in the order of the computation.
            parts = list(post_order(function))
            called = [part.op for part in parts if isinstance(part, Call)]
            for part in (*called, *parts):
                if isinstance(part, Function) and _is_kernel(part):
                    found = kernels.setdefault(kernel_name(part), [])
                    if not any(one is part for one in found):
                        found.append(part)
    return kernels


def _is_kernel(function: Function) -> bool:
    attributes: Any = function.attrs
    return attributes is not None and bool(attributes.get("Primitive")) and not attributes.get("Compiler")


def explanation_text(explanations: Sequence[KernelChoices]) -> str:
    """The tables of all kernels."""
    return "\n\n".join(one.text() for one in explanations)


def _is_plain(choice: Choice) -> bool:
    """True if the definition was used and no row was rejected."""
    return choice.name == choice.operator and not choice.refused


def _row(*cells: str) -> list[str]:
    wrapped = [textwrap.wrap(cell, width) for cell, width in zip(cells, _WIDTHS, strict=True)]
    return [
        "    " + "  ".join(part.ljust(width) for part, width in zip(parts, _WIDTHS, strict=True)).rstrip()
        for parts in zip_longest(*wrapped, fillvalue="")
    ]
