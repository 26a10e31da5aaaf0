"""RemoveUnusedFunctions: removes the functions that no entry function reaches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tilewright.ir.global_var import GlobalVar
from tilewright.ir.module import IRModule
from tilewright.ir.transform import Pass, PassContext
from tilewright.relay.analysis import CallGraph
from tilewright.relay.function import Function


@dataclass
class RemoveUnusedFunctions(Pass):
    """Keeps what ``entry_functions``, "main" unless others are named, call directly or through others. Functions of
    other levels stay. A module without main stays as it is."""

    entry_functions: Sequence[str] | None = None

    name = "RemoveUnusedFunctions"
    opt_level = 1

    def transform_module(self, mod: IRModule, ctx: PassContext) -> IRModule:
        """Drop functions."""
        if self.entry_functions is None and "main" not in mod:
            return mod
        graph = CallGraph(mod)
        used = set(graph.reachable(*(self.entry_functions or ["main"])))

        def kept(name: GlobalVar) -> bool:
            return name in used or not isinstance(mod.functions[name], Function)

        return mod.map_functions(lambda name, function: function if kept(name) else None)
