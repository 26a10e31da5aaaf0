"""Block schedules.

A schedule holds a module and changes how its loops run, never what they compute. Every step first checks whether it is
legal; an illegal one raises ``ScheduleError`` and leaves the schedule unchanged. Steps are recorded in a trace.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, overload

from tilewright.ir.expr import IntImm, Var
from tilewright.ir.module import IRModule
from tilewright.support import html
from tilewright.support.errors import ScheduleError, TilewrightError
from tilewright.support.span import user_span
from tilewright.tir.function import PrimFunc
from tilewright.tir.schedule import (
    annotate,
    cache,
    compute_at,
    inline,
    loops,
    reduction,
    rfactor,
    sampling,
    set_scope,
    storage_align,
)
from tilewright.tir.schedule.analysis import RefusedStep, loops_above, scope_of
from tilewright.tir.schedule.block_scope import StmtSRef
from tilewright.tir.schedule.instruction import Instruction, InstructionKind
from tilewright.tir.schedule.random_variables import BlockRV, ExprRV, LoopRV, RandomVariable
from tilewright.tir.schedule.state import ScheduleState
from tilewright.tir.schedule.trace import Trace
from tilewright.tir.script.marking import print_marked
from tilewright.tir.stmt import Block, For

ERROR_RENDER_LEVELS = ("detail", "fast", "none")

T = TypeVar("T")


class UnknownVariable(ScheduleError, IndexError):
    """A random variable is not one of this schedule."""


class Schedule:
    """A module under scheduling.

    ``debug_mask`` says what is checked after each step ("none", "all"); ``error_render_level`` how much an error tells:
    "detail" shows the program, "fast" the reason, "none" nothing but that the step was refused.
    """

    def __init__(
        self,
        mod: PrimFunc | IRModule,
        *,
        seed: int | None = None,
        debug_mask: str | int = "none",
        error_render_level: str = "detail",
    ) -> None:
        if error_render_level not in ERROR_RENDER_LEVELS:
            levels = ", ".join(ERROR_RENDER_LEVELS)
            raise ScheduleError(f"error_render_level is one of {levels}, not {error_render_level!r}")
        self._state = ScheduleState(mod, debug_mask=debug_mask)
        self._trace = Trace([], {})
        self._error_render_level = error_render_level
        self.seed(seed)
        self._references: dict[BlockRV | LoopRV, StmtSRef] = {}
        self._numbers: dict[Var, int] = {}
        self._working_on = "main"

    def _repr_html_(self) -> str:
        """The program as it is now for a notebook, and the steps that made it."""
        steps = "\n".join(map(str, self._trace.as_python()))
        return html.fragment(
            "Schedule", html.program(self.mod.script(), "program"), html.folded("steps", html.program(steps))
        )

    @property
    def mod(self) -> IRModule:
        """The program as it is now."""
        return self._state.mod

    @property
    def state(self) -> ScheduleState:
        """The program with the references to its loops and blocks."""
        return self._state

    @property
    def trace(self) -> Trace:
        """The steps so far."""
        return self._trace

    def copy(self) -> Schedule:
        """An independent schedule of the same program, in which all random variables mean the same."""
        made = Schedule(self.mod, seed=self.fork_seed(), error_render_level=self._error_render_level)
        made._state, references = self._state.copy()
        made._trace = self._trace.copy()
        made._references = {name: references.get(one, one) for name, one in self._references.items()}
        made._numbers = dict(self._numbers)
        made._working_on = self._working_on
        return made

    def seed(self, seed: int | None) -> None:
        """Start the random numbers of sampling anew; None and -1 are a seed of chance."""
        self._random = random.Random(None if seed == -1 else seed)

    def fork_seed(self) -> int:
        """A seed for another schedule, from the random numbers of this one."""
        return self._random.randrange(1, 2**31 - 1)

    # Random variables

    @overload
    def get(self, rand_var_or_sref: BlockRV) -> Block: ...

    @overload
    def get(self, rand_var_or_sref: LoopRV) -> For: ...

    @overload
    def get(self, rand_var_or_sref: StmtSRef) -> Block | For: ...

    @overload
    def get(self, rand_var_or_sref: ExprRV) -> int: ...

    def get(self, rand_var_or_sref: RandomVariable | StmtSRef | ExprRV) -> Block | For | int:
        """The block, loop or number that a random variable or a reference stands for."""
        if isinstance(rand_var_or_sref, StmtSRef):
            if rand_var_or_sref.stmt is None:
                raise ScheduleError("the reference is to a statement that no longer exists", span=user_span())
            return rand_var_or_sref.stmt
        if isinstance(rand_var_or_sref, (BlockRV, LoopRV)):
            stmt = self.get_sref(rand_var_or_sref).stmt
            assert stmt is not None
            return stmt
        return self._number(rand_var_or_sref)

    def get_sref(self, rand_var_or_stmt: BlockRV | LoopRV | Block | For) -> StmtSRef:
        """The reference to a block or loop, given by its random variable or as it is."""
        if isinstance(rand_var_or_stmt, (Block, For)):
            return self._state.get_sref(rand_var_or_stmt)
        found = self._references.get(rand_var_or_stmt)
        if found is None:
            raise UnknownVariable(
                f"{rand_var_or_stmt!r} is not a block or loop of this schedule", span=user_span()
            )
        if found.stmt is None:
            kind = "block" if isinstance(rand_var_or_stmt, BlockRV) else "loop"
            raise ScheduleError(
                f"the {kind} of this random variable no longer exists: a step replaced or removed it",
                span=user_span(),
            )
        return found

    def remove_rv(self, rand_var: RandomVariable) -> None:
        """Forget a random variable."""
        known: dict[Any, Any] = self._numbers if isinstance(rand_var, Var) else self._references
        if rand_var not in known:
            raise ScheduleError(f"{rand_var!r} is not a random variable of this schedule", span=user_span())
        del known[rand_var]

    def show(self, rand_var: RandomVariable | None = None) -> str | None:
        """The text of what a random variable stands for; without one, the program and the steps are printed."""
        if rand_var is not None:
            return str(self.get(rand_var))
        self.mod.show()
        self.trace.show()
        return None

    def _block(self, given: BlockRV | str) -> tuple[BlockRV, StmtSRef]:
        """A block that is given itself or by its name, and the reference to it."""
        block = self.get_block(given) if isinstance(given, str) else given
        if not isinstance(block, BlockRV):
            raise ScheduleError(f"{given!r} is not a block of a schedule (BlockRV)", span=user_span())
        return block, self.get_sref(block)

    def _block_or_loop(self, given: BlockRV | LoopRV | str) -> tuple[BlockRV | LoopRV, StmtSRef]:
        return (given, self._loop(given)) if isinstance(given, LoopRV) else self._block(given)

    def _loop(self, given: LoopRV) -> StmtSRef:
        if not isinstance(given, LoopRV):
            raise ScheduleError(f"{given!r} is not a loop of a schedule (LoopRV)", span=user_span())
        return self.get_sref(given)

    def _number(self, given: Any) -> int:
        if isinstance(given, IntImm):
            return int(given.value)
        if isinstance(given, int) and not isinstance(given, bool):
            return given
        if isinstance(given, Var) and given in self._numbers:
            return self._numbers[given]
        raise ScheduleError(
            f"{given!r} is neither an integer nor a number that this schedule sampled", span=user_span()
        )

    def _new_block(self, reference: StmtSRef) -> BlockRV:
        made = BlockRV()
        self._references[made] = reference
        return made

    def _new_loop(self, reference: StmtSRef) -> LoopRV:
        made = LoopRV()
        self._references[made] = reference
        return made

    def _new_number(self, value: int) -> Var:
        made = Var("v", "int32")
        self._numbers[made] = value
        return made

    # Steps

    def _step(self, change: Callable[[], T]) -> T:
        """Do something that may fail; the program stays as it was if it does."""
        saved = self._state.snapshot()
        try:
            return change()
        except TilewrightError as error:
            self._state.restore(saved)
            if isinstance(error, ScheduleError):
                raise self._rendered(error) from None
            raise

    def _rendered(self, error: ScheduleError) -> ScheduleError:
        if self._error_render_level == "fast":
            if isinstance(error, RefusedStep) and error.brief != error.message:
                return ScheduleError(error.brief, span=error.span)
            return error
        if self._error_render_level == "none":
            return ScheduleError("the step was refused (not rendered)", span=error.span)
        marked = error.statements if isinstance(error, RefusedStep) else []
        return ScheduleError(f"{error.message}\n{print_marked(self.mod, marked)}", span=error.span)

    def _record(
        self,
        kind: str,
        inputs: Sequence[Any],
        attrs: Sequence[Any] = (),
        outputs: Sequence[Any] = (),
        decision: Any = None,
    ) -> None:
        self._trace.append(Instruction(InstructionKind.get(kind), inputs, attrs, outputs), decision)

    # Questions

    def work_on(self, func_name: str) -> None:
        """The function in which blocks are looked for by name from now on; it is "main" at first."""
        self._working_on = func_name

    @property
    def func_working_on(self) -> str:
        """The function in which blocks are looked for by name."""
        return self._working_on

    def get_block(self, name: str, func_name: str | None = None) -> BlockRV:
        """The block of this name in a function; by default in the one that ``work_on`` has named."""
        place = self._working_on if func_name is None else func_name
        block = self._new_block(self._step(lambda: self._block_named(name, place)))
        self._record("GetBlock", [], [name, place], [block])
        return block

    def _block_named(self, name: str, func_name: str) -> StmtSRef:
        functions = {variable.name_hint: one for variable, one in self._state.functions().items()}
        if func_name not in functions:
            known = ", ".join(functions) or "none"
            raise ScheduleError(
                f"get_block: there is no function {func_name} of blocks in the module; there are: {known}",
                span=user_span(),
            )
        root = self._state.root(functions[func_name])
        below = [one for one in self._state.references.values() if one.is_block and _root_of(one) is root]
        matching = [one for one in below if one.block.name_hint == name]
        if len(matching) != 1:
            known = ", ".join(dict.fromkeys(one.block.name_hint for one in below))
            if matching:
                raise RefusedStep(
                    f"get_block: Found {len(matching)} blocks with the name: {name}",
                    matching,
                    span=user_span(),
                )
            raise RefusedStep(
                f"get_block: Cannot find a block with the name: {name}; the blocks of function {func_name} are: "
                f"{known}",
                [],
                brief=f"get_block: Cannot find a block with the specified name, {name}, in function {func_name}",
                span=user_span(),
            )
        return matching[0]

    def get_loops(self, block: BlockRV | str) -> list[LoopRV]:
        """The loops around a block in its scope, outermost first."""
        block, reference = self._block(block)
        made = [self._new_loop(one) for one in loops_above(reference)]
        self._record("GetLoops", [block], [], made)
        return made

    def get_child_blocks(self, block_or_loop: BlockRV | LoopRV | str) -> list[BlockRV]:
        """The blocks directly below a block or loop, in order."""
        block_or_loop, reference = self._block_or_loop(block_or_loop)
        made = [self._new_block(one) for one in self._state.child_blocks(reference)]
        self._record("GetChildBlocks", [block_or_loop], [], made)
        return made

    def get_producers(self, block: BlockRV | str) -> list[BlockRV]:
        """The blocks of the same scope that write what this one reads."""
        block, reference = self._block(block)
        scope = self._state.get_block_scope(scope_of(reference))
        made = [self._new_block(one) for one in scope.producers(reference)]
        self._record("GetProducers", [block], [], made)
        return made

    def get_consumers(self, block: BlockRV | str) -> list[BlockRV]:
        """The blocks of the same scope that read what this one writes."""
        block, reference = self._block(block)
        scope = self._state.get_block_scope(scope_of(reference))
        made = [self._new_block(one) for one in scope.consumers(reference)]
        self._record("GetConsumers", [block], [], made)
        return made

    # Loops

    def fuse(self, *loops_: LoopRV, preserve_unit_iters: bool = True) -> LoopRV:
        """Make one loop of nested ones, which are given outermost first."""
        _require_unit_loops("fuse", preserve_unit_iters)
        if not loops_:
            raise ScheduleError("fuse: no loops are given", span=user_span())
        given = [self._loop(loop) for loop in loops_]
        made = self._new_loop(self._step(lambda: loops.fuse(self._state, given)))
        self._record("Fuse", loops_, [], [made])
        return made

    def split(
        self, loop: LoopRV, factors: Sequence[int | ExprRV | None], preserve_unit_iters: bool = True
    ) -> list[LoopRV]:
        """Make nested loops of one, with these extents; one factor may be None, it is as large as it must be."""
        _require_unit_loops("split", preserve_unit_iters)
        reference = self._loop(loop)
        sizes = [None if factor is None else self._number(factor) for factor in factors]
        made = [self._new_loop(one) for one in self._step(lambda: loops.split(self._state, reference, sizes))]
        self._record("Split", [loop, *factors], [], made)
        return made

    def reorder(self, *ordered_loops: LoopRV) -> None:
        """Put loops of one nest into this order, outermost first; others of the nest stay at their places."""
        given = [self._loop(loop) for loop in ordered_loops]
        if not given:
            raise ScheduleError("reorder: no loops are given", span=user_span())
        self._step(lambda: loops.reorder(self._state, given))
        self._record("Reorder", ordered_loops)

    def parallel(self, loop: LoopRV) -> None:
        """Run the iterations of a loop on the threads of the CPU."""
        reference = self._loop(loop)
        self._step(lambda: annotate.parallel(self._state, reference))
        self._record("Parallel", [loop])

    def vectorize(self, loop: LoopRV) -> None:
        """Make the iterations of a loop the lanes of vectors."""
        reference = self._loop(loop)
        self._step(lambda: annotate.vectorize(self._state, reference))
        self._record("Vectorize", [loop])

    def bind(self, loop: LoopRV, thread_axis: str) -> None:
        """Give the iterations of a loop to the threads of a device: "blockIdx.x", "threadIdx.x", "vthread.x" …"""
        reference = self._loop(loop)
        self._step(lambda: annotate.bind(self._state, reference, thread_axis))
        self._record("Bind", [loop], [thread_axis])

    def unroll(self, loop: LoopRV) -> None:
        """Write the iterations of a loop out."""
        reference = self._loop(loop)
        self._step(lambda: annotate.unroll(self._state, reference))
        self._record("Unroll", [loop])

    # Places

    def compute_at(self, block: BlockRV | str, loop: LoopRV, preserve_unit_loops: bool = False) -> None:
        """Compute a block inside a loop around all blocks that read it: in each iteration what they read."""
        block, moved = self._block(block)
        place = self._loop(loop)
        self._step(lambda: compute_at.compute_at(self._state, moved, place, preserve_unit_loops))
        self._record("ComputeAt", [block, loop], [preserve_unit_loops])

    def reverse_compute_at(
        self, block: BlockRV | str, loop: LoopRV, preserve_unit_loops: bool = False
    ) -> None:
        """Compute a block inside a loop around blocks that it reads: in each iteration from what they wrote."""
        block, moved = self._block(block)
        place = self._loop(loop)
        self._step(lambda: compute_at.reverse_compute_at(self._state, moved, place, preserve_unit_loops))
        self._record("ReverseComputeAt", [block, loop], [preserve_unit_loops])

    def compute_inline(self, block: BlockRV | str) -> None:
        """Compute an elementwise block in the blocks that read it."""
        block, reference = self._block(block)
        self._step(lambda: inline.compute_inline(self._state, reference))
        self._record("ComputeInline", [block])

    def reverse_compute_inline(self, block: BlockRV | str) -> None:
        """Compute an elementwise block in the only block that it reads."""
        block, reference = self._block(block)
        self._step(lambda: inline.reverse_compute_inline(self._state, reference))
        self._record("ReverseComputeInline", [block])

    # Copies

    def cache_read(self, block: BlockRV | str, read_buffer_index: int, storage_scope: str) -> BlockRV:
        """Copy the buffer of this number among the block's reads to other memory, for all that read it."""
        block, reference = self._block(block)
        made = self._step(lambda: cache.cache_read(self._state, reference, read_buffer_index, storage_scope))
        result = self._new_block(made)
        self._record("CacheRead", [block], [read_buffer_index, storage_scope], [result])
        return result

    def cache_write(self, block: BlockRV | str, write_buffer_index: int, storage_scope: str) -> BlockRV:
        """Let the block write to other memory first, from where the new block copies."""
        block, reference = self._block(block)
        made = self._step(
            lambda: cache.cache_write(self._state, reference, write_buffer_index, storage_scope)
        )
        result = self._new_block(made)
        self._record("CacheWrite", [block], [write_buffer_index, storage_scope], [result])
        return result

    def storage_align(
        self, block: BlockRV | str, buffer_index: int, axis: int, factor: int, offset: int
    ) -> None:
        """Let a dimension of a written buffer have a stride of ``offset`` more than a multiple of ``factor``."""
        block, reference = self._block(block)
        given = (buffer_index, axis, factor, offset)
        self._step(lambda: storage_align.storage_align(self._state, reference, *given))
        self._record("StorageAlign", [block], given)

    def set_scope(self, block: BlockRV | str, buffer_index: int | str, storage_scope: str) -> None:
        """Put a buffer that a block writes, by its number or name, into other memory."""
        block, reference = self._block(block)
        index = self._step(lambda: set_scope.written_index(reference, buffer_index))
        self._step(lambda: set_scope.set_scope(self._state, reference, index, storage_scope))
        self._record("SetScope", [block], [index, storage_scope])

    # Annotations

    def annotate(self, block_or_loop: BlockRV | LoopRV | str, ann_key: str, ann_val: Any) -> None:
        """Say something about a block or a loop to the passes that follow, such as ``pragma_auto_unroll_max_step``;
        a value may be a number that was sampled."""
        block_or_loop, reference = self._block_or_loop(block_or_loop)
        value = self._number(ann_val) if isinstance(ann_val, Var) else ann_val
        self._step(lambda: annotate.annotate(self._state, reference, ann_key, value))
        self._record("Annotate", [block_or_loop, ann_val], [ann_key])

    def unannotate(self, block_or_loop: BlockRV | LoopRV | str, ann_key: str) -> None:
        """Take back what ``annotate`` has said."""
        block_or_loop, reference = self._block_or_loop(block_or_loop)
        self._step(lambda: annotate.unannotate(self._state, reference, ann_key))
        self._record("Unannotate", [block_or_loop], [ann_key])

    # Reductions

    def decompose_reduction(self, block: BlockRV | str, loop: LoopRV) -> BlockRV:
        """Initialise a reduction in a separate block directly before a loop; returns the new block."""
        block, reduction_block = self._block(block)
        place = self._loop(loop)
        made = self._step(lambda: reduction.decompose_reduction(self._state, reduction_block, place))
        result = self._new_block(made)
        self._record("DecomposeReduction", [block, loop], [], [result])
        return result

    def rfactor(self, loop: LoopRV, factor_axis: int) -> BlockRV:
        """Reduce over all but one loop first, into a buffer with a dimension for that loop, then over that; the
        first of the two blocks."""
        reference = self._loop(loop)
        result = self._new_block(self._step(lambda: rfactor.rfactor(self._state, reference, factor_axis)))
        self._record("RFactor", [loop], [factor_axis], [result])
        return result

    # Samples

    def sample_categorical(
        self, candidates: Sequence[int], probs: Sequence[float], decision: int | None = None
    ) -> ExprRV:
        """One of the candidates, drawn with these probabilities; ``decision`` is the number of the one to take."""
        values = [self._number(one) for one in candidates]
        weights = [float(one) for one in probs]
        chosen = sampling.sample_categorical(self._random, values, weights, decision)
        made = self._new_number(values[chosen])
        self._record("SampleCategorical", [], [values, weights], [made], chosen)
        return made

    def sample_perfect_tile(
        self,
        loop: LoopRV,
        n: int,
        max_innermost_factor: int = 16,
        decision: Sequence[int] | None = None,
    ) -> list[ExprRV]:
        """Factors whose product is the extent of a loop; ``decision`` are the factors to take."""
        reference = self._loop(loop)
        chosen = self._step(
            lambda: sampling.sample_perfect_tile(self._random, reference, n, max_innermost_factor, decision)
        )
        made = [self._new_number(one) for one in chosen]
        self._record("SamplePerfectTile", [loop], [n, max_innermost_factor], made, chosen)
        return list(made)

    def enter_postproc(self) -> None:
        """Mark the place in the trace after which steps only finish what is decided."""
        self._record("EnterPostproc", [])


def _require_unit_loops(primitive: str, preserve_unit_iters: bool) -> None:
    """Refuse to leave loops of one iteration out of what blocks are bound to, which TVM's later versions can."""
    if not preserve_unit_iters:
        raise ScheduleError(
            f"{primitive}: loops of one iteration keep their variables (preserve_unit_iters=True)",
            span=user_span(),
        )


def _root_of(reference: StmtSRef) -> StmtSRef:
    while reference.parent is not None:
        reference = reference.parent
    return reference
