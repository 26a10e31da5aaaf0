"""What every backend says of itself: its patterns, its checks with reasons, and whether it can run here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tilewright.ir.module import IRModule
from tilewright.ir.op import register_op_attr
from tilewright.relay.expr import Call
from tilewright.relay.op.contrib.plugins import installed_plugins, load_plugin
from tilewright.relay.op.contrib.register import PatternTable, register_pattern_table
from tilewright.support.errors import TilewrightError

Check = Callable[[Call], str | None]
"""Why a call of an operator is not taken; None where it is."""


def nothing_missing() -> str | None:
    """Says that a backend can run everywhere."""
    return None


@dataclass(eq=False)
class Backend:
    """A code generator by its name: which patterns and operators it takes, and why not others."""

    name: str
    patterns: Callable[[], PatternTable]
    operators: dict[str, Check]
    """By operator: why a call is not taken."""
    why_missing: Callable[[], str | None] = nothing_missing
    """Why the backend cannot run on this machine, with what to install; None where it can."""
    heavy: tuple[str, ...] = ()
    """The operators that make a part worth a call; empty where every part is."""
    partition: Callable[[IRModule, str], IRModule] | None = None
    """Takes the parts out of a typed module, whose name is the second argument; None for the usual passes."""
    checks_of: Callable[[IRModule], Check] | None = None
    """For a backend whose patterns decide: why a call of this module is not taken."""
    is_timed: bool = True
    """False for a simulator, whose time says nothing: what the backend's own checks accept is taken."""

    def refusal(self, call: Any) -> str | None:
        """Why an operator's call is not taken; None where it is."""
        name = getattr(call.op, "name", type(call.op).__name__)
        check = self.operators.get(name)
        if check is None:
            return f"{self.name} has no {name}"
        return check(call)

    def refusals_in(self, module: IRModule) -> Check:
        """Why the calls of a typed module are not taken."""
        return self.refusal if self.checks_of is None else self.checks_of(module)


BACKENDS: dict[str, Backend] = {}


def register_backend(backend: Backend) -> Backend:
    """Make a backend known: its table of patterns and the operators that it takes."""
    BACKENDS[backend.name] = backend
    register_pattern_table(backend.name, backend.patterns)
    for operator, check in backend.operators.items():
        _register(operator, backend.name, check)
    return backend


def _register(operator: str, name: str, check: Check) -> None:
    register_op_attr(operator, f"target.{name}", lambda call: check(call) is None)


def backend_names() -> list[str]:
    """The backends that are registered, and those of installed packages, which are loaded when they are used."""
    return [*BACKENDS, *(name for name in installed_plugins() if name not in BACKENDS)]


def get_backend(name: str) -> Backend:
    """The backend of this name; that of an installed package is loaded."""
    if name not in BACKENDS and name in installed_plugins():
        load_plugin(installed_plugins()[name])
        if name not in BACKENDS:
            raise TilewrightError(
                f"the plugin {installed_plugins()[name]!r} was loaded, but registered no backend {name!r}"
            )
    found = BACKENDS.get(name)
    if found is None:
        raise TilewrightError(f"there is no backend {name!r}; the backends are {', '.join(backend_names())}")
    return found
