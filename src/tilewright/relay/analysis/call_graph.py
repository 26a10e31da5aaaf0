"""Which functions of a module call which."""

from __future__ import annotations

from collections import Counter

from tilewright.ir.functor import post_order
from tilewright.ir.global_var import GlobalVar
from tilewright.ir.module import IRModule
from tilewright.relay.function import Function
from tilewright.support.errors import TilewrightError


class CallGraph:
    """The references from function to function in a module. A function that is named three times in another is called
    three times by it."""

    def __init__(self, module: IRModule) -> None:
        self.module = module
        self.calls: dict[GlobalVar, Counter[GlobalVar]] = {}
        self.references: Counter[GlobalVar] = Counter()
        for name, function in module.functions.items():
            found: Counter[GlobalVar] = Counter()
            if isinstance(function, Function):
                for inner in post_order(function):
                    for child in inner.children():
                        if isinstance(child, GlobalVar):
                            found[self._known(child)] += 1
            self.calls[name] = found
            self.references.update(found)

    def _known(self, var: GlobalVar | str) -> GlobalVar:
        """The variable under which the module has the function."""
        name = var if isinstance(var, str) else var.name_hint
        if name not in self.module:
            raise TilewrightError(f"the call graph has no function {name}")
        return self.module.get_global_var(name)

    def ref_count(self, var: GlobalVar | str) -> int:
        """How many times the function is named anywhere in the module."""
        return self.references[self._known(var)]

    def global_call_count(self, var: GlobalVar | str) -> int:
        """How many times the function names others."""
        return sum(self.calls[self._known(var)].values())

    def callees(self, var: GlobalVar | str) -> list[GlobalVar]:
        """The functions that a function names."""
        return list(self.calls[self._known(var)])

    def reachable(self, *entries: GlobalVar | str) -> list[GlobalVar]:
        """These functions and all that they call, directly or not, in the order in which they are met."""
        found: dict[GlobalVar, None] = {}
        pending = [self._known(entry) for entry in reversed(entries)]
        while pending:
            current = pending.pop()
            if current not in found:
                found[current] = None
                pending.extend(reversed(self.calls[current]))
        return list(found)

    def is_recursive(self, var: GlobalVar | str) -> bool:
        """True if the function calls itself, directly or through others."""
        start = self._known(var)
        return start in self.reachable(*self.calls[start])

    def topological_order(self) -> list[GlobalVar]:
        """Every function, those that it calls before it; within a cycle, in some order."""
        order: list[GlobalVar] = []
        seen: set[GlobalVar] = set()
        pending = [(name, False) for name in reversed(self.calls)]
        while pending:
            current, finished = pending.pop()
            if finished:
                order.append(current)
            elif current not in seen:
                seen.add(current)
                pending.append((current, True))
                pending.extend((callee, False) for callee in reversed(self.calls[current]))
        return order

    def print_var(self, var: GlobalVar | str) -> str:
        """One function: how often it is named, and what it calls."""
        name = self._known(var)
        head = f"Call graph node: {name.name_hint} at: {name}, #refs = {self.references[name]}\n"
        lines = [f"  call site: {callee.name_hint} ({count})\n" for callee, count in self.calls[name].items()]
        return head + "".join(lines)

    def __str__(self) -> str:
        return "\n".join(self.print_var(name) for name in self.calls)
