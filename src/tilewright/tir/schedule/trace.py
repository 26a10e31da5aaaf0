"""The trace of a schedule: its steps and sampling decisions. It prints as Python, is saved as JSON, and can be replayed
on another schedule, with other decisions if desired."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tilewright.ir.convert import convert
from tilewright.ir.expr import IntImm
from tilewright.support import terminal
from tilewright.support.errors import ScheduleError
from tilewright.tir.schedule.instruction import Instruction, InstructionKind, is_variable
from tilewright.tir.schedule.random_variables import BlockRV, LoopRV

if TYPE_CHECKING:
    from tilewright.tir.schedule.schedule import Schedule

DecisionProvider = Callable[[Instruction, Sequence[Any], Sequence[Any], Any], Any]
"""From an instruction, its inputs, its attributes and its old decision to the decision to take."""

_POSTPROC = "EnterPostproc"


class Trace:
    """Steps in order, and the decisions of those that sample, whose numbers are constants (``IntImm``)."""

    def __init__(self, insts: Sequence[Instruction], decisions: Mapping[Instruction, Any]) -> None:
        self.insts = list(insts)
        self.decisions = {inst: _constant(decision) for inst, decision in decisions.items()}

    def get_decision(self, inst: Instruction) -> Any:
        """The decision of a sampling step; None for other steps."""
        return self.decisions.get(inst)

    def append(self, inst: Instruction, decision: Any = None) -> None:
        """Add a step."""
        self.insts.append(inst)
        if decision is not None:
            self.decisions[inst] = _constant(decision)

    def pop(self) -> Instruction | None:
        """Take the last step away and give it; None of an empty trace."""
        if not self.insts:
            return None
        inst = self.insts.pop()
        self.decisions.pop(inst, None)
        return inst

    def _kept(self, remove_postproc: bool) -> list[Instruction]:
        """The steps; without what follows ``enter_postproc``, and that itself, if so wanted."""
        if remove_postproc:
            for position, inst in enumerate(self.insts):
                if inst.kind.name == _POSTPROC:
                    return self.insts[:position]
        return self.insts

    def apply_to_schedule(
        self, sch: Schedule, remove_postproc: bool, decision_provider: DecisionProvider | None = None
    ) -> None:
        """Take the same steps on another schedule."""
        values: dict[Any, Any] = {}
        for inst in self._kept(remove_postproc):
            inputs = [_translated(one, values) for one in inst.inputs]
            decision = self.decisions.get(inst)
            if decision_provider is not None and decision is not None:
                decision = decision_provider(inst, inputs, inst.attrs, decision)
            outputs = _take(sch, inst.kind, inputs, inst.attrs, decision)
            _require_outputs(inst.kind, outputs, inst.outputs)
            values.update(zip(inst.outputs, outputs, strict=True))

    def as_json(self, remove_postproc: bool = False) -> list[Any]:
        """Two lists that JSON can hold: of steps (kind, inputs, attributes, outputs), and of pairs of the number of a
        step and its decision."""
        names: dict[Any, str] = {}
        steps: list[Any] = []
        decided: list[Any] = []
        for number, inst in enumerate(self._kept(remove_postproc)):
            inputs = [_plain(one, names) for one in inst.inputs]
            steps.append(
                [inst.kind.name, inputs, list(inst.attrs), [_new_name(one, names) for one in inst.outputs]]
            )
            if inst in self.decisions:
                decided.append([number, _number(self.decisions[inst])])
        return [steps, decided]

    def as_python(self, remove_postproc: bool = False) -> list[str]:
        """The steps as Python statements on a schedule ``sch``."""
        names: dict[Any, str] = {}
        return [
            _statement(inst, _number(self.decisions.get(inst)), names) for inst in self._kept(remove_postproc)
        ]

    def with_decision(self, inst: Instruction, decision: Any, remove_postproc: bool) -> Trace:
        """The trace with another decision of one step."""
        if not any(inst is one for one in self.insts):
            raise ScheduleError(f"{inst!r} is not a step of this trace")
        if not inst.kind.samples:
            raise ScheduleError(f"{inst.kind.name} does not take a decision")
        kept = self._kept(remove_postproc)
        decisions = {one: self.decisions[one] for one in kept if one in self.decisions}
        return Trace(kept, {**decisions, inst: decision})

    def simplified(self, remove_postproc: bool) -> Trace:
        """The trace without questions and samples whose answers no later step uses."""
        used: set[Any] = set()
        kept: list[Instruction] = []
        for inst in reversed(self._kept(remove_postproc)):
            if inst.kind.is_pure and not any(one in used for one in inst.outputs):
                continue
            used.update(one for one in inst.inputs if is_variable(one))
            kept.insert(0, inst)
        return Trace(kept, {one: self.decisions[one] for one in kept if one in self.decisions})

    @staticmethod
    def apply_json_to_schedule(json_obj: Any, sch: Schedule) -> None:
        """Take the steps that ``as_json`` wrote on a schedule."""
        try:
            steps, decided = json_obj
            decisions = {int(number): decision for number, decision in decided}
            parsed = [(str(name), list(given), list(attrs), list(made)) for name, given, attrs, made in steps]
        except (TypeError, ValueError):
            raise ScheduleError(
                "this is not what Trace.as_json gives: two lists, of steps and of decisions"
            ) from None
        values: dict[str, Any] = {}
        for number, (name, given, attrs, made) in enumerate(parsed):
            unknown = [one for one in given if _is_name(one) and one not in values]
            if unknown:
                raise ScheduleError(f"step {number} ({name}) uses {unknown[0]}, which no step before it gave")
            inputs = [values[one] if _is_name(one) else _unquoted(one) for one in given]
            kind = InstructionKind.get(name)
            outputs = _take(sch, kind, inputs, attrs, decisions.get(number))
            _require_outputs(kind, outputs, made)
            values.update(zip(made, outputs, strict=True))

    def show(self, style: str | None = None, black_format: bool = False) -> None:
        """Print the steps; see ``IRModule.show``."""
        terminal.show(str(self), style)

    def copy(self) -> Trace:
        """Another trace of the same steps."""
        return Trace(self.insts, self.decisions)

    def __len__(self) -> int:
        return len(self.insts)

    def __str__(self) -> str:
        return "\n".join(self.as_python())

    __repr__ = __str__


def _take(
    sch: Schedule, kind: InstructionKind, inputs: Sequence[Any], attrs: Sequence[Any], decision: Any
) -> list[Any]:
    """Take one step; what it gives."""
    further, named = kind.arguments(inputs, attrs)
    if kind.samples:
        named["decision"] = decision
    result = getattr(sch, kind.method)(*further, **named)
    if result is None:
        return []
    return list(result) if isinstance(result, (list, tuple)) else [result]


def _require_outputs(kind: InstructionKind, given: Sequence[Any], expected: Sequence[Any]) -> None:
    if len(given) != len(expected):
        raise ScheduleError(
            f"{kind.name} gave {len(given)} results where the trace has {len(expected)}: "
            "the trace is of another program"
        )


def _translated(value: Any, values: Mapping[Any, Any]) -> Any:
    return values[value] if is_variable(value) else value


def _new_name(variable: Any, names: dict[Any, str]) -> str:
    letter = "b" if isinstance(variable, BlockRV) else "l" if isinstance(variable, LoopRV) else "v"
    names[variable] = f"{letter}{len(names)}"
    return names[variable]


def _plain(value: Any, names: Mapping[Any, str]) -> Any:
    """An input as JSON: random variables by name, texts in quotation marks."""
    if is_variable(value):
        return names[value]
    if isinstance(value, str):
        return json.dumps(value)
    return int(value.value) if isinstance(value, IntImm) else value


def _is_name(given: Any) -> bool:
    """True for an input that is the name of a random variable; see ``_plain``."""
    return isinstance(given, str) and not given.startswith('"')


def _unquoted(given: Any) -> Any:
    return json.loads(given) if isinstance(given, str) else given


def _constant(decision: Any) -> Any:
    """A decision with its numbers as constants."""
    if isinstance(decision, (list, tuple)):
        return [_constant(one) for one in decision]
    return convert(decision)


def _number(decision: Any) -> Any:
    """A decision in plain numbers."""
    if isinstance(decision, (list, tuple)):
        return [_number(one) for one in decision]
    return int(decision.value) if isinstance(decision, IntImm) else decision


def _statement(inst: Instruction, decision: Any, names: dict[Any, str]) -> str:
    """A step as Python; its outputs get names, which later steps use."""
    inputs = dict(names)
    for one in inst.outputs:
        _new_name(one, names)
    return inst.statement(lambda variable: inputs.get(variable) or names[variable], decision)
