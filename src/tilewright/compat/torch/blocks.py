"""Blocks of TorchScript converted node by node, with the values so far in a dictionary, as TVM's converter does."""

from __future__ import annotations

from collections.abc import Iterable, MutableMapping, Sequence
from typing import Any

from tilewright.ir.base import RelayExpr
from tilewright.relay.expr import If, Tuple, TupleGetItem, TupleWrapper, const
from tilewright.relay.frontend.torch.package import torch_package
from tilewright.support.errors import OpNotImplemented

Values = MutableMapping[str, Any]
_CONSTRUCT = frozenset({"prim::ListConstruct", "prim::TupleConstruct"})
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
            return list(inputs[0])
        if kind == "prim::If":
            return self.convert_if(node, outputs)
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


def _names(values: Iterable[Any]) -> list[str]:
    return [str(one.debugName()) for one in values]
