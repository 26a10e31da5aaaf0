"""``UMABackend``: everything that a backend says about itself, in one class.

A backend derives from it, says its ``target_name``, and declares the rest in its constructor with
``_register_pattern``, ``_register_relay_pass``, ``_register_operator_strategy``, ``_register_tir_pass``,
``_register_codegen`` and ``_register_target_attr``; or it overrides a step as a whole:

* ``register_target``: the kind of target and its options;
* ``patterns``: what the backend takes, as a pattern table;
* ``relay_to_relay``: from a module to the partitioned module;
* ``strategies``: how operators are computed, where loops are made from tensor expressions;
* ``relay_to_tir``: from external functions to loops;
* ``tir_to_runtime``: from loops to a runtime module.

``register`` makes the backend known, ``partition`` splits a model. Whatever goes wrong in a step is an error that names
the backend and the step.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from tilewright.ir.module import IRModule
from tilewright.ir.op import Op
from tilewright.relay.backend.byoc.uma.lift_constants import lift_constants
from tilewright.relay.backend.byoc.uma.loops import lowered
from tilewright.relay.backend.byoc.uma.phases import PassPhase
from tilewright.relay.backend.byoc.uma.reasons import checks_of
from tilewright.relay.backend.byoc.uma.source import compiled
from tilewright.relay.backend.preparation import Params, bind_params_by_name, with_main
from tilewright.relay.dataflow_pattern import DFPattern
from tilewright.relay.infer import infer_module
from tilewright.relay.op.contrib.backends import BACKENDS, Backend, Check, register_backend
from tilewright.relay.transform.annotate_target import AnnotateTarget
from tilewright.relay.transform.merge_compiler_regions import MergeCompilerRegions
from tilewright.relay.transform.merge_composite import MergeComposite
from tilewright.relay.transform.partition_graph import PartitionGraph
from tilewright.runtime.module import Module
from tilewright.schedule import register_scheduler
from tilewright.schedule.scheduler import Scheduler
from tilewright.strategy import register_strategy_for
from tilewright.support.errors import TilewrightError
from tilewright.target import Target
from tilewright.target.kind import BOOL, INTEGER, KINDS, STRING, TargetKind, register_kind
from tilewright.te.schedule.auto_inline import auto_inline_injective
from tilewright.te.schedule.schedule import Schedule, create_schedule

Pattern = tuple[str, DFPattern] | tuple[str, DFPattern, Callable[[Any], Any]]
_TYPES = {bool: BOOL, int: INTEGER, str: STRING}


class UMABackend(ABC):
    """A backend. ``merge_compiler_regions`` joins neighbouring matches into one external function."""

    lifts_constants = True
    """Constants become arguments of the external functions, as loops need them; False leaves them in the graph, for a
    ``relay_to_tir`` that packs them itself."""
    is_timed = True
    """False for a simulator, whose time says nothing: the chooser then takes what the patterns' checks accept."""

    def __init__(self, merge_compiler_regions: bool = True) -> None:
        self.merge_compiler_regions = merge_compiler_regions
        self.mod_name = "default"
        """The name of the module that is partitioned, the second word of its parts' names."""
        self.refusals: list[tuple[str, str]] = []
        """What the checks of patterns refused in the latest ``partition``, with their reasons."""
        self._target_attrs: dict[str, Any] = {}
        self._passes: dict[PassPhase, list[Callable[[Any], Any]]] = {phase: [] for phase in PassPhase}
        self._patterns: list[Pattern] = []
        self._strategies: list[tuple[int, str, Callable[..., Any]]] = []
        self._format = "c"
        self._includes: Callable[[], str] | None = None

    @property
    @abstractmethod
    def target_name(self) -> str:
        """The name of the backend: of its kind of target, and the prefix of its patterns' names."""

    # ---- declarations ----

    def _register_target_attr(self, name: str, default: str | int | bool = "") -> None:
        """An option of the target: ``Target("my_backend -name=value")``."""
        if type(default) not in _TYPES:
            raise self._error(f"the option {name} is a string, an integer or a bool, not {default!r}")
        self._target_attrs[name] = default

    def _register_pattern(
        self, name: str, pattern: DFPattern, predicate: Callable[[Any], bool | str] | None = None
    ) -> None:
        """A group of operators that the backend takes. ``predicate`` gets the typed root of a match: True takes it; a
        text refuses it and says why."""
        self._patterns.append((name, pattern) if predicate is None else (name, pattern, predicate))

    def _register_relay_pass(self, phase: PassPhase, relay_pass: Callable[[Any], Any]) -> None:
        """A pass over the graph, before or after partitioning."""
        self._add_pass(phase, relay_pass, True)

    def _register_tir_pass(self, phase: PassPhase, tir_pass: Callable[[Any], Any]) -> None:
        """A pass over the loops of the backend's functions."""
        self._add_pass(phase, tir_pass, False)

    def _add_pass(self, phase: PassPhase, given: Callable[[Any], Any], is_graph: bool) -> None:
        if not isinstance(phase, PassPhase) or phase.is_graph_phase != is_graph:
            wanted = ", ".join(one.name for one in PassPhase if one.is_graph_phase == is_graph)
            raise self._error(
                f"passes over the {'graph' if is_graph else 'loops'} are for {wanted}, not {phase}"
            )
        if not callable(given):
            raise self._error(f"a pass is a function from module to module, not {given!r}")
        self._passes[phase].append(given)

    def _register_operator_strategy(self, op: str, strategy: Callable[..., Any], plevel: int = 11) -> None:
        """How an operator is computed in the backend's functions: (attrs, inputs, out_type, target) to an
        ``OpStrategy``. Of several strategies for one operator, that of the highest level counts."""
        self._guarded("_register_operator_strategy", lambda: Op.get(op))
        self._strategies.append((plevel, op, strategy))

    def _register_codegen(
        self, fmt: str = "c", includes: Callable[[], str] | None = None, **options: Any
    ) -> None:
        """The form of the code: ``c``, with lines that ``includes`` puts before it, or ``llvm`` for machine code."""
        if fmt not in ("c", "llvm"):
            raise self._error(
                f"code is generated as c or llvm, not {fmt!r}; override tir_to_runtime for others"
            )
        if options:
            raise self._error(f"code generation has no option {', '.join(options)}")
        if includes is not None and fmt != "c":
            raise self._error("includes are lines of C")
        self._format, self._includes = fmt, includes

    # ---- the steps; each may be overridden ----

    def register_target(self) -> TargetKind:
        """Make the kind of target known."""
        options = {name: _TYPES[type(default)] for name, default in self._target_attrs.items()}
        kind = TargetKind(
            self.target_name,
            1,
            (self.target_name,),
            options,
            dict(self._target_attrs),
            relay_to_tir=self._lower,
            tir_to_runtime=self._compile,
        )
        return register_kind(kind)

    def patterns(self) -> Sequence[Pattern]:
        """The pattern table: entries (name, pattern) or (name, pattern, predicate)."""
        return self._patterns

    def strategies(self) -> Sequence[tuple[str, Callable[..., Any]]]:
        """Pairs of an operator's name and its strategy; a later pair for the same operator takes precedence."""
        ordered = sorted(self._strategies, key=lambda one: one[0])
        return [(op, strategy) for _, op, strategy in ordered]

    def relay_to_relay(self, mod: IRModule) -> IRModule:
        """The module with a function for each part that the backend takes."""
        mod = self._run(PassPhase.PRE_PARTITIONING, mod)
        mod = MergeComposite(self._checked_patterns())(infer_module(mod))
        mod = AnnotateTarget([self.target_name])(mod)
        if self.merge_compiler_regions:
            mod = MergeCompilerRegions()(mod)
        mod = self._run(PassPhase.POST_PARTITIONING_0, PartitionGraph(self.mod_name)(mod))
        if self.lifts_constants:
            mod = lift_constants(mod, self.target_name)
        return self._run(PassPhase.POST_PARTITIONING_1, mod)

    def relay_to_tir(self, mod: IRModule) -> IRModule:
        """The module whose functions for the backend are loops, by the operators' tensor expressions."""
        return lowered(mod, Target(self.target_name))

    def tir_to_runtime(self, mod: IRModule, target: Target) -> Module:
        """The code of the loops."""
        head = "" if self._includes is None else self._includes()
        return compiled(mod, self._format, head)

    # ---- use ----

    def register(self) -> None:
        """Make the backend known: its target, its strategies, its hooks."""
        name = self.target_name
        if not isinstance(name, str) or not name.isidentifier():
            raise self._error(f"target_name is a name like my_accelerator, not {name!r}")
        if name in KINDS:
            raise self._error(f"there is a kind of target {name!r} already; a backend is registered once")
        if name in BACKENDS and BACKENDS[name].partition is None:
            raise self._error("there is another backend of this name")
        table = self._checked_patterns()
        strategies = self._guarded("strategies", lambda: list(self.strategies()))
        for entry in strategies:
            if not (isinstance(entry, tuple) and len(entry) == 2 and callable(entry[1])):
                raise self._error(
                    f"strategies gives pairs of an operator's name and a function, not {entry!r}"
                )
        self._guarded("register_target", self.register_target)
        if name not in KINDS:
            raise self._error("register_target did not register a kind of target of that name")
        for op, strategy in strategies:
            register_strategy_for(op, name, strategy)
        register_backend(
            Backend(
                name,
                lambda: table,
                {},
                partition=lambda mod, mod_name: self.partition(mod, mod_name=mod_name),
                checks_of=self._checks_of,
                is_timed=self.is_timed,
            )
        )
        register_scheduler(name, Scheduler(name, _in_order), override=True)

    def partition(self, mod: IRModule, params: Params | None = None, mod_name: str = "default") -> IRModule:
        """The module in which what the backend takes is in functions for it. ``params`` become constants."""
        if self.target_name not in KINDS:
            raise self._error("register the backend first: register()")
        self.refusals = []
        self.mod_name = mod_name
        if params:
            mod = with_main(mod, bind_params_by_name(mod["main"], params))
        made = self._guarded("relay_to_relay", lambda: self.relay_to_relay(mod))
        return self._module("relay_to_relay", made)

    def explain(self) -> str:
        """What the checks refused in the latest ``partition``: a line each."""
        return "\n".join(f"{name}: {reason}" for name, reason in self.refusals)

    def _checks_of(self, mod: IRModule) -> Check:
        """Why calls of a typed module are not taken, for the report of a partition."""
        if self._passes[PassPhase.PRE_PARTITIONING]:
            mod = infer_module(self._run(PassPhase.PRE_PARTITIONING, mod))
        return checks_of(self.target_name, mod, self._checked_patterns(), self.refusals)

    # ---- guards around what a backend says ----

    def _error(self, message: str) -> TilewrightError:
        name = self.target_name if isinstance(self.target_name, str) else type(self).__name__
        return TilewrightError(f"the backend {name!r}: {message}")

    def _guarded(self, step: str, run: Callable[[], Any]) -> Any:
        try:
            return run()
        except TilewrightError as error:
            if f"the backend {self.target_name!r}" in error.message:
                raise
            raise self._error(f"{step} failed: {error.message}") from error
        except (Exception, SystemExit) as error:
            raise self._error(
                f"{step} failed: {type(error).__name__}: {str(error) or 'no message'}"
            ) from error

    def _module(self, step: str, made: Any) -> IRModule:
        if not isinstance(made, IRModule):
            raise self._error(f"{step} gave {made!r}, not a module")
        return made

    def _checked_patterns(self) -> list[Any]:
        """The table with whole names, and with checks that note what they refuse."""
        made: list[Any] = []
        for entry in self._guarded("patterns", lambda: list(self.patterns())):
            if not (
                isinstance(entry, (tuple, list))
                and len(entry) in (2, 3)
                and isinstance(entry[0], str)
                and isinstance(entry[1], DFPattern)
                and (len(entry) == 2 or callable(entry[2]))
            ):
                raise self._error(
                    f"patterns gives entries (name, pattern) or (name, pattern, predicate), not {entry!r}"
                )
            check = self._noting(entry[0], entry[2]) if len(entry) == 3 else lambda root: True
            made.append((f"{self.target_name}.{entry[0]}", entry[1], check))
        return made

    def _noting(self, name: str, predicate: Callable[[Any], Any]) -> Callable[[Any], bool]:
        def check(root: Any) -> bool:
            said = self._guarded(f"the predicate of {name}", lambda: predicate(root))
            if isinstance(said, str):
                self.refusals.append((name, said))
                return False
            if not isinstance(said, bool):
                raise self._error(
                    f"the predicate of {name} gave {said!r}: it is True, False or the reason why not"
                )
            return said

        return check

    def _run(self, phase: PassPhase, mod: IRModule) -> IRModule:
        for one in self._passes[phase]:
            name = getattr(one, "name", None) or getattr(one, "__name__", type(one).__name__)
            step = f"the pass {name} of {phase.name}"
            mod = self._module(step, self._guarded(step, partial(one, mod)))
        return mod

    def _lower(self, mod: IRModule) -> IRModule:
        made = self._module("relay_to_tir", self._guarded("relay_to_tir", lambda: self.relay_to_tir(mod)))
        for phase in PassPhase:
            if not phase.is_graph_phase:
                made = self._run(phase, made)
        return made

    def _compile(self, mod: IRModule, target: Target) -> Module:
        made = self._guarded("tir_to_runtime", lambda: self.tir_to_runtime(mod, target))
        if not isinstance(made, Module):
            raise self._error(f"tir_to_runtime gave {made!r}, not a runtime module")
        return made


def _in_order(outputs: Any) -> Schedule:
    """The schedule where a strategy gives none: one loop an axis, what is elementwise computed where it is used."""
    made = create_schedule([tensor.op for tensor in outputs])
    auto_inline_injective(made)
    return made
