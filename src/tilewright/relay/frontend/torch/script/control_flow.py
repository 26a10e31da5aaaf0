"""Conditions and loops.

A known condition selects its branch at import; a loop with a small, known number of turns is written out. Other loops
become recursive functions, whose parameters are the state of the loop: what it carries, and what it writes in place.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from tilewright import relay
from tilewright.ir.base import RelayExpr
from tilewright.ir.tensor_type import TensorType
from tilewright.ir.type import FuncType, TupleType, Type
from tilewright.relay.expr import Call, If, Let, Tuple, TupleGetItem, Var, const
from tilewright.relay.frontend.torch.script.importer import scalar
from tilewright.relay.frontend.torch.script.node import ScriptNode
from tilewright.relay.frontend.torch.script.registry import operator
from tilewright.relay.frontend.torch.script.store import Frame
from tilewright.relay.frontend.torch.script.templates import (
    Mismatch,
    build,
    leaves_of,
    merged,
    template_of,
    types_of,
)
from tilewright.relay.frontend.torch.script.values import (
    UNINITIALIZED,
    Cell,
    DictValue,
    ListValue,
    Tensor,
    Unreadable,
    Unsettled,
)
from tilewright.relay.function import Function
from tilewright.support.errors import ModelError

UNROLLED_NODES: Final = 2000
"""A loop is written out if that makes at most so many nodes."""
UNROLLED_IN_ALL: Final = 20_000
"""Nodes that all loops of a model together may be written out to: loops within loops multiply."""
MOST_TURNS: Final = 4096
"""Turns of a loop that has to be written out because its state has no type, at most."""
_ENDLESS: Final = (1 << 31) - 1
"""The number of turns that TorchScript gives loops with a condition only is at least this."""


class Raised(Exception):
    """The path that is converted raises an exception."""


@operator("prim::RaiseException")
def raise_exception(node: ScriptNode, *inputs: Any) -> Any:
    """A path that raises is never taken in a model that works."""
    message = inputs[0] if inputs and isinstance(inputs[0], str) else ""
    raise Raised(message)


# If


def _outputs(values: list[Any]) -> Any:
    return values[0] if len(values) == 1 else values


@operator("prim::If")
def if_(node: ScriptNode, condition: Any) -> Any:
    """One of two blocks."""
    return _outputs(_if(node, condition))


def _if(node: ScriptNode, condition: Any) -> list[Any]:
    first, second = node.torch_node.blocks()
    if isinstance(condition, Unsettled):
        for block in (first, second):
            frame = node.store.open()
            try:
                node.graph.convert_block(block, [])
            except (Raised, ModelError):
                pass
            finally:
                node.store.close(frame)
        return [Unsettled() for _ in node.torch_node.outputs()]
    known = node.known(condition)
    if not isinstance(known, Tensor):
        return node.graph.convert_block(first if known else second, [])
    sides = [_side(node, block) for block in (first, second)]
    if sides[0] is None and sides[1] is None:
        raise Raised("both branches raise")
    if sides[0] is None or sides[1] is None:
        # The check that guards the other side is left out.
        values, frame = sides[0] or sides[1]  # type: ignore[misc]
        node.store.adopt(frame)
        return values
    return _joined(node, scalar(node, node.resolved(condition)), sides)  # type: ignore[arg-type]


def _side(node: ScriptNode, block: Any) -> tuple[list[Any], Frame] | None:
    """The outputs of a branch and what it wrote; None if it raises an exception."""
    frame = node.store.open()
    try:
        return node.graph.convert_block(block, []), frame
    except Raised:
        return None
    finally:
        node.store.close(frame)


def _joined(node: ScriptNode, condition: RelayExpr, sides: list[tuple[list[Any], Frame]]) -> list[Any]:
    """The outputs of either branch, and what either wrote, in one ``If``."""
    store = node.store
    uses = [bool(output.uses()) for output in node.torch_node.outputs()]
    if any(isinstance(value, Unsettled) for values, _ in sides for value in values):
        return [Unsettled() for _ in uses]
    changed = list(
        dict.fromkeys(cell for _, frame in sides for cell in frame.contents if cell.level <= store.level)
    )
    gathered: list[list[Any]] = []
    templates: list[list[Any]] = []
    spoiled: dict[Cell, Unreadable] = {}
    for values, frame in sides:
        store.frame = frame
        store.level += 1
        try:
            handles = [value if used else UNINITIALIZED for value, used in zip(values, uses, strict=True)]
            for cell in changed:
                content = store._content(store.frame, cell)
                if isinstance(content, Unreadable):
                    spoiled[cell] = content
                handles.append(UNINITIALIZED if cell in spoiled else _handle(content, cell))
            gathered.append(handles)
            templates.append([template_of(store, handle) for handle in handles])
        finally:
            store.level -= 1
            assert frame.parent is not None
            store.frame = frame.parent
    try:
        both = [merged(one, other) for one, other in zip(*templates, strict=True)]
    except Mismatch as error:
        raise node.needs_value(condition, f"the condition of branches that give {error}") from None
    leaves = []
    for (_, frame), handles in zip(sides, gathered, strict=True):
        store.frame = frame
        try:
            leaves.append(
                [
                    leaf
                    for handle, template in zip(handles, both, strict=True)
                    for leaf in leaves_of(store, handle, template)
                ]
            )
        finally:
            assert frame.parent is not None
            store.frame = frame.parent
    made = iter(_chosen(condition, *leaves))
    built = [build(store, template, made) for template in both]
    width = len(uses)
    for place, value in enumerate(built[:width]):
        # A branch may hand on a tensor from outside: the result is then the same memory.
        for handles in gathered:
            _entangle_results(node, value, handles[place])
    for cell, value in zip(changed, built[width:], strict=True):
        _set_cell(node, cell, spoiled.get(cell) or store.content(value.cell))
    return built[:width]


def _entangle_results(node: ScriptNode, made: Any, given: Any) -> None:
    if isinstance(made, Tensor) and isinstance(given, Tensor) and given.cell.level <= node.store.level:
        node.store.entangle(made.cell, given.cell)
    elif isinstance(made, ListValue) and isinstance(given, ListValue) and made is not given:
        if given.cell.level <= node.store.level:
            node.store.entangle(made.cell, given.cell)


def _handle(content: Any, cell: Cell) -> Any:
    """A handle of a cell, by what it holds."""
    if isinstance(content, dict):
        return DictValue(cell)
    return Tensor(cell) if isinstance(content, RelayExpr) else ListValue(cell)


def _set_cell(node: ScriptNode, cell: Cell, content: Any) -> None:
    node.store.frame.contents[cell] = content
    if cell.attribute:
        node.store.written_attributes[cell.attribute] = None


def _chosen(condition: RelayExpr, left: list[RelayExpr], right: list[RelayExpr]) -> list[RelayExpr]:
    """Tensors of equal types, those of one side or of the other."""
    different = [place for place, pair in enumerate(zip(left, right, strict=True)) if pair[0] is not pair[1]]
    made = list(left)
    if len(different) == 1:
        made[different[0]] = If(condition, left[different[0]], right[different[0]])
    elif different:
        whole = If(
            condition,
            Tuple([left[place] for place in different]),
            Tuple([right[place] for place in different]),
        )
        for field, place in enumerate(different):
            made[place] = TupleGetItem(whole, field)
    return made


# Loop


@operator("prim::Loop")
def loop(node: ScriptNode, turns: Any, condition: Any, *carried: Any) -> Any:
    """A block applied to its own results: a number of times, while a condition holds, or both."""
    return _outputs(_loop(node, turns, condition, carried))


def _loop(node: ScriptNode, turns: Any, condition: Any, carried: Sequence[Any]) -> list[Any]:
    (body,) = node.torch_node.blocks()
    if any(isinstance(value, Unsettled) for value in (turns, condition, *carried)):
        frame = node.store.open()
        try:
            node.graph.convert_block(body, [Unsettled()] * (1 + len(carried)))
        except (Raised, ModelError):
            pass
        finally:
            node.store.close(frame)
        return [Unsettled() for _ in node.torch_node.outputs()]
    count, start = node.known(turns), node.known(condition)
    if start is False or (not isinstance(count, Tensor) and count <= 0):
        return list(carried)
    nodes = max(sum(1 for _ in body.nodes()), 1)
    most = UNROLLED_NODES // nodes
    if not isinstance(count, Tensor) and not isinstance(start, Tensor):
        if count <= most or count >= _ENDLESS:
            found = _written_out(node, body, min(count, most), count <= most, carried, nodes)
            if found is not None:
                return found
    try:
        return _loop_function(node, body, count, start, list(carried))
    except ModelError:
        if isinstance(count, Tensor) or count > MOST_TURNS:
            raise
        found = _written_out(node, body, count, True, carried, 0)
        if found is None:
            raise
        return found


def _written_out(
    node: ScriptNode, body: Any, turns: int, is_exact: bool, carried: Sequence[Any], nodes: int
) -> list[Any] | None:
    """The loop turn by turn; None where the condition after a turn is not known, where more turns than these follow
    (unless that is their number), or where all loops together make too many nodes."""
    values = list(carried)
    frame = node.store.open()
    keep = False
    try:
        for turn in range(turns):
            node.graph.unrolled += nodes
            if node.graph.unrolled > UNROLLED_IN_ALL:
                return None
            test, *values = node.graph.convert_block(body, [turn, *values])
            if isinstance(test, Unsettled):
                keep = True
                return values
            known = node.known(test)
            if isinstance(known, Tensor):
                return None
            if not known:
                keep = True
                return values
        keep = is_exact
        return values if is_exact else None
    finally:
        node.store.close(frame, keep)


def _loop_function(node: ScriptNode, body: Any, turns: Any, condition: Any, carried: list[Any]) -> list[Any]:
    """The loop as a recursive function."""
    store = node.store
    position = Var("turn", TensorType((), "int64"))
    node.scope.number(position)
    state: list[Any] = [condition, *carried]
    templates = [template_of(store, value) for value in state]
    changed: dict[Cell, None] = {}
    spoiled: dict[Cell, Unreadable] = {}
    while True:
        handles = [*state, *(_handle(store.content(cell), cell) for cell in changed)]
        before = len(templates), len(spoiled)
        frame = store.open(region=object())
        try:
            variables = [Var(f"state{place}", kind) for place, kind in enumerate(_types(templates))]
            leaves: Any = iter(variables)
            inside = [build(store, template, leaves) for template in templates]
            for value, given in zip(inside, handles, strict=True):
                _entangle_results(node, value, given)
            for cell, value in zip(changed, inside[len(state) :], strict=True):
                frame.contents[cell] = store.content(value.cell)
            frame.contents.update(spoiled)
            index = store.tensor(position, "int")
            results = node.graph.convert_block(body, [index, *inside[1 : len(state)]])
            if any(isinstance(value, Unsettled) for value in results):
                return [Unsettled() for _ in carried]
            for cell in store.changed(frame):
                content = frame.contents[cell]
                if isinstance(content, Unreadable):
                    spoiled[cell] = content
                    changed.pop(cell, None)
                elif cell not in spoiled:
                    changed.setdefault(cell)
            if (len(state) + len(changed), len(spoiled)) != before:
                templates = templates[: len(state)] + [None] * len(changed)
            following = [*results, *(_handle(frame.contents[cell], cell) for cell in changed)]
            after = [template_of(store, value) for value in following]
            wider = [
                new if old is None else merged(old, new) for old, new in zip(templates, after, strict=True)
            ]
            if wider == templates and None not in templates and (len(templates), len(spoiled)) == before:
                next_leaves = [
                    leaf
                    for value, template in zip(following, templates, strict=True)
                    for leaf in leaves_of(store, value, template)
                ]
                break
            stale = [place for place, template in enumerate(templates) if template is None]
        except Mismatch as error:
            raise node.fail(
                f"the state of the loop changes from one turn to the next: it is {error}"
            ) from None
        finally:
            store.close(frame)
        for place in stale:
            # What is written in place has the type that it has before the loop, and that which it gets.
            cell = list(changed)[place - len(state)]
            wider[place] = merged(template_of(store, _handle(store.content(cell), cell)), wider[place])
        templates = wider
    outer = [
        leaf
        for value, template in zip(handles, templates, strict=True)
        for leaf in leaves_of(store, value, template)
    ]
    fields = _call(node, frame, position, variables, inside[0], next_leaves, outer, turns)
    leaves = iter(fields)
    built = [build(store, template, leaves) for template in templates]
    for value, given in zip(built, handles, strict=True):
        _entangle_results(node, value, given)
    for cell, value in zip(changed, built[len(state) :], strict=True):
        _set_cell(node, cell, store.content(value.cell))
    store.frame.contents.update(spoiled)
    return built[1 : len(state)]


def _types(templates: Sequence[Any]) -> list[TensorType]:
    return [kind for template in templates for kind in types_of(template)]


def _call(
    node: ScriptNode,
    frame: Frame,
    position: Var,
    variables: list[Var],
    condition: Any,
    following: list[RelayExpr],
    outer: list[RelayExpr],
    turns: Any,
) -> list[RelayExpr]:
    """The last values of the variables: the function of the loop, called with the first ones."""
    number = TensorType((), "int64")
    types: list[Type] = [number, *(variable.type_annotation or number for variable in variables)]
    result = TupleType(types)
    name = Var("loop", FuncType(types, result))
    limit = Var("turns", number)
    tests: list[RelayExpr] = []
    if isinstance(turns, Tensor) or turns < _ENDLESS:
        tests.append(relay.less(position, limit))
    if isinstance(condition, Tensor):
        tests.append(variables[0])
    if not tests:
        raise node.fail("the loop never ends")
    test = tests[0] if len(tests) == 1 else relay.logical_and(*tests)
    again = Call(name, [relay.add(position, const(1, "int64")), *following])
    parameters = [position, *variables]
    function = Function(parameters, If(test, again, Tuple(parameters)), result)
    made: RelayExpr = Let(name, function, Call(name, [const(0, "int64"), *outer]))
    made = Let(limit, node.expr(turns, "int64"), made)
    made = frame.bound(made)
    return [TupleGetItem(made, place + 1) for place in range(len(variables))]
