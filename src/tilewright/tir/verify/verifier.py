"""The traversal of the verifier: it tracks scopes, and runs the checks of each node.

Scoping: a variable is used only where a loop, a let, an allocation, a block, a thread binding or a parameter defines
it, and is not redefined inside its own scope. Consecutive loops may share a variable. A buffer is used only where it
has memory: as a parameter, inside the statement that realizes or allocates it, or through a data pointer that is in
scope.

Time is linear in the size of the program; shared expressions are checked once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from tilewright.ir.buffer import Buffer
from tilewright.ir.expr import CommReducer, IterVar, Let, Reduce, Select, Var
from tilewright.ir.functor import Functor
from tilewright.ir.global_var import GlobalVar
from tilewright.ir.module import IRModule
from tilewright.support.errors import VerifyError
from tilewright.support.recursion import recursion_room
from tilewright.tir import stmt as nodes
from tilewright.tir.function import PrimFunc
from tilewright.tir.script.survey import Survey
from tilewright.tir.verify import expression_checks, statement_checks
from tilewright.tir.verify.reads import verify_speculated_reads
from tilewright.tir.verify.registry import CHECKS
from tilewright.tir.verify.report import show

CHECK_MODULES = (expression_checks, statement_checks)
"""The modules whose checks are registered."""

_FLAT_FORBIDS = (
    *("buffer_load", "buffer_store", "buffer_realize", "producer_load", "producer_store", "producer_realize"),
    *("block", "block_realize", "prefetch", "reduce"),
)


_BINDING_ATTRIBUTES = ("thread_extent", "virtual_thread", "coproc_scope", "pipeline_exec_scope")
"""Attributes that give the variable of the axis they are about a value."""


class Verifier(Functor):
    """Verifies one function. ``defined`` and ``backed`` hold the variables and buffers in scope."""

    def __init__(self, func: PrimFunc, *, flat: bool, allow_free: bool, module: IRModule | None) -> None:
        self.func = func
        self.flat = flat
        self.allow_free = allow_free
        self.module = module
        self.defined: set[Var] = set()
        self.backed: set[Buffer] = set()
        self.typed: set[int] = set()
        self.path: list[Any] = []
        self.vector_choices: list[Select] = []
        self._bound_somewhere: Survey | None = None

    # Reporting

    def fail(self, message: str, rule: str) -> VerifyError:
        """The error, with the lines around the statement that is being looked at."""
        rule = rule.replace("_", " ")
        span = next((stmt.span for stmt in reversed(self.path) if getattr(stmt, "span", None)), None)
        return VerifyError(f"{message} (rule: {rule})\n{show(self.func, self.path)}", span=span)

    def run_checks(self, node: Any) -> None:
        """The checks of a node's kind."""
        if self.flat and node.node_kind in _FLAT_FORBIDS:
            raise self.fail(f"{type(node).__name__} remains in a program of flat form", "flat_form")
        for check in CHECKS.get(node.node_kind, ()):
            message = check(node)
            if message is not None:
                raise self.fail(message, check.__name__)

    # Scopes

    @contextmanager
    def defining(self, *variables: Var) -> Iterator[None]:
        """These variables are in scope within the block."""
        for variable in variables:
            if variable in self.defined:
                raise self.fail(
                    f"variable {variable.name} is defined again inside its own scope",
                    "variables_are_defined_once",
                )
            self.defined.add(variable)
        yield
        self.defined.difference_update(variables)

    @contextmanager
    def also_defining(self, variables: Sequence[Var], buffers: Sequence[Buffer] = ()) -> Iterator[None]:
        """These are in scope within the block, whether or not they were before."""
        added = [variable for variable in dict.fromkeys(variables) if variable not in self.defined]
        backed = [buffer for buffer in buffers if buffer not in self.backed]
        self.defined.update(added)
        self.backed.update(backed)
        yield
        self.defined.difference_update(added)
        self.backed.difference_update(backed)

    def _is_bound_somewhere(self, node: Any) -> bool:
        """True if the function defines the variable or buffer, only not here."""
        if self._bound_somewhere is None:
            self._bound_somewhere = Survey(self.func.body)
        survey = self._bound_somewhere
        if isinstance(node, Buffer):
            return node in survey.declared or node in survey.realized
        threads = {axis.var for axis in survey.threads}
        pointers = {buffer.data for buffer in (*survey.declared, *survey.realized)}
        return node in survey.defined or node in threads or node in pointers

    def use_variable(self, variable: Var) -> None:
        """A variable must be in scope."""
        if variable in self.defined or (self.allow_free and not self._is_bound_somewhere(variable)):
            return
        raise self.fail(
            f"variable {variable.name} is used where it is not defined", "variables_are_defined_before_use"
        )

    def use_buffer(self, buffer: Buffer) -> None:
        """A buffer must have memory."""
        if buffer in self.backed or buffer.data in self.defined:
            return
        if (
            self.allow_free
            and not self._is_bound_somewhere(buffer)
            and not self._is_bound_somewhere(buffer.data)
        ):
            return
        raise self.fail(f"buffer {buffer.name} is used where it has no memory", "buffers_have_memory")

    # Expressions

    def expression(self, root: Any) -> None:
        """Every node of an expression. Iterative.

        A let brings its variable into scope for the rest of the expression.
        """
        stack = [root]
        seen: set[int] = set()
        local: list[Var] = []
        while stack:
            node = stack.pop()
            if id(node) in seen:
                continue
            seen.add(id(node))
            if isinstance(node, Var):
                self.use_variable(node)
                continue
            if id(node) not in self.typed:
                self.run_checks(node)
                self.typed.add(id(node))
                if isinstance(node, Select) and node.condition.dtype.lanes > 1:
                    self.vector_choices.append(node)
            self._look_beside_children(node, local)
            stack.extend(node.children())
        self.defined.difference_update(local)

    def _look_beside_children(self, node: Any, local: list[Var]) -> None:
        """Visits what a node refers to or defines besides its children."""
        buffer = getattr(node, "buffer", None)
        if isinstance(buffer, Buffer):
            self.use_buffer(buffer)
        elif isinstance(node, Let):
            self._define_locally([node.var], local)
        elif isinstance(node, Reduce):
            self._define_locally([axis.var for axis in node.axis], local)
        elif self.module is not None and isinstance(getattr(node, "op", None), GlobalVar):
            if node.op.name_hint not in self.module:
                raise self.fail(
                    f"{node.op.name_hint} is not a function of the module", "called_functions_exist"
                )

    def _define_locally(self, variables: Sequence[Var], local: list[Var]) -> None:
        added = [variable for variable in variables if variable not in self.defined]
        self.defined.update(added)
        local.extend(added)

    # Statements

    def visit(self, node: Any) -> Any:
        """A statement, with its checks."""
        self.path.append(node)
        self.run_checks(node)
        handler = self._handlers.get(type(node)) or self._handler(type(node))
        handler(self, node)
        self.path.pop()

    def visit_default(self, node: Any) -> None:
        """Checks expressions; statements follow."""
        buffer = getattr(node, "buffer", None)
        if isinstance(buffer, Buffer):
            self.use_buffer(buffer)
        for child in node.children():
            if isinstance(child, nodes.Stmt):
                self.visit(child)
            else:
                self.expression(child)

    def visit_let_stmt(self, node: nodes.LetStmt) -> None:
        self.expression(node.value)
        with self.defining(node.var):
            self.visit(node.body)

    def visit_for(self, node: nodes.For) -> None:
        self.expression(node.min)
        self.expression(node.extent)
        thread = [node.thread_binding.var] if node.thread_binding is not None else []
        with self.defining(node.loop_var), self.also_defining(thread):
            self.visit(node.body)

    def visit_allocate(self, node: nodes.Allocate) -> None:
        for extent in node.extents:
            self.expression(extent)
        self.expression(node.condition)
        with self.defining(node.buffer_var):
            self.visit(node.body)

    def visit_buffer_realize(self, node: nodes.BufferRealize) -> None:
        for bounds in node.bounds:
            self.expression(bounds)
        self.expression(node.condition)
        with self.also_defining([node.buffer.data], [node.buffer]):
            self.visit(node.body)

    def visit_producer_realize(self, node: nodes.ProducerRealize) -> None:
        for bounds in node.bounds:
            self.expression(bounds)
        self.expression(node.condition)
        self.visit(node.body)

    def visit_attr_stmt(self, node: nodes.AttrStmt) -> None:
        self.expression(node.value)
        if isinstance(node.node, IterVar) and node.attr_key in _BINDING_ATTRIBUTES:
            # The same thread index may be bound again by a statement inside; it is the same index.
            with self.also_defining([node.node.var]):
                self.visit(node.body)
        elif node.attr_key == "buffer_bind_scope" and isinstance(node.node[0], Buffer):
            buffer = node.node[0]
            with self.also_defining(list(Survey(buffer).used), [buffer]):
                self.visit(node.body)
        elif isinstance(node.node, CommReducer):
            self._reducer(node.node)
            self.visit(node.body)
        else:
            # An attribute may be about a variable that is defined further in.
            self.visit(node.body)

    def _reducer(self, reducer: CommReducer) -> None:
        with self.also_defining([*reducer.lhs, *reducer.rhs]):
            for value in reducer.result:
                self.expression(value)

    def visit_block_realize(self, node: nodes.BlockRealize) -> None:
        for value in node.iter_values:
            self.expression(value)
        self.expression(node.predicate)
        self.visit(node.block)

    def visit_block(self, node: nodes.Block) -> None:
        for axis in node.iter_vars:
            if axis.dom is not None:
                self.expression(axis.dom)
        with self.defining(*[axis.var for axis in node.iter_vars]):
            matched = [match.buffer for match in node.match_buffers]
            given = [*node.alloc_buffers, *matched]
            variables = [buffer.data for buffer in given]
            for buffer in matched:
                variables.extend(Survey(buffer).used)
            with self.also_defining(variables, given):
                for region in (*node.reads, *node.writes, *[match.source for match in node.match_buffers]):
                    self.use_buffer(region.buffer)
                    for bounds in region.region:
                        self.expression(bounds)
                if node.init is not None:
                    self.visit(node.init)
                self.visit(node.body)

    # The function

    def function(self) -> None:
        """Verify the whole."""
        func = self.func
        if len(set(func.params)) != len(func.params):
            raise self.fail("a parameter appears twice", "parameters_are_distinct")
        for parameter, buffer in func.buffer_map.items():
            if parameter not in func.params:
                raise self.fail(
                    f"{parameter.name} of the buffer map is not a parameter", "buffers_belong_to_parameters"
                )
            if not parameter.dtype.is_handle:
                raise self.fail(
                    f"parameter {parameter.name} of {parameter.dtype} is bound to buffer {buffer.name}",
                    "buffers_belong_to_parameters",
                )
        buffers = list(func.buffer_map.values())
        variables = [*func.params, *Survey(buffers).used]
        with self.also_defining(variables, buffers):
            self.visit(func.body)


def verify(func_or_module: PrimFunc | IRModule, *, flat: bool = False, allow_free: bool = False) -> None:
    """Raise ``VerifyError`` if the program breaks a rule of the IR.

    ``flat`` says that the program claims flat form: no buffers, tensors or blocks remain in its body.
    ``allow_free`` lets variables and buffers be used that the function defines nowhere.
    """
    if isinstance(func_or_module, IRModule):
        for func in func_or_module.functions.values():
            if isinstance(func, PrimFunc):
                _verify_function(func, flat, allow_free, func_or_module)
    else:
        _verify_function(func_or_module, flat, allow_free, None)


def _verify_function(func: PrimFunc, flat: bool, allow_free: bool, module: IRModule | None) -> None:
    with recursion_room():
        verifier = Verifier(func, flat=flat, allow_free=allow_free, module=module)
        verifier.function()
        verify_speculated_reads(func, verifier.vector_choices)


def verify_module(module: IRModule) -> None:
    """Every loop-level function of a module, as between passes."""
    verify(module, allow_free=True)


def verify_piece(func: PrimFunc, module: IRModule) -> None:
    """What runs between passes: a piece of a program may leave variables to its surroundings."""
    _verify_function(func, False, True, module)
