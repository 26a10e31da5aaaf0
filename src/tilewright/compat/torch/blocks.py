"""Blocks of TorchScript converted node by node, with the values so far in a dictionary, as TVM's converter does."""

from __future__ import annotations

from collections.abc import Iterable, MutableMapping, Sequence
from typing import Any

from tilewright.ir.base import RelayExpr
from tilewright.relay import op
from tilewright.relay.expr import Call, If, Tuple, TupleGetItem, TupleWrapper, Var, const
from tilewright.relay.frontend.torch.package import torch_package
from tilewright.relay.infer import infer_expr
from tilewright.relay.loops import while_loop
from tilewright.support.errors import OpNotImplemented

Values = MutableMapping[str, Any]
_CONSTRUCT = frozenset({"prim::ListConstruct", "prim::TupleConstruct"})
_LONGEST = 64
"""Steps: longer loops are not written out."""
_UNPACK = frozenset({"prim::ListUnpack", "prim::TupleUnpack"})


def _expression(value: Any) -> RelayExpr:
    return value if isinstance(value, RelayExpr) else const(value)


class Blocks:
    """Converts nodes of a graph with ``convert_map``. ``outputs`` has the values of names, and gets those of nodes."""

    convert_map: dict[str, Any]

    def convert_block(self, block: Any, outputs: Values) -> list[Any]:
        """The results of a block."""
        operators = [(next(iter(_names(node.outputs())), ""), node) for node in block.nodes()]
        return self.convert_operators(operators, outputs, _names(block.outputs()))

    def convert_operators(
        self, operators: Iterable[tuple[str, Any]], outputs: Values, ret_names: Sequence[str]
    ) -> list[Any]:
        """Convert pairs of a name and a node, in order; the values of the names that are asked for."""
        for name, node in operators:
            found = self._converted(name, node, outputs)
            results = _names(node.outputs())
            several = len(results) > 1 or node.kind() in _UNPACK
            outputs.update(zip(results, list(found) if several else [found], strict=several))
        return [outputs[name] for name in ret_names]

    def _converted(self, name: str, node: Any, outputs: Values) -> Any:
        kind = str(node.kind())
        inputs = [outputs.get(one) for one in _names(node.inputs())]
        if kind == "prim::Constant":
            value = node.output().toIValue()
            return const(value.numpy()) if isinstance(value, torch_package().Tensor) else value
        if kind == "prim::GetAttr":
            # A parameter is in the dictionary already; what leads to it has no value.
            return outputs.get(name)
        if kind in _CONSTRUCT:
            return inputs
        if kind in _UNPACK:
            unpacked: Any = inputs[0]
            return list(unpacked)
        if kind == "prim::If":
            return self.convert_if(node, outputs)
        if kind == "prim::Loop":
            return self.convert_loop(node, outputs)
        if kind not in self.convert_map:
            raise OpNotImplemented(f"The following operators are not implemented: [{kind!r}]")
        found = self.convert_map[kind](inputs, [str(one.type()) for one in node.inputs()])
        return list(found) if isinstance(found, TupleWrapper) else found

    def convert_if(self, if_node: Any, outputs: Values) -> Any:
        """The results of either block, by a condition: that of one block where the condition is known."""
        condition = outputs[_names(if_node.inputs())[0]]
        blocks = list(if_node.blocks())
        if not isinstance(condition, RelayExpr):
            found = self.convert_block(blocks[0 if condition else 1], outputs)
            return found[0] if len(found) == 1 else found
        first, second = (
            [_expression(one) for one in self.convert_block(block, dict(outputs))] for block in blocks
        )
        if len(first) == 1:
            return If(condition, first[0], second[0])
        chosen = If(condition, Tuple(first), Tuple(second))
        return [TupleGetItem(chosen, place) for place in range(len(first))]

    def convert_loop(self, loop_node: Any, outputs: Values) -> Any:
        """What a loop carries after its last step: written out where the number of steps is known and small, else a
        recursive function of the counter, the condition and the values."""
        trips, condition, *carried = [outputs[name] for name in _names(loop_node.inputs())]
        block = next(iter(loop_node.blocks()))
        counter, *names = _names(block.inputs())

        def step(place: Any, values: Sequence[Any]) -> list[Any]:
            return self.convert_block(
                block, {**outputs, counter: place, **dict(zip(names, values, strict=True))}
            )

        place = 0
        while not isinstance(trips, RelayExpr) and condition is True and place < min(trips, _LONGEST):
            condition, *carried = step(place, carried)
            place += 1
        if not isinstance(trips, RelayExpr) and (condition is False or place == trips):
            return carried[0] if len(carried) == 1 else carried
        first = [const(place, "int64"), _expression(condition), *map(_expression, carried)]
        limit = trips if isinstance(trips, RelayExpr) else const(trips, "int64")
        variables = [Var(f"value{number}", infer_expr(one).checked_type) for number, one in enumerate(first)]
        loop = while_loop(
            lambda at, holds, *values: op.logical_and(holds, op.less(at, limit)),
            variables,
            lambda at, holds, *values: [at + const(1, "int64"), *map(_expression, step(at, values))],
        )
        after = Call(loop, first)
        found = [TupleGetItem(after, position) for position in range(2, 2 + len(carried))]
        return found[0] if len(found) == 1 else found


def _names(values: Iterable[Any]) -> list[str]:
    return [str(one.debugName()) for one in values]
