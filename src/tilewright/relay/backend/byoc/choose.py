"""Choice by measured cost: where a backend and the compiler can both compute a part, the faster one does.

Every part is timed by itself, by the backend and compiled. A part that is slower is put back. What a part costs in its
place, with the copies and the fusion that its borders prevent, shows only in the whole model: so the whole models are
timed at last, and a partition has to beat the model without one clearly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tilewright.ir.module import IRModule
from tilewright.ir.structural_hash import structural_hash
from tilewright.relay.backend.byoc.measuring import Contestant, is_faster, race
from tilewright.relay.backend.byoc.partition import (
    operators_of,
    partition_for,
    plain_function,
    prepared_for_backends,
    put_back,
)
from tilewright.relay.backend.byoc.report import COMPILED, Part, Partition, refusals
from tilewright.relay.backend.external.symbols import external_functions
from tilewright.relay.backend.preparation import Params
from tilewright.relay.expr import Call, Constant, Var
from tilewright.relay.expr_functor import ExprMutator
from tilewright.relay.function import Function
from tilewright.relay.op.contrib.backends import get_backend
from tilewright.support.cbuild import is_host
from tilewright.target import Target

MARGIN = 0.97
"""A backend must need at most this part of the compiler's time: less may be noise."""


def choose_fastest(
    mod: IRModule,
    backends: str | Sequence[str],
    target: Any = "llvm",
    params: Params | None = None,
    *,
    mod_name: str = "default",
    context: Any = None,
) -> Partition:
    """Partition a model for backends, keeping only what makes it faster; ``context`` is the ``PassContext`` to compile
    under. Where the target is another machine nothing can be timed, and everything that can be taken is."""
    names = [backends] if isinstance(backends, str) else list(backends)
    chosen = Target(target)
    prepared = prepared_for_backends(mod, params)
    refused = refusals(prepared, names)
    if chosen.kind.name != "llvm" or not is_host(str(chosen.attrs.get("mtriple", ""))):
        return _all(prepared, names, mod_name, refused, f"not measured: the code is for {chosen}")
    untimed = [name for name in names if not get_backend(name).is_timed]
    if untimed:
        # Simulators come first: what they take is part of every contestant.
        prepared = partition_for(prepared, untimed, mod_name=mod_name, is_prepared=True)
    fixed = _taken(prepared, "the backend's own checks decide: its time here is a simulator's")
    timed = [name for name in names if name not in untimed]
    times = _Times(chosen, context)
    candidates: dict[str, IRModule] = {}
    parts: dict[str, list[Part]] = {COMPILED: []}
    mixed, mixed_parts = prepared, []
    for name in timed:
        full = partition_for(prepared, name, mod_name=mod_name, is_prepared=True)
        measured = [times.part(symbol, part) for symbol, part in _parts_of(full, name).items()]
        slow = [one.symbol for one in measured if not one.is_taken]
        parts[name] = measured
        if len(slow) < len(measured):
            candidates[name] = put_back(full, slow)
            if len(timed) > 1:
                step = partition_for(mixed, name, mod_name=mod_name, is_prepared=True)
                own = [times.part(symbol, part) for symbol, part in _parts_of(step, name).items()]
                mixed_parts += own
                mixed = put_back(step, [one.symbol for one in own if not one.is_taken])
        if slow and len(slow) < len(measured):
            candidates[f"all of {name}"] = full
            parts[f"all of {name}"] = measured
    if len({one.backend for one in mixed_parts if one.is_taken}) > 1:
        candidates["mixed"], parts["mixed"] = mixed, mixed_parts
    winner, totals = _best(prepared, candidates, chosen, context)
    return Partition(
        candidates.get(winner, prepared),
        tuple(names),
        [*fixed, *_decided(parts, winner, timed, totals)],
        refused,
        totals,
        " and ".join([*untimed, *([] if untimed and winner == COMPILED else [winner])]),
    )


def _all(
    prepared: IRModule, names: Sequence[str], mod_name: str, refused: list[Any], reason: str
) -> Partition:
    full = partition_for(prepared, names, mod_name=mod_name, is_prepared=True)
    return Partition(full, tuple(names), _taken(full, reason), refused, {}, ", ".join(names))


def _taken(mod: IRModule, reason: str) -> list[Part]:
    """The parts of a module, none of them timed."""
    return [
        Part(symbol, str(one.attrs["Compiler"]), tuple(operators_of(one)), None, None, True, reason)
        for symbol, one in external_functions(mod).items()
    ]


def _parts_of(mod: IRModule, backend: str) -> dict[str, Function]:
    """The parts that one backend computes."""
    return {
        symbol: part
        for symbol, part in external_functions(mod).items()
        if str(part.attrs["Compiler"]) == backend
    }


def take_all(
    mod: IRModule, backends: Sequence[str], params: Params | None = None, mod_name: str = "default"
) -> Partition:
    """Everything that the backends can take, with the same report."""
    prepared = prepared_for_backends(mod, params)
    return _all(prepared, list(backends), mod_name, refusals(prepared, backends), "all of it was asked for")


class _Lifted(ExprMutator):
    """A function with parameters for its constants: layers that differ in their weights take the same time."""

    def __init__(self) -> None:
        super().__init__()
        self.lifted: list[Var] = []

    def apart(self, function: Function) -> Function:
        """The function without constants."""
        body = self.visit(function.body)
        return Function([*function.params, *self.lifted], body)

    def visit_constant(self, const: Constant) -> Var:
        made = Var(f"constant{len(self.lifted)}", const.tensor_type)
        self.lifted.append(made)
        return made


class _Times:
    """The times of parts; those of one structure are taken once."""

    def __init__(self, target: Target, context: Any) -> None:
        self.target = target
        self.context = context
        self._known: dict[tuple[str, int], tuple[float, float, bool]] = {}

    def part(self, symbol: str, part: Function) -> Part:
        """A part timed by its backend and compiled."""
        backend = str(part.attrs["Compiler"])
        plain = plain_function(part)
        key = (backend, structural_hash(_Lifted().apart(plain)))
        if key not in self._known:
            whole = IRModule.from_expr(plain)
            external = IRModule.from_expr(_calling(part))
            theirs = Contestant(external, self.target, context=self.context)
            ours = Contestant(whole, self.target, context=self.context)
            race([theirs, ours], 3)
            self._known[key] = (theirs.best, ours.best, is_faster(theirs, ours, MARGIN))
        seconds, compiled, taken = self._known[key]
        ratio = compiled / seconds
        reason = f"{ratio:.2f} times as fast as compiled code" if taken else "not faster than compiled code"
        return Part(symbol, backend, tuple(operators_of(part)), seconds, compiled, taken, reason)


def _calling(part: Function) -> Function:
    """A function that calls a part and does nothing else."""
    params = [Var(one.name_hint, one.checked_type) for one in part.params]
    return Function(params, Call(part.without_attr("Inline"), params))


def _best(
    prepared: IRModule, candidates: dict[str, IRModule], target: Target, context: Any
) -> tuple[str, dict[str, float]]:
    """The fastest model, and the seconds of each; the one without a partition wins unless another is clearly faster."""
    if not candidates:
        return COMPILED, {}
    modules = {COMPILED: prepared, **candidates}
    contest = {name: Contestant(module, target, context=context) for name, module in modules.items()}
    totals = dict(zip(modules, race(list(contest.values())), strict=True))
    faster = [name for name in candidates if is_faster(contest[name], contest[COMPILED], MARGIN)]
    return min(faster, key=lambda name: totals[name], default=COMPILED), totals


def _decided(
    parts: dict[str, list[Part]], winner: str, names: Sequence[str], totals: dict[str, float]
) -> list[Part]:
    """The parts of the winner, and those that lost with the reason."""
    won = parts[winner]
    whole = winner.startswith("all of ")
    found = [
        one if not whole else _changed(one, True, "the whole model is fastest with every part taken")
        for one in won
    ]
    for name in names:
        if winner in (name, f"all of {name}", "mixed"):
            continue
        for one in parts[name]:
            if not one.is_taken:
                found.append(one)
            else:
                lost = f"{one.reason}, but the whole model is faster with {winner}"
                found.append(_changed(one, False, lost if totals else one.reason))
    return found


def _changed(part: Part, is_taken: bool, reason: str) -> Part:
    return replace(part, is_taken=is_taken, reason=reason)
