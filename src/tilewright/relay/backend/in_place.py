"""Outputs that take the memory of an input: the caches of a decoder, and other state that a model carries along.

The caller names pairs of an input and an output of one type. The kernels between the two then write into the input's
memory, so that an operator that changes few elements of a cache touches only those. That is possible where every one of
them may overwrite the argument that leads to the input, and where nothing reads what it overwrites afterwards.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

from tilewright.ir.base import RelayExpr
from tilewright.ir.op import Op
from tilewright.ir.tensor_type import TensorType
from tilewright.relay.analysis.symbolic_types import has_constant_shape
from tilewright.relay.expr import Call, Constant, Var
from tilewright.relay.function import Function
from tilewright.relay.op.definition import OpPattern
from tilewright.runtime.device import cpu
from tilewright.support.errors import LoweringError

_CPU = cpu().device_type


def in_place_parameters(function: Function, device: int = _CPU) -> list[int]:
    """The parameters whose memory the only result may overwrite: the function reads only the element that it writes of
    them, or has an operator that leaves most of them as they are."""
    result = function.body.checked_type
    if not isinstance(result, TensorType):
        return []
    updated = _updated_parameter(function, device)
    if updated is not None:
        return [updated]
    if not has_constant_shape(result) or not _is_elementwise(function):
        return []
    return [
        position
        for position, parameter in enumerate(function.params)
        if isinstance(parameter.checked_type, TensorType) and _same_elements(parameter.checked_type, result)
    ]


def _updated_parameter(function: Function, device: int) -> int | None:
    """The parameter that the function's only operator gives back with some elements changed. Its kernels for the CPU
    notice that the result is in the same memory; what users register in their place may not."""
    body = function.body
    if device != _CPU or not isinstance(body, Call) or not isinstance(body.op, Op):
        return None
    place = body.op.get_attr("TUpdatedArgument")
    is_own = body.op.get_attr("FTVMCompute") is body.op.get_attr("FDefinedCompute")
    if place is None or not is_own or body.op.get_attr("FTVMStrategy") is not None:
        return None
    if any(not isinstance(argument, (Var, Constant)) for argument in body.args):
        return None
    positions = [number for number, one in enumerate(function.params) if one is body.args[place]]
    return positions[0] if len(positions) == 1 else None


def _is_elementwise(function: Function) -> bool:
    """True if an element of the result depends on one element of each parameter."""
    pending: list[RelayExpr] = [function.body]
    seen: set[RelayExpr] = set()
    while pending:
        expr = pending.pop()
        if expr in seen:
            continue
        seen.add(expr)
        if isinstance(expr, Call):
            kind = expr.op.get_attr("TOpPattern") if isinstance(expr.op, Op) else None
            if kind is None or kind > OpPattern.BROADCAST:
                return False
            pending += expr.args
        elif not isinstance(expr, (Var, Constant)):
            return False
    return True


def _same_elements(first: TensorType, second: TensorType) -> bool:
    return first.dtype.bits == second.dtype.bits and TensorType(first.shape, second.dtype) == second


# Pairs of an input and an output


@dataclass(frozen=True)
class Step:
    """What a program does at one point: the tensors that it reads and makes."""

    name: str
    reads: Sequence[Hashable] = ()
    makes: Sequence[Hashable] = ()
    overwrites: Sequence[int] = ()
    """Which of those read the result may overwrite."""
    is_view: bool = False
    """What is made is in the memory of what is read."""
    keeps: bool = False
    """What is read may be read again later, in a way that is not seen here."""


@dataclass(frozen=True)
class Pair:
    """An input and an output of a program that are to have one memory, with their names."""

    input: Hashable
    output: Hashable
    input_name: str
    output_name: str

    def refuse(self, why: str) -> LoweringError:
        """The error that says why that is impossible."""
        return LoweringError(
            f"the output {self.output_name} cannot be in the memory of the input {self.input_name}: {why}"
        )


def named_pairs(
    wanted: Mapping[str, str],
    inputs: Mapping[str, tuple[Hashable, TensorType | None]],
    outputs: Mapping[str, tuple[Hashable, TensorType | None]],
) -> list[Pair]:
    """The pairs that a caller names; an error for a name that is not there, or for tensors of different types."""
    pairs: list[Pair] = []
    for name, other in wanted.items():
        if name not in inputs:
            raise LoweringError(
                f"the model has no input {name} that an output could take the memory of; it has "
                f"{', '.join(inputs) or 'none'}. A parameter that is given a value when the model is built is none"
            )
        if other not in outputs:
            raise LoweringError(f"the model has no output {other}; it has {', '.join(outputs) or 'none'}")
        (given, kind), (made, result) = inputs[name], outputs[other]
        pair = Pair(given, made, name, other)
        if any(one.output_name == other for one in pairs):
            raise LoweringError(f"the output {other} is to be in the memory of two inputs")
        if kind is None or result is None or not _may_be_equal(kind, result):
            raise pair.refuse(f"they are {result} and {kind}")
        pairs.append(pair)
    return pairs


def _may_be_equal(first: TensorType, second: TensorType) -> bool:
    if first.dtype is not second.dtype or len(first.shape) != len(second.shape):
        return False
    known = [
        (getattr(one, "value", None), getattr(other, "value", None))
        for one, other in zip(first.shape, second.shape, strict=True)
    ]
    return all(one is None or other is None or one == other for one, other in known)


def overwriting_steps(
    steps: Sequence[Step], pair: Pair, outputs: Sequence[Hashable]
) -> list[tuple[int, int]]:
    """The steps that write into the input's memory, in order, each with the place of what it overwrites among what it
    reads; an error that says why if the output cannot be there."""
    memory: dict[Hashable, Hashable] = {}
    made_by: dict[Hashable, int] = {}
    readers: dict[Hashable, list[int]] = {}
    for number, step in enumerate(steps):
        for value in step.reads:
            readers.setdefault(memory.setdefault(value, value), []).append(number)
        for value in step.makes:
            memory[value] = memory[step.reads[0]] if step.is_view else value
            made_by.setdefault(memory[value], number)
    start = memory.get(pair.input, pair.input)
    path = _path(steps, memory, made_by, start, memory.get(pair.output, pair.output))
    if path is None:
        maker = made_by.get(memory.get(pair.output, pair.output))
        made = "it is another input" if maker is None else f"it is made by {steps[maker].name}"
        raise pair.refuse(f"{made}, which does not change a part of the input and leave the rest")
    results = [memory.get(value, value) for value in outputs]
    old = start
    for number, _ in path:
        step = steps[number]
        if sum(memory[value] == old for value in step.reads) != 1:
            raise pair.refuse(f"{step.name} reads more of it than it overwrites")
        later = [one for one in readers[old] if one > number or (steps[one].keeps and one != number)]
        if later:
            raise pair.refuse(f"{steps[later[0]].name} may read it after {step.name} has written to it")
        if old in results:
            raise pair.refuse("what the input held before is a result of the model too")
        old = memory[step.makes[0]]
    return path


def _path(
    steps: Sequence[Step],
    memory: Mapping[Hashable, Hashable],
    made_by: Mapping[Hashable, int],
    start: Hashable,
    end: Hashable,
) -> list[tuple[int, int]] | None:
    """The steps from one tensor to another, each of which may overwrite what the one before it made."""
    after: dict[Hashable, tuple[Hashable, tuple[int, int]]] = {}
    pending = [end]
    seen = {end}
    while pending and start not in seen:
        value = pending.pop()
        number = made_by.get(value)
        if number is None or steps[number].is_view or len(steps[number].makes) != 1:
            continue
        for place in steps[number].overwrites:
            before = memory[steps[number].reads[place]]
            if before not in seen:
                seen.add(before)
                after[before] = (value, (number, place))
                pending.append(before)
    if start not in seen:
        return None
    path = []
    while start != end:
        start, step = after[start]
        path.append(step)
    return path
