"""A node of a TorchScript graph, as the code that converts it sees it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from tilewright.relay.frontend.torch.node import Expr, TorchNode
from tilewright.relay.frontend.torch.script.schema import Schema, parsed_schema
from tilewright.relay.frontend.torch.script.store import Store
from tilewright.relay.frontend.torch.script.values import DictValue, InputList, ListValue, Stack, Tensor

if TYPE_CHECKING:
    from tilewright.relay.frontend.torch.script.importer import GraphImporter

_SOURCE_LINE = re.compile(r'File "(?P<file>.*)", line (?P<line>\d+)')
_NO_SCHEMA = "(no schema)"


class ScriptNode(TorchNode):
    """A node: its operator, where the model's source has it, and the values of the graph.

    ``graph`` converts the blocks of control flow, ``store`` has what tensors and lists hold.
    """

    def __init__(self, node: Any, graph: GraphImporter) -> None:
        text = node.schema()
        self.schema: Schema | None = None if text == _NO_SCHEMA else parsed_schema(text)
        super().__init__(str(node.kind()), node_name(node), graph.scope)
        self.torch_node = node
        self.graph = graph

    @property
    def store(self) -> Store:
        """What tensors and lists hold."""
        return self.graph.store

    @property
    def where(self) -> str:
        """The node in a message, with the line of the model's source that it comes from."""
        place = source_of(self.torch_node)
        return f"{super().where}{f' at {place}' if place else ''}"

    def text(self, name: str) -> str:
        """An attribute that is a string."""
        return str(self.torch_node.s(name))

    # Values

    def resolved(self, value: Any) -> Any:
        """A value as converters take it: tensors as expressions, lists and tuples as Python's."""
        if isinstance(value, Tensor):
            return self.store.read(value)
        if isinstance(value, ListValue):
            return self._resolved_list(self.store.content(value.cell))
        if isinstance(value, tuple):
            return tuple(self.resolved(item) for item in value)
        return value

    def _resolved_list(self, content: Any) -> Any:
        if isinstance(content, (Stack, InputList)):
            raise self.fail(
                "the length of a list is known only when the model runs: stack it, or index it one by one"
            )
        return [self.resolved(item) for item in content]

    def items(self, value: Any) -> list[Any]:
        """The elements of a list whose length is known, or of a tuple."""
        if isinstance(value, tuple):
            return list(value)
        if not isinstance(value, ListValue):
            raise self.fail(f"a list is expected, not {type(value).__name__}")
        content = self.store.content(value.cell)
        if not isinstance(content, list):
            raise self.fail("the length of a list is known only when the model runs")
        return content

    def entries(self, value: Any) -> dict[Any, Any]:
        """The content of a dictionary."""
        if not isinstance(value, DictValue):
            raise self.fail(f"a dictionary is expected, not {type(value).__name__}")
        found: dict[Any, Any] = self.store.content(value.cell)
        return found

    def known(self, value: Any) -> Any:
        """A number as Python's where it is known, else the value itself."""
        if isinstance(value, Tensor):
            found = self.value(self.store.read(value))
            if found is not None and found.size == 1:
                return found.reshape(-1)[0].item()
        return value

    def expr(self, value: Any, dtype: str) -> Expr:
        """A number or tensor as an expression of an element type."""
        return self.cast(self.resolved(value), dtype)


def node_name(node: Any) -> str:
    """The name of a node's first output; where it has none, its operator."""
    return next((str(output.debugName()) for output in node.outputs()), str(node.kind()))


def source_of(node: Any) -> str:
    """The file and line of the model's source that a node comes from, if they are known: the innermost that is not
    PyTorch's own."""
    found = [(match["file"], match["line"]) for match in _SOURCE_LINE.finditer(node.sourceRange() or "")]
    if not found:
        return ""
    own = [place for place in found if "/torch/" not in place[0].replace("\\", "/")]
    file, line = (own or found)[0]
    return f"{file}:{line}"
