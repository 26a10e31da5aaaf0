"""Statements of a script."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any

from tilewright.ir import operators
from tilewright.ir.buffer import Buffer, BufferRegion
from tilewright.ir.expr import BufferLoad, Call, IterVar, Load, PrimExpr, Range, Var, is_const
from tilewright.ir.type import PointerType, PrimType
from tilewright.support.errors import ParseError, TilewrightError
from tilewright.tir.analysis.block_access_region import get_block_access_region
from tilewright.tir.script import parser_calls
from tilewright.tir.script.parser_declarations import BlockFrame, DeclarationParser
from tilewright.tir.script.parser_expressions import statements_of
from tilewright.tir.stmt import (
    Allocate,
    AssertStmt,
    AttrStmt,
    Block,
    BlockRealize,
    BufferRealize,
    BufferStore,
    Evaluate,
    For,
    ForKind,
    IfThenElse,
    LetStmt,
    Prefetch,
    SeqStmt,
    Stmt,
    Store,
    While,
)
from tilewright.tir.storage_rank import thread_attribute

_LOOPS = {
    "serial": ForKind.SERIAL,
    "parallel": ForKind.PARALLEL,
    "vectorized": ForKind.VECTORIZED,
    "unroll": ForKind.UNROLLED,
    "thread_binding": ForKind.THREAD_BINDING,
}

Wrap = Callable[[Stmt], Stmt]
"""Puts a statement around its body."""


class StatementParser(DeclarationParser):
    """Reads statements."""

    def statements(self, body: Sequence[ast.stmt]) -> Stmt:
        """Statements one after another; one that gives something to its body takes all that follow it."""
        done: list[Stmt] = []
        rest = statements_of(body)
        for position, node in enumerate(rest):
            try:
                made = self.statement(node)
                if callable(made):
                    if position + 1 == len(rest):
                        raise self.error(node, "nothing follows this statement, which is for what follows it")
                    done.append(made(self.statements(rest[position + 1 :])))
                    break
            except ParseError:
                raise
            except TilewrightError as error:
                raise self.error(node, error.message) from None
            if made is not None:
                done.append(made)
        if not done:
            return Evaluate(0)
        return done[0] if len(done) == 1 else SeqStmt(done, done[0].span)

    def statement(self, node: ast.stmt) -> Stmt | Wrap | None:
        """One statement; a ``Wrap`` where it needs a body; None for a declaration."""
        handler = self._statements.get(type(node))
        if handler is None:
            raise self.error(node, f"{type(node).__name__} cannot be used in a script")
        return handler(self, node)

    def nested(self, body: Sequence[ast.stmt]) -> Stmt:
        """Statements in a new scope."""
        with self.scope():
            return self.statements(body)

    # Assignments

    def _assign(self, node: ast.Assign) -> Stmt | Wrap | None:
        if len(node.targets) != 1:
            raise self.error(node, "only one target can be assigned at a time")
        target = node.targets[0]
        if isinstance(target, ast.Subscript):
            return self._store_element(node, target)
        names = list(target.elts) if isinstance(target, (ast.Tuple, ast.List)) else [target]
        if isinstance(node.value, ast.Call):
            if self.declaration(node.value, names):
                return None
            if self.function_name(node.value) == "allocate":
                return self._allocate(node.value, self.single_name(node, names))
        name = self.single_name(node, names)
        value = self.value(node.value)
        if isinstance(value, (PrimExpr, BufferRegion)):
            return self._let(node, name, None, self.as_expr(node.value, value))
        if isinstance(value, (Buffer, IterVar, list, tuple, int, float, str)):
            self.define(name, value)
            return None
        raise self.error(node, "this value cannot be given a name in a script")

    def _annotated(self, node: ast.AnnAssign) -> Wrap:
        if not isinstance(node.target, ast.Name) or node.value is None:
            raise self.error(node, "a variable is written name: type = value")
        kind = self.value(node.annotation)
        return self._let(node, node.target.id, kind, self.expr(node.value))

    def _let(self, node: ast.AST, name: str, kind: Any, value: PrimExpr) -> Wrap:
        known = self.lookup(name) if kind is None else None
        variable = known if isinstance(known, Var) and known.dtype is value.dtype else None
        if variable is None or variable in self.loop_ranges:
            variable = parser_calls.make_variable(name, PrimType(value.dtype) if kind is None else kind)
        if variable.dtype is not value.dtype:
            value = operators.cast(variable.dtype, value)
        self.define(name, variable)
        return lambda body: LetStmt(variable, value, body, self.source.span(node))

    def _store_element(self, node: ast.AST, target: ast.Subscript, value: PrimExpr | None = None) -> Stmt:
        stored = self.expr(node.value) if value is None else value  # type: ignore[attr-defined]
        place = self.value(target)
        span = self.source.span(node)
        if isinstance(place, BufferRegion):
            place = self.as_expr(target, place)
        if isinstance(place, BufferLoad):
            stored = self._of_type(stored, place.dtype)
            if stored.dtype.lanes not in (1, place.dtype.lanes):
                raise self.error(
                    node, f"a vector of {stored.dtype.lanes} is assigned to {place.dtype.lanes} elements"
                )
            return BufferStore(place.buffer, stored, place.indices, span)
        if isinstance(place, Load):
            stored = self._of_type(stored, place.dtype)
            return Store(place.buffer_var, stored, place.index, None, span)
        raise self.error(target, "only elements of buffers and of memory can be assigned")

    def _of_type(self, value: PrimExpr, dtype: Any) -> PrimExpr:
        """A constant in the type of what it is stored to; anything else as it is."""
        return operators.cast(dtype, value) if is_literal(value) and value.dtype is not dtype else value

    def _augmented(self, node: ast.AugAssign) -> Stmt:
        if not isinstance(node.target, ast.Subscript):
            raise self.error(node, "only elements of buffers can be updated in place")
        combined = ast.BinOp(left=node.target, op=node.op, right=node.value)
        ast.copy_location(combined, node)
        return self._store_element(node, node.target, self.expr(combined))

    # Calls as statements

    def _expression(self, node: ast.Expr) -> Stmt | Wrap | None:
        if not isinstance(node.value, ast.Call):
            raise self.error(node, "an expression statement has no effect; use T.evaluate")
        call = node.value
        if self.declaration(call, ()):
            return None
        name = self.function_name(call)
        scoped = self._scoped.get(name or "")
        if scoped is not None:
            return scoped(self, call, None)
        plain = self._effects.get(name or "")
        if plain is not None:
            return plain(self, call)
        value = self.expr(call)
        if not isinstance(value, Call):
            raise self.error(node, "this computes a value and has no effect; use T.evaluate")
        return Evaluate(value, self.source.span(node))

    def _evaluate(self, call: ast.Call) -> Stmt:
        given = self.arguments(call, "value")
        return Evaluate(self.expr(self.required(call, given, "value")), self.source.span(call))

    def _store(self, call: ast.Call) -> Stmt:
        given = self.arguments(call, "buffer_var", "index", "value", "predicate")
        target = self.value(self.required(call, given, "buffer_var"))
        data = target.data if isinstance(target, Buffer) else target
        if not isinstance(data, Var):
            raise self.error(call, "T.store writes through a pointer variable")
        index = self.expr(self.required(call, given, "index"))
        value = self.expr(self.required(call, given, "value"))
        predicate = self.expr(given["predicate"]) if "predicate" in given else None
        if predicate is not None and is_const(predicate, 1):
            predicate = None
        return Store(data, value, index, predicate, self.source.span(call))

    def _prefetch(self, call: ast.Call) -> Stmt:
        if any(keyword.arg == "dtype" for keyword in call.keywords):
            return Evaluate(self.expr(call), self.source.span(call))
        region = self.region(self.required(call, self.arguments(call, "region"), "region"))
        return Prefetch(region.buffer, region.region, self.source.span(call))

    # Statements with a body

    def _allocate(self, call: ast.Call, name: str | None) -> Wrap:
        given = self.arguments(call, "extents", "dtype", "scope", "condition", "annotations", "type")
        if name is None:
            raise self.error(call, "an allocation needs a name: name = T.allocate(...)")
        extents = self.exprs(self.required(call, given, "extents"))
        dtype = self.string(self.required(call, given, "dtype"))
        scope = self.string(given["scope"]) if "scope" in given else ""
        condition = self.expr(given["condition"]) if "condition" in given else operators.const(True)
        annotations = self.literal(given["annotations"]) if "annotations" in given else None
        kind = parser_calls.as_type(self.value(given["type"])) if "type" in given else None
        variable = Var(name, PointerType(PrimType(dtype), scope) if kind is None else kind)
        self.define(name, variable)
        span = self.source.span(call)
        return lambda body: Allocate(variable, dtype, extents, condition, body, annotations, span)

    def _attr(self, call: ast.Call, name: str | None) -> Wrap:
        given = self.arguments(call, "node", "attr_key", "value")
        about = self.required(call, given, "node")
        key = self.string(self.required(call, given, "attr_key"))
        value = self.expr(self.required(call, given, "value"))
        span = self.source.span(call)
        if all(self._is_known(name) for name in ast.walk(about)):
            subject = self.value(about)
            return lambda body: AttrStmt(subject, key, value, body, span)
        # An attribute may be about a variable that is defined in its body, which is read before this is called.
        return lambda body: AttrStmt(self.value_afterwards(about), key, value, body, span)

    def _is_known(self, node: ast.AST) -> bool:
        return (
            not isinstance(node, ast.Name) or self.lookup(node.id) is not None or node.id in self.environment
        )

    def value_afterwards(self, node: ast.AST) -> Any:
        """A value in which names may stand that were defined only after it; the loop of an axis may be gone."""
        with self.scope():
            for name in ast.walk(node):
                if isinstance(name, ast.Name) and not self._is_known(name):
                    if name.id in self.last_defined:
                        self.define(name.id, self.last_defined[name.id])
                    elif self.function_name(node) == "iter_var":
                        self.define(name.id, Var(name.id, "int32"))
            return self.value(node)

    def _launch_thread(self, call: ast.Call, name: str | None) -> Wrap:
        given = self.arguments(call, "env_var", "extent")
        axis = self.value(self.required(call, given, "env_var"))
        if not isinstance(axis, IterVar):
            raise self.error(call, "T.launch_thread takes a name that T.env_thread gave")
        extent = self.expr(self.required(call, given, "extent"))
        key = thread_attribute(axis.thread_tag)
        return lambda body: AttrStmt(axis, key, extent, body, self.source.span(call))

    def _realize(self, call: ast.Call, name: str | None) -> Wrap:
        given = self.arguments(call, "region", "scope", "condition")
        region = self.region(self.required(call, given, "region"))
        condition = self.expr(given["condition"]) if "condition" in given else operators.const(True)
        scope = self.string(given["scope"]) if "scope" in given else ""
        buffer = region.buffer
        if scope and buffer.data.storage_scope != scope:
            raise self.error(
                call, f"buffer {buffer.name} is declared in {buffer.data.storage_scope}, not in {scope}"
            )
        return lambda body: BufferRealize(buffer, region.region, condition, body, self.source.span(call))

    def _let_scope(self, call: ast.Call, name: str | None) -> Wrap:
        given = self.arguments(call, "var", "value", "type")
        target = self.required(call, given, "var")
        if not isinstance(target, ast.Name):
            raise self.error(call, "T.let takes the name of a variable")
        kind = self.value(given["type"]) if "type" in given else None
        return self._let(call, target.id, kind, self.expr(self.required(call, given, "value")))

    def _assert_scope(self, call: ast.Call, name: str | None) -> Wrap:
        given = self.arguments(call, "condition", "message")
        condition = self.expr(self.required(call, given, "condition"))
        message = self.expr(self.required(call, given, "message"))
        return lambda body: AssertStmt(condition, message, body, self.source.span(call))

    _scoped: dict[str, Callable[[Any, ast.Call, str | None], Wrap]] = {
        "allocate": _allocate,
        "attr": _attr,
        "launch_thread": _launch_thread,
        "realize": _realize,
        "let": _let_scope,
        "Assert": _assert_scope,
    }
    _effects: dict[str, Callable[[Any, ast.Call], Stmt]] = {
        "evaluate": _evaluate,
        "store": _store,
        "prefetch": _prefetch,
    }

    def _with(self, node: ast.With) -> Stmt:
        if len(node.items) != 1:
            # Several items nest, the first outermost.
            inner = ast.With(items=node.items[1:], body=node.body)
            ast.copy_location(inner, node)
            node = ast.copy_location(ast.With(items=node.items[:1], body=[inner]), node)
        item = node.items[0]
        call = item.context_expr
        name = self.function_name(call)
        if not isinstance(call, ast.Call) or name is None:
            raise self.error(
                call, "a with statement takes T.block, T.init, T.allocate, T.attr, T.let, T.realize ..."
            )
        if name == "block":
            return self._block(node, call, item.optional_vars)
        if name == "init":
            raise self.error(call, "T.init must be at the beginning of a block")
        scoped = self._scoped.get(name)
        if scoped is None:
            raise self.error(call, f"T.{name} cannot be used in a with statement")
        target = item.optional_vars
        if target is not None and not isinstance(target, ast.Name):
            raise self.error(target, "a name is needed here")
        with self.scope():
            wrap = scoped(self, call, target.id if target is not None else None)
            return wrap(self.statements(node.body))

    # Loops and conditions

    def _for(self, node: ast.For) -> Stmt:
        call = node.iter
        targets = list(node.target.elts) if isinstance(node.target, (ast.Tuple, ast.List)) else [node.target]
        names = [target.id for target in targets if isinstance(target, ast.Name)]
        if len(names) != len(targets):
            raise self.error(node.target, "a loop needs names for its variables")
        if node.orelse:
            raise self.error(node, "a loop has no else in a script")
        if not isinstance(call, ast.Call):
            raise self.error(call, "a loop runs over range, T.serial, T.parallel, T.grid, ...")
        is_range = isinstance(call.func, ast.Name) and call.func.id == "range"
        kind = "serial" if is_range else self.function_name(call)
        if kind == "grid":
            return self._grid(node, call, names)
        if kind not in _LOOPS:
            raise self.error(
                call, "a loop runs over range, T.serial, T.parallel, T.vectorized, T.unroll, T.grid, ..."
            )
        if len(names) != 1:
            raise self.error(node.target, "this loop has one variable")
        keywords = self.keywords(call)
        bounds = list(call.args)
        if kind == "thread_binding" and len(bounds) == 3:
            keywords.setdefault("thread", bounds.pop())
        bounds += [keywords.pop(name) for name in ("begin", "end") if name in keywords]
        if len(bounds) not in (1, 2):
            raise self.error(call, "a loop takes its extent, or its begin and end")
        domain = Range(self.expr(bounds[0])) if len(bounds) == 1 else self.range_between(bounds[0], bounds[1])
        annotations = self.literal(keywords.pop("annotations")) if "annotations" in keywords else None
        thread = self._loop_thread(keywords.pop("thread")) if "thread" in keywords else None
        if (thread is not None) != (kind == "thread_binding") or keywords:
            wrong = f"; there is no argument {next(iter(keywords))}" if keywords else ""
            raise self.error(call, f"only T.thread_binding takes thread=...{wrong}")
        with self.scope():
            variable = self._loop_variable(targets[0], names[0], domain)
            body = self.statements(node.body)
        return For(
            variable,
            domain.min,
            domain.extent,
            _LOOPS[kind],
            body,
            thread,
            annotations,
            self.source.span(call),
        )

    def _loop_thread(self, node: ast.expr) -> IterVar:
        value = self.value(node)
        if isinstance(value, IterVar):
            return value
        tag = self.string(node)
        return IterVar(None, Var(tag, "int32"), IterVar.ThreadIndex, tag)

    def _loop_variable(self, node: ast.AST, name: str, domain: Range) -> Var:
        variable = Var(name, domain.extent.dtype, self.source.span(node))
        self.loop_ranges[variable] = domain
        self.define(name, variable)
        return variable

    def _grid(self, node: ast.For, call: ast.Call, names: Sequence[str]) -> Stmt:
        domains = [Range(self.expr(argument)) for argument in call.args]
        if len(domains) != len(names):
            raise self.error(
                node, f"a grid of {len(domains)} loops needs {len(domains)} names, not {len(names)}"
            )
        with self.scope():
            variables = [
                self._loop_variable(node.target, name, domain)
                for name, domain in zip(names, domains, strict=True)
            ]
            body = self.statements(node.body)
        for variable, domain in zip(reversed(variables), reversed(domains), strict=True):
            body = For(variable, domain.min, domain.extent, ForKind.SERIAL, body, span=self.source.span(node))
        return body

    def _while(self, node: ast.While) -> Stmt:
        if node.orelse:
            raise self.error(node, "a loop has no else in a script")
        return While(self.expr(node.test), self.nested(node.body), self.source.span(node))

    def _if(self, node: ast.If) -> Stmt:
        condition = self.expr(node.test)
        then_case = self.nested(node.body)
        else_case = self.nested(node.orelse) if node.orelse else None
        return IfThenElse(condition, then_case, else_case, self.source.span(node))

    def _assert(self, node: ast.Assert) -> Wrap:
        condition = self.expr(node.test)
        message = self.expr(node.msg) if node.msg is not None else operators.as_expr("assertion failed")
        return lambda body: AssertStmt(condition, message, body, self.source.span(node))

    # Blocks

    def _block(self, node: ast.With, call: ast.Call, target: ast.expr | None) -> Stmt:
        """``with T.block("name"):``; the older form gives the axes as ``T.block([16, 16], "name") as [vi, vj]``."""
        if self.keywords(call):
            raise self.error(call, "T.block takes a name")
        name, domains = "", []
        for argument in call.args:
            if isinstance(argument, (ast.List, ast.Tuple)):
                domains = argument.elts
            else:
                name = self.string(argument)
        outer, self.block = self.block, BlockFrame()
        self.has_blocks = True
        try:
            with self.scope():
                self._axes_of_head(call, domains, target)
                body = self._block_body(node.body)
                frame = self.block
        finally:
            self.block = outer
        return self._finish_block(node, name, frame, body)

    def _axes_of_head(self, call: ast.Call, domains: Sequence[ast.expr], target: ast.expr | None) -> None:
        names = list(target.elts) if isinstance(target, (ast.List, ast.Tuple)) else [target] if target else []
        if len(names) != len(domains):
            raise self.error(call, f"{len(domains)} axes need {len(domains)} names, not {len(names)}")
        for name, domain in zip(names, domains, strict=True):
            assert name is not None
            value = self.value(domain)
            bounds, kind = value if isinstance(value, tuple) else (None, IterVar.DataPar)
            if bounds is None:
                bounds = self.axis_domain(domain)
            self.add_axis(domain, self.single_name(name, [name]), bounds, None, kind)

    def _block_body(self, body: Sequence[ast.stmt]) -> Stmt:
        """The statements of a block, of which one may be its initialisation."""
        kept: list[ast.stmt] = []
        for stmt in statements_of(body):
            is_init = isinstance(stmt, ast.With) and self.function_name(stmt.items[0].context_expr) == "init"
            if is_init and self.block.init is not None:
                raise self.error(stmt, "the block has been initialised already")
            if is_init:
                assert isinstance(stmt, ast.With)
                # What is declared before the initialisation is in force within it.
                if any(self.statement(earlier) is not None for earlier in kept):
                    raise self.error(stmt, "T.init must come before the statements of its block")
                kept = []
                self.block.init = self.nested(stmt.body)
            else:
                kept.append(stmt)
        return self.statements(kept)

    def _finish_block(self, node: ast.With, name: str, frame: BlockFrame, body: Stmt) -> Stmt:
        loops: list[tuple[Var, Range]] = []
        values: list[PrimExpr] = []
        bound = [value for value in frame.values if value is not None]
        for axis, value in zip(frame.axes, frame.values, strict=True):
            if value is not None:
                values.append(value)
                continue
            if bound:
                raise self.error(node, f"axis {axis.var.name} of block {name} has no value")
            assert axis.dom is not None
            variable = Var(f"i{len(loops)}", axis.var.dtype)
            loops.append((variable, axis.dom))
            values.append(variable)
        span = self.source.span(node)
        block = Block(
            frame.axes,
            frame.reads or (),
            frame.writes or (),
            name,
            body,
            frame.init,
            frame.allocated,
            frame.matched,
            frame.annotations,
            span,
        )
        block = self.complete_regions(block, frame)
        predicate = operators.const(True) if frame.predicate is None else frame.predicate
        made: Stmt = BlockRealize(values, predicate, block, span)
        # Axes without values get their own loops around the block.
        for variable, domain in reversed(loops):
            made = For(variable, domain.min, domain.extent, ForKind.SERIAL, made)
        return made

    def complete_regions(self, block: Block, frame: BlockFrame) -> Block:
        """The block with the regions that the script leaves unsaid, as its accesses show them."""
        if frame.reads is not None and frame.writes is not None:
            return block
        known = [value for scope in self.scopes for value in scope.values() if isinstance(value, Buffer)]
        # What it allocates itself is nobody else's.
        pointers = {buffer.data: buffer for buffer in known if buffer not in frame.allocated}
        reads, writes, opaque = get_block_access_region(block, pointers)
        return block.replace(
            reads=block.reads if frame.reads is not None else (*reads, *opaque),
            writes=block.writes if frame.writes is not None else (*writes, *opaque),
        )

    _statements: dict[type[ast.stmt], Callable[[Any, Any], Stmt | Wrap | None]] = {
        ast.Assign: _assign,
        ast.AnnAssign: _annotated,
        ast.AugAssign: _augmented,
        ast.Expr: _expression,
        ast.With: _with,
        ast.For: _for,
        ast.While: _while,
        ast.If: _if,
        ast.Assert: _assert,
    }


def is_literal(value: PrimExpr) -> bool:
    """True for a constant, whose type the program does not insist on."""
    return value.node_kind in ("int_imm", "float_imm")
