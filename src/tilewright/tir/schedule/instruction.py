"""The steps of a schedule as data: the table of instruction kinds, and one instruction with its inputs and outputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tilewright.ir.expr import IntImm, Var
from tilewright.support.errors import ScheduleError
from tilewright.support.node import Object
from tilewright.tir.schedule.random_variables import BlockRV, LoopRV


@dataclass(frozen=True, slots=True)
class InstructionKind(Object):
    """A kind of step: which method of a schedule takes it, and what its parameters are called.

    ``parameters`` are for random variables and numbers, ``attributes`` for what no decision changes. ``rest`` names the
    parameter that takes all further inputs as a list; "*" if they are separate arguments.
    """

    name: str
    method: str
    parameters: tuple[str, ...] = ()
    attributes: tuple[str, ...] = ()
    rest: str | None = None
    is_pure: bool = False
    """True for a query: a step that can be removed if its result is unused."""
    samples: bool = False
    """True if the step takes a decision."""
    gives_list: bool = False
    """True if the method gives a list of random variables, however many they are."""

    @staticmethod
    def get(name: str) -> InstructionKind:
        """The kind of this name."""
        found = KINDS.get(name)
        if found is None:
            raise ScheduleError(
                f"{name!r} is not a kind of instruction; there are {', '.join(sorted(KINDS))}"
            )
        return found

    def arguments(self, inputs: Sequence[Any], attrs: Sequence[Any]) -> tuple[list[Any], dict[str, Any]]:
        """The positional and the named arguments of the method."""
        count = len(self.parameters)
        too_many = self.rest is None and len(inputs) > count
        if len(inputs) < count or too_many or len(attrs) != len(self.attributes):
            raise ScheduleError(
                f"{self.name} takes {count} inputs and {len(self.attributes)} attributes, "
                f"not {len(inputs)} and {len(attrs)}"
            )
        named = dict(zip(self.parameters, inputs, strict=False))
        further = list(inputs[count:])
        if self.rest not in (None, "*"):
            named[str(self.rest)] = further
            further = []
        named.update(zip(self.attributes, attrs, strict=True))
        return further, named


_KINDS = (
    InstructionKind("GetBlock", "get_block", (), ("name", "func_name"), is_pure=True),
    InstructionKind("GetLoops", "get_loops", ("block",), is_pure=True, gives_list=True),
    InstructionKind("GetChildBlocks", "get_child_blocks", ("block_or_loop",), is_pure=True, gives_list=True),
    InstructionKind("GetProducers", "get_producers", ("block",), is_pure=True, gives_list=True),
    InstructionKind("GetConsumers", "get_consumers", ("block",), is_pure=True, gives_list=True),
    InstructionKind("Fuse", "fuse", rest="*"),
    InstructionKind("Split", "split", ("loop",), rest="factors", gives_list=True),
    InstructionKind("Reorder", "reorder", rest="*"),
    InstructionKind("Parallel", "parallel", ("loop",)),
    InstructionKind("Vectorize", "vectorize", ("loop",)),
    InstructionKind("Unroll", "unroll", ("loop",)),
    InstructionKind("Bind", "bind", ("loop",), ("thread_axis",)),
    InstructionKind(
        "SampleCategorical", "sample_categorical", (), ("candidates", "probs"), is_pure=True, samples=True
    ),
    InstructionKind(
        "SamplePerfectTile",
        "sample_perfect_tile",
        ("loop",),
        ("n", "max_innermost_factor"),
        is_pure=True,
        samples=True,
        gives_list=True,
    ),
    InstructionKind("CacheRead", "cache_read", ("block",), ("read_buffer_index", "storage_scope")),
    InstructionKind("CacheWrite", "cache_write", ("block",), ("write_buffer_index", "storage_scope")),
    InstructionKind("DecomposeReduction", "decompose_reduction", ("block", "loop")),
    InstructionKind("RFactor", "rfactor", ("loop",), ("factor_axis",)),
    InstructionKind(
        "StorageAlign", "storage_align", ("block",), ("buffer_index", "axis", "factor", "offset")
    ),
    InstructionKind("ComputeAt", "compute_at", ("block", "loop"), ("preserve_unit_loops",)),
    InstructionKind("ReverseComputeAt", "reverse_compute_at", ("block", "loop"), ("preserve_unit_loops",)),
    InstructionKind("ComputeInline", "compute_inline", ("block",)),
    InstructionKind("ReverseComputeInline", "reverse_compute_inline", ("block",)),
    InstructionKind("SetScope", "set_scope", ("block",), ("buffer_index", "storage_scope")),
    InstructionKind("Annotate", "annotate", ("block_or_loop", "ann_val"), ("ann_key",)),
    InstructionKind("Unannotate", "unannotate", ("block_or_loop",), ("ann_key",)),
    InstructionKind("EnterPostproc", "enter_postproc"),
)

KINDS: dict[str, InstructionKind] = {kind.name: kind for kind in _KINDS}
"""Every kind of step by its name."""


class Instruction(Object):
    """One step that was taken: its kind, the random variables and numbers it was given, and what it gave."""

    __slots__ = ("attrs", "inputs", "kind", "outputs")

    def __init__(
        self, kind: InstructionKind, inputs: Sequence[Any], attrs: Sequence[Any], outputs: Sequence[Any]
    ) -> None:
        self.kind = kind
        self.inputs = list(inputs)
        self.attrs = list(attrs)
        self.outputs = list(outputs)

    def statement(self, name: Callable[[Any], str], decision: Any = None) -> str:
        """The step as a Python statement on a schedule ``sch``; ``name`` gives the text of random variables."""
        further, named = self.kind.arguments(self.inputs, self.attrs)
        parts = [_text(one, name) for one in further]
        parts += [f"{key}={_text(value, name)}" for key, value in named.items()]
        if decision is not None:
            parts.append(f"decision={_text(decision, name)}")
        given = ", ".join(name(one) for one in self.outputs)
        if self.kind.gives_list and len(self.outputs) == 1:
            given += ","
        return f"{given + ' = ' if given else ''}sch.{self.kind.method}({', '.join(parts)})"

    def __repr__(self) -> str:
        return self.statement(lambda variable: "_")


def is_variable(value: Any) -> bool:
    """True for what a step gives and later steps take."""
    return isinstance(value, (BlockRV, LoopRV, Var))


def _text(value: Any, name: Callable[[Any], str]) -> str:
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(_text(one, name) for one in value)}]"
    if isinstance(value, str):
        quoted = value.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{quoted}"'
    if is_variable(value):
        return name(value)
    return str(value.value if isinstance(value, IntImm) else value)
