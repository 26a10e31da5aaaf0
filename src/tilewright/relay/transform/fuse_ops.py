"""FuseOps: groups operators into functions that become one kernel each.

A node may join the group of its nearest post-dominator, the first node that all paths from it to the result go through,
if every node on the way allows it:

1. a heavy operator (convolution, matrix product) absorbs the elementwise and broadcast operators after it; where it
   cannot absorb all of them up to a residual, it ends at the narrowest tensor on the way, which is the one to store;
2. elementwise, broadcast and injective operators join injective ones, and reductions and global pools that follow;
3. injective operators join the tuple that they end in.

A group becomes a function with the attribute ``Primitive``, and its uses become calls. Small constants move in; other
inputs become parameters. A group has at most ``relay.FuseOps.max_depth`` operators.

With ``views``, a concatenation whose operands are contiguous in the result is not fused if the executor can write them
there directly, where fusion would only have copied them.
"""

from __future__ import annotations

import math
import typing
from dataclasses import dataclass, field

from tilewright.ir.adt import Constructor
from tilewright.ir.base import RelayExpr
from tilewright.ir.expr import Any, IntImm, SizeVar
from tilewright.ir.global_var import GlobalVar
from tilewright.ir.module import IRModule
from tilewright.ir.op import Op
from tilewright.ir.tensor_type import TensorType, is_dynamic
from tilewright.ir.transform import PassContext
from tilewright.ir.type import TupleType, Type
from tilewright.relay.adt import Match
from tilewright.relay.analysis.contiguity import LAUNCH_BYTES, is_contiguous_join
from tilewright.relay.analysis.program_shapes import ProgramShapes
from tilewright.relay.analysis.symbolic_types import SAME_SHAPES, tensor_types
from tilewright.relay.expr import (
    Call,
    Constant,
    If,
    Let,
    RefCreate,
    RefRead,
    RefWrite,
    Tuple,
    TupleGetItem,
    Var,
)
from tilewright.relay.expr_functor import ExprMutator, ExprVisitor
from tilewright.relay.function import Function
from tilewright.relay.op.definition import OpPattern
from tilewright.relay.op.shapes import dims
from tilewright.relay.transform.lib.function_pass import FunctionPass
from tilewright.support.union_find import UnionFind

ELEMWISE, BROADCAST, INJECTIVE = OpPattern.ELEMWISE, OpPattern.BROADCAST, OpPattern.INJECTIVE
COMM_REDUCE, HEAVY = OpPattern.COMM_REDUCE, OpPattern.OUT_ELEMWISE_FUSABLE
TUPLE, OPAQUE = OpPattern.TUPLE, OpPattern.OPAQUE
GLOBAL_POOLS = ("nn.global_avg_pool2d", "nn.global_max_pool2d")
"""Operators of kind ``HEAVY`` that read every element once, so that what computes the elements may join them."""


@dataclass(eq=False)
class _Node(UnionFind):
    """An expression in the graph, with those that use it and the kind of each use."""

    expr: RelayExpr
    index: int
    kind: OpPattern
    is_result: bool = False
    """Used by something that is not an operator: it must exist outside groups."""
    users: list[tuple[_Node, OpPattern]] = field(default_factory=list)
    # The post-dominator tree.
    dominator: _Node | None = None
    depth: int = 0
    path_kind: OpPattern = OPAQUE
    """The most restrictive kind of use on the way to the dominator."""
    # The group, of which the representative knows these.
    group_kind: OpPattern = OPAQUE
    group_root: _Node | None = None
    heavy: bool = False
    size: int = 1


class _Graph(ExprVisitor):
    """The nodes in the order in which they can be computed, and how they use one another."""

    def __init__(self, function: Function) -> None:
        super().__init__()
        self.function = function
        self.order: list[_Node] = []
        self.nodes: dict[RelayExpr, _Node] = {}
        self.shapes: ProgramShapes | None = None
        self.same_shapes: dict[Call, bool] = {}
        """Of broadcasting calls with open dimensions, whether their arguments are known to have one shape."""

    def _node(self, expr: RelayExpr, kind: OpPattern) -> _Node:
        found = self.nodes.get(expr)
        if found is None:
            found = self.nodes[expr] = _Node(expr, -1, kind)
        found.kind = kind
        found.index = len(self.order)
        self.order.append(found)
        return found

    def _use(self, used: RelayExpr, user: _Node, kind: OpPattern) -> None:
        self.visit(used)
        if isinstance(used, Op):
            return
        self.nodes[used].users.append((user, kind))

    def _result(self, expr: RelayExpr) -> None:
        self.visit(expr)
        if expr in self.nodes:
            self.nodes[expr].is_result = True

    def build(self, body: RelayExpr) -> None:
        """Take in the body of a function."""
        self._result(body)

    def visit_default(self, expr: RelayExpr) -> None:
        self._node(expr, OPAQUE)

    def visit_var(self, var: Var) -> None:
        self._node(var, OPAQUE)

    def visit_global_var(self, gv: GlobalVar) -> None:
        self._node(gv, OPAQUE)

    def visit_constructor(self, c: Constructor) -> None:
        self._node(c, OPAQUE)

    def visit_op(self, op: Op) -> None:
        """Operators are not nodes."""

    def visit_constant(self, const: Constant) -> None:
        self._node(const, ELEMWISE if const.data.shape == () else OPAQUE)

    def visit_function(self, fn: Function) -> None:
        # A primitive function is compiled as it is; any other function is a separate scope.
        if not fn.is_primitive:
            for parameter in fn.params:
                self.visit(parameter)
            self._result(fn.body)
        self._node(fn, OPAQUE)

    def visit_call(self, call: Call) -> None:
        node = self.nodes[call] = _Node(call, -1, OPAQUE)
        kind = OPAQUE
        if isinstance(call.op, Op):
            declared = call.op.get_attr("TOpPattern")
            kind = OPAQUE if declared is None else OpPattern(declared)
            if is_dynamic(call.checked_type) and _shape_reads_data(call.op):
                kind = OPAQUE
            if kind == INJECTIVE and _adds_channels(call):
                kind = BROADCAST
        else:
            self._use(call.op, node, OPAQUE)
        if isinstance(call.op, Op) and call.op.name == "nn.batch_matmul":
            self._relate_batches(call)
        repeated = self._repeated(call) if kind == BROADCAST else []
        is_pool = isinstance(call.op, Op) and call.op.name in GLOBAL_POOLS
        reads = COMM_REDUCE if kind == HEAVY and is_pool else kind
        for position, argument in enumerate(call.args):
            used = ELEMWISE if kind == BROADCAST and not repeated[position] else reads
            self._use(argument, node, used)
        self._node(call, kind)

    def _repeated(self, call: Call) -> list[bool]:
        """For each argument of a broadcasting operator, whether its elements may be repeated."""
        kinds = [argument.checked_type for argument in call.args]
        if not is_dynamic(call.checked_type):
            # Element types do not matter: a comparison has another one than its arguments.
            return [dims(kind) != dims(call.checked_type) for kind in kinds]
        if len(kinds) > 1 and all(is_dynamic(kind) for kind in kinds):
            self.same_shapes[call] = self._program_shapes().are_equal(*call.args)
            if self.same_shapes[call]:
                return [False] * len(kinds)
        return _repeated_of_any(call)

    def _relate_batches(self, call: Call) -> None:
        """Of a product whose factors both have an open batch, find whether it is the same one."""
        if any(isinstance(argument.checked_type.shape[0], IntImm) for argument in call.args):
            return
        shapes = self._program_shapes()
        first, second = (tensor_types(shapes.type_of(argument))[0].shape[0] for argument in call.args)
        self.same_shapes[call] = shapes.is_one_size(first, second)

    def _program_shapes(self) -> ProgramShapes:
        if self.shapes is None:
            self.shapes = ProgramShapes(self.function)
        return self.shapes

    def visit_tuple(self, tup: Tuple) -> None:
        node = self.nodes[tup] = _Node(tup, -1, TUPLE)
        for value in tup.fields:
            kind = INJECTIVE if isinstance(value.checked_type, TensorType) else OPAQUE
            self._use(value, node, kind)
        self._node(tup, TUPLE)

    def visit_tuple_getitem(self, t: TupleGetItem) -> None:
        node = self.nodes[t] = _Node(t, -1, INJECTIVE)
        fields = t.tuple_value.checked_type
        tensors = isinstance(fields, TupleType) and all(isinstance(one, TensorType) for one in fields.fields)
        kind = INJECTIVE if tensors else OPAQUE
        self._use(t.tuple_value, node, kind)
        self._node(t, kind)

    def visit_let(self, let: Let) -> None:
        chain = []
        current: RelayExpr = let
        while isinstance(current, Let):
            chain.append(current)
            self.visit(current.var)
            self._result(current.value)
            current = current.body
        self._result(current)
        for inner in reversed(chain):
            self.memo_map[inner] = None
            self._node(inner, OPAQUE)

    def visit_if(self, i: If) -> None:
        for part in (i.cond, i.true_branch, i.false_branch):
            self._result(part)
        self._node(i, OPAQUE)

    def visit_ref_create(self, r: RefCreate) -> None:
        self._result(r.value)
        self._node(r, OPAQUE)

    def visit_ref_read(self, r: RefRead) -> None:
        self._result(r.ref)
        self._node(r, OPAQUE)

    def visit_ref_write(self, r: RefWrite) -> None:
        self._result(r.ref)
        self._result(r.value)
        self._node(r, OPAQUE)

    def visit_match(self, m: Match) -> None:
        self._result(m.data)
        for clause in m.clauses:
            self._result(clause.rhs)
        self._node(m, OPAQUE)


def _adds_channels(call: Call) -> bool:
    """True if an image is padded with further channels: each element is read once or not at all, so that what adds it
    to the result of a heavy operator can do so with any group of channels."""
    if not isinstance(call.op, Op) or call.op.name != "nn.pad" or not isinstance(call.args[1], Constant):
        return False
    attrs: typing.Any = call.attrs
    widths = [tuple(pair) for pair in attrs.pad_width]
    others = widths[:1] + widths[2:]
    return attrs.pad_mode == "constant" and len(widths) > 3 and all(pair == (0, 0) for pair in others)


def _repeated_of_any(call: Call) -> list[bool]:
    """The same where unknown dimensions may differ: what is asked is the operator's relation, with variables in their
    places."""
    assert isinstance(call.op, Op)
    kinds = [_with_variables(argument.checked_type) for argument in call.args]
    result = call.op.get_attr("TypeRelation")[1](kinds, call.attrs)
    return [kind != result for kind in kinds]


def _with_variables(given: Type) -> Type:
    if isinstance(given, TensorType):
        return TensorType(
            [SizeVar("any_dim", "int32") if isinstance(one, Any) else one for one in given.shape], given.dtype
        )
    if isinstance(given, TupleType):
        return TupleType([_with_variables(field) for field in given.fields])
    return given


def _shape_reads_data(op: Op) -> bool:
    """True if the shape of the result depends on values: such an operator is not fused."""
    declared = op.get_attr("TShapeDataDependent")
    return any(declared) if isinstance(declared, (list, tuple)) else bool(declared)


def _find_dominators(order: list[_Node]) -> None:
    """The nearest post-dominator of every node, from the last node to the first."""
    for node in reversed(order):
        if node.is_result or not node.users:
            node.dominator, node.depth, node.path_kind = None, 0, OPAQUE
            continue
        common: _Node | None = None
        path = ELEMWISE
        for position, (user, kind) in enumerate(node.users):
            common, path = (user, max(path, kind)) if position == 0 else _join(common, user, max(path, kind))
            if common is None:
                break
        node.dominator = common
        node.depth = common.depth + 1 if common is not None else 0
        node.path_kind = path if common is not None else OPAQUE


def _join(first: _Node | None, second: _Node | None, kind: OpPattern) -> tuple[_Node | None, OpPattern]:
    """The nearest node that dominates both, and the most restrictive kind of use on the way there."""
    while first is not second:
        if first is None or second is None:
            return None, OPAQUE
        if first.depth >= second.depth:
            kind, first = max(kind, first.path_kind), first.dominator
        else:
            kind, second = max(kind, second.path_kind), second.dominator
    return first, kind


class _Partition:
    """Grows the groups."""

    def __init__(self, order: list[_Node], opt_level: int, max_depth: int) -> None:
        self.order = order
        self.opt_level = opt_level
        self.max_depth = max_depth

    def run(self) -> None:
        for node in self.order:
            node.parent = None
            node.size = 1
            node.group_kind = node.kind
            node.group_root = node
            node.heavy = node.kind == HEAVY
        if self.opt_level == 0:
            return
        _find_dominators(self.order)
        for phase in range(3):
            for node in self.order:
                self._grow(node, phase)

    def stand_alone(self, nodes: dict[RelayExpr, _Node]) -> bool:
        """Exclude the concatenations from fusion that fusing would only turn into copies; true if there
        are any."""
        found = [
            node for node in self.order if is_contiguous_join(node.expr) and _is_better_alone(node, nodes)
        ]
        for node in found:
            node.kind = OPAQUE
        return bool(found)

    def _grow(self, node: _Node, phase: int) -> None:
        group, dominator = node.find(), node.dominator
        if group.group_kind == OPAQUE or dominator is None:
            return
        into = dominator.find()
        if phase == 2:
            # Where a tuple has joined the injective operator that takes it, its fields may join too.
            if dominator.kind == TUPLE and group.group_kind <= INJECTIVE and into.group_kind <= INJECTIVE:
                self._fuse(node, dominator, lambda kind, is_sink: kind <= INJECTIVE)
            return
        if into is group or into.size + group.size > self.max_depth or dominator.kind == TUPLE:
            return
        if group.group_kind == HEAVY:
            if phase == 0 and node.path_kind == ELEMWISE and not _is_better_narrow(node, dominator):
                self._fuse(node, dominator, lambda kind, is_sink: kind <= BROADCAST)
        elif group.group_kind <= BROADCAST:
            if node.path_kind <= INJECTIVE or node.path_kind == COMM_REDUCE:

                def allowed(kind: OpPattern, is_sink: bool) -> bool:
                    if not is_sink:
                        return kind <= INJECTIVE
                    return kind <= HEAVY

                self._fuse(node, dominator, allowed)
        elif group.group_kind in (INJECTIVE, TUPLE):
            if phase == 1:
                self._fuse(node, dominator, lambda kind, is_sink: kind <= INJECTIVE)

    def _fuse(self, node: _Node, sink: _Node, allowed: object) -> None:
        """Merge all nodes from ``node`` up to ``sink``, if each of them allows it."""
        assert callable(allowed)
        between: list[_Node] = []
        seen = {node}
        stack = [node]
        while stack:
            for user, _ in stack.pop().users:
                if user in seen:
                    continue
                seen.add(user)
                between.append(user)
                kind = user.find().group_kind
                if not allowed(kind, user is sink):
                    return
                if user is not sink:
                    stack.append(user)
        own = node.find()
        members = {own, *(user.find() for user in between)}
        if sum(member.heavy for member in members) > 1:
            return
        if sum(member.size for member in members) > self.max_depth:
            return
        target = sink.find()
        for user in (node, *between):
            self._merge(user.find(), target)

    @staticmethod
    def _merge(child: _Node, into: _Node) -> None:
        if child is into:
            return
        into.size += child.size
        child.parent = into
        if child.heavy:
            into.heavy = True
            into.group_kind = max(into.group_kind, HEAVY)


def _is_better_narrow(node: _Node, wider: _Node) -> bool:
    """True if the elements of ``node`` are widened next, on the way to an operator that has joined another heavy group:
    widened there, they are fewer bytes in memory."""
    widths = [_width_of(one.expr.checked_type) for one in (node, wider)]
    if not 0 < widths[0] < widths[1]:
        return False
    own, current = node.find(), wider
    while current.kind <= BROADCAST and current.dominator is not None and current.path_kind <= BROADCAST:
        current = current.dominator
        if current.find().heavy:
            return current.find() is not own
    return False


def _width_of(kind: Type) -> int:
    return kind.dtype.bits * kind.dtype.lanes if isinstance(kind, TensorType) else 0


def _is_better_alone(join: _Node, nodes: dict[RelayExpr, _Node]) -> bool:
    """True if a concatenation is better a view, into which its operands are written, than part of its group.

    Operands that another group makes are in memory in any case, and copied by this group. Those that this group makes
    would be separate kernels. If the group continues after the concatenation, the concatenation is not in memory at
    all.
    """
    assert isinstance(join.expr, Call)
    operands = join.expr.args[0]
    if not isinstance(operands, Tuple):
        return False
    group = join.find()
    made_outside = kernels = 0
    for operand in dict.fromkeys(operands.fields):
        source = _shown(operand)
        if isinstance(source, (Var, Constant)) or nodes[source].find() is group:
            kernels += 1
        else:
            made_outside += _byte_size(operand.checked_type)
    kernels += len(operands.fields) - len(set(operands.fields))
    if kernels == 0:
        return True
    goes_on = any(user.find() is group for user, _ in join.users)
    return not goes_on and made_outside > (kernels - 1) * LAUNCH_BYTES


def _shown(expr: RelayExpr) -> RelayExpr:
    """The expression of which another is a view; itself if it is not a view."""
    while isinstance(expr, Call) and isinstance(expr.op, Op) and expr.op.get_attr("TNonComputational"):
        expr = expr.args[0]
    return expr


def _byte_size(kind: TensorType) -> int:
    return math.prod(kind.concrete_shape) * ((kind.dtype.bits * kind.dtype.lanes + 7) // 8)


@dataclass(eq=False)
class _Group:
    """The function that a group becomes."""

    parameters: list[Var] = field(default_factory=list)
    arguments: list[RelayExpr] = field(default_factory=list)
    given: dict[RelayExpr, Var] = field(default_factory=dict)
    same_shapes: list[bool] = field(default_factory=list)
    """Of its broadcasting calls with open dimensions, whether their arguments have one shape."""

    def attributes(self) -> dict[str, int]:
        """The attributes of the function."""
        same = bool(self.same_shapes) and all(self.same_shapes)
        return {"Primitive": 1, SAME_SHAPES: 1} if same else {"Primitive": 1}

    def parameter(self, expr: RelayExpr, argument: RelayExpr) -> Var:
        """The parameter that stands for an expression outside the group."""
        found = self.given.get(expr)
        if found is None:
            found = Var(f"p{len(self.parameters)}", expr.checked_type)
            self.given[expr] = found
            self.parameters.append(found)
            self.arguments.append(argument)
        return found


class _Rewrite(ExprMutator):
    """Makes the functions and their calls."""

    def __init__(self, nodes: dict[RelayExpr, _Node], same_shapes: dict[Call, bool]) -> None:
        super().__init__()
        self.nodes = nodes
        self.same_shapes = same_shapes
        self.roots: dict[_Node, _Node] = {}
        self.groups: dict[_Node, _Group] = {}
        for node in nodes.values():
            group = node.find()
            # Nodes are numbered in order, and all paths of a group end in its last node.
            best = self.roots.get(group)
            if best is None or node.index > best.index:
                self.roots[group] = node

    def _is_root(self, expr: RelayExpr) -> bool:
        node = self.nodes[expr]
        return self.roots[node.find()] is node

    def _inside(self, expr: RelayExpr, group: _Node) -> RelayExpr:
        """An expression as the body of a group's function sees it."""
        node = self.nodes.get(expr)
        if isinstance(expr, Constant) and expr.data.shape == ():
            return expr
        made = self.visit(expr)
        if node is not None and node.find() is group and not isinstance(expr, (Var, Constant, Function)):
            return made  # type: ignore[no-any-return]
        return self.groups.setdefault(group, _Group()).parameter(expr, made)

    def _finish(self, expr: RelayExpr, body: RelayExpr) -> RelayExpr:
        """At the root of a group: the call of its function."""
        node = self.nodes[expr]
        if not self._is_root(expr):
            return body
        group = self.groups.get(node.find()) or _Group()
        function = Function(group.parameters, body, expr.checked_type, (), group.attributes(), span=expr.span)
        return Call(function, group.arguments, span=expr.span)

    def visit_function(self, fn: Function) -> RelayExpr:
        if fn.is_primitive:
            return fn
        body = self.visit(fn.body)
        return fn if body is fn.body else fn.replace(body=body)

    def visit_call(self, call: Call) -> RelayExpr:
        if not isinstance(call.op, Op):
            return call.map_children(self.visit)
        if call.op.name == "annotation.stop_fusion":
            # It has done its work.
            return self.visit(call.args[0])  # type: ignore[no-any-return]
        if call.op.get_attr("TNonFusable"):
            return call.map_children(self.visit)
        group = self.nodes[call].find()
        arguments = [self._inside(argument, group) for argument in call.args]
        if call in self.same_shapes:
            self.groups.setdefault(group, _Group()).same_shapes.append(self.same_shapes[call])
        return self._finish(call, call.replace(args=tuple(arguments)))

    def visit_tuple(self, tup: Tuple) -> RelayExpr:
        group = self.nodes[tup].find()
        if group.size == 1:
            return tup.map_children(self.visit)
        fields = tuple([self._inside(value, group) for value in tup.fields])
        return self._finish(tup, tup.replace(fields=fields))

    def visit_tuple_getitem(self, t: TupleGetItem) -> RelayExpr:
        group = self.nodes[t].find()
        inside = self.nodes[t.tuple_value].find() is group
        if not inside and self._is_root(t):
            return t.map_children(self.visit)
        return self._finish(t, t.replace(tuple_value=self._inside(t.tuple_value, group)))


@dataclass
class FuseOps(FunctionPass):
    """Group operators into primitive functions; ``fuse_opt_level`` 0 fuses nothing, -1 follows the
    context. ``views`` says that the executor can have operands written directly into their concatenation."""

    fuse_opt_level: int = -1
    views: bool = False

    name = "FuseOps"
    opt_level = 0

    def transform_function(self, func: Function, mod: IRModule, ctx: PassContext) -> Function:
        """Fuse within one function."""
        if func.is_primitive:
            return func
        level = ctx.opt_level if self.fuse_opt_level < 0 else self.fuse_opt_level
        graph = _Graph(func)
        for parameter in func.params:
            graph.visit(parameter)
        graph.build(func.body)
        partition = _Partition(graph.order, level, int(ctx.get("relay.FuseOps.max_depth")))
        partition.run()
        if self.views and partition.stand_alone(graph.nodes):
            partition.run()
        body = _Rewrite(graph.nodes, graph.same_shapes).visit(func.body)
        return func if body is func.body else func.replace(body=body)
