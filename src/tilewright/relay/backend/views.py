"""Kernels that need not run: their results lie where their arguments do, or their arguments where the result does.

A slice of one piece, a reshape and their like become views of their argument. A concatenation whose operands follow one
another in memory becomes a view too: the kernel that makes an operand writes it there. What cannot be written there (an
input, a constant, a part of something else, an operand that occurs twice or belongs to another concatenation) is
copied, and where that would cost more than it saves, the kernel stays.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tilewright.ir.base import RelayExpr
from tilewright.relay.analysis.contiguity import LAUNCH_BYTES
from tilewright.relay.backend.graph import CPU, NO_OPERATION, Entry, ExecutorGraph, GraphBuilder, GraphNode
from tilewright.relay.backend.places import Places, strict_entries
from tilewright.relay.backend.te_compiler import operator_names
from tilewright.relay.expr import Var
from tilewright.relay.function import Function
from tilewright.relay.infer import infer_function
from tilewright.relay.op.tensor import copy
from tilewright.support.arena import ALIGNMENT


def build_graph(
    function: Function, prefix: str, device_of: Callable[[RelayExpr], int] = lambda expr: CPU
) -> ExecutorGraph:
    """The graph of a function whose body was fused, with views in place of kernels where that is possible; the names of
    kernels begin with ``prefix``, and ``device_of`` says where the value of an expression is."""
    builder = GraphBuilder(prefix, device_of)
    return _Views(builder.build(function), builder.kernel).run()


class _Views:
    def __init__(self, graph: ExecutorGraph, kernel_of: Callable[[Function, int], str]) -> None:
        self.graph = graph
        self.kernel_of = kernel_of
        self.strict = strict_entries(graph)
        self.places = Places()
        self.nodes: list[GraphNode] = []
        self.moved: dict[Entry, Entry] = {}

    def run(self) -> ExecutorGraph:
        """Node by node, in order."""
        for number, node in enumerate(self.graph.nodes):
            given = [Entry(number, output) for output in range(len(node.outputs))]
            strict = any(entry in self.strict for entry in given)
            made = replace(node, inputs=[self.moved[entry] for entry in node.inputs])
            if node.view_offsets is not None:
                made = self._view(made, strict)
            elif node.joined is not None:
                made = self._join(made)
            self._add(made, strict)
            self.moved |= {entry: Entry(len(self.nodes) - 1, entry.output) for entry in given}
        used = {node.kernel for node in self.nodes}
        kernels = {name: function for name, function in self.graph.kernels.items() if name in used}
        outputs = [self.moved[entry] for entry in self.graph.outputs]
        return replace(self.graph, nodes=self.nodes, outputs=outputs, kernels=kernels)

    def _add(self, node: GraphNode, strict: bool) -> Entry:
        number = len(self.nodes)
        self.nodes.append(node)
        self.places.add(number, node, strict)
        self.places.settle(number, node)
        return Entry(number)

    def _view(self, node: GraphNode, strict: bool) -> GraphNode:
        """The node as a view; a kernel where the tensor must be aligned to a cache line, and would not be."""
        assert node.view_offsets is not None
        _, inside = self.places.find(node.inputs[0])
        fits = all((inside + offset) % ALIGNMENT == 0 for offset in node.view_offsets)
        if strict and not fits:
            return replace(node, view_offsets=None)
        return self._without_kernel(node, node.inputs[:1])

    def _join(self, node: GraphNode) -> GraphNode:
        """The node as a view, with copies of the operands that cannot be written where they are wanted before it."""
        assert node.joined is not None
        operands = [node.inputs[position] for position in node.joined]
        copied = self._to_copy(operands)
        sizes = [self.places.sizes[entry] for entry in operands]
        in_place = sum(size for position, size in enumerate(sizes) if position not in copied)
        if in_place <= (len(copied) - 1) * LAUNCH_BYTES:
            return replace(node, joined=None)
        for position in copied:
            operands[position] = self._copy(operands[position])
        return self._without_kernel(replace(node, joined=list(range(len(operands)))), operands)

    def _without_kernel(self, node: GraphNode, inputs: list[Entry]) -> GraphNode:
        assert node.function is not None
        name = "_".join(one.replace(".", "_") for one in operator_names(node.function))
        name = f"{name}_{len(self.nodes)}"
        return replace(node, name=name, inputs=inputs, kernel=NO_OPERATION, function=None)

    def _to_copy(self, operands: list[Entry]) -> list[int]:
        """The operands whose roots cannot be placed where the result needs them."""
        starts = self.places.joined_offsets(operands)
        total = starts[-1] + self.places.sizes[operands[-1]]
        wanted = []
        for entry, start in zip(operands, starts, strict=True):
            root, inside = self.places.find(entry)
            wanted.append((root, start - inside))
        bases: dict[Entry, int] = {}
        found = []
        for position, (root, base) in enumerate(wanted):
            end = base + self.places.sizes[root]
            may_move = root not in self.places.fixed and self.places.fits(root, base)
            # The whole root will be in the result: it must be exactly what belongs there.
            is_wanted = (base >= 0 and end <= total) and all(
                other == (root, base)
                for other, entry, start in zip(wanted, operands, starts, strict=True)
                if start < end and base < start + self.places.sizes[entry]
            )
            # An operand that occurs twice can only be in one place.
            if not may_move or not is_wanted or bases.setdefault(root, base) != base:
                found.append(position)
        return found

    def _copy(self, entry: Entry) -> Entry:
        source = self.nodes[entry.node]
        kind = source.outputs[entry.output]
        parameter = Var("p0", kind)
        function = infer_function(Function([parameter], copy(parameter), kind, (), {"Primitive": 1}))
        name = self.kernel_of(function, source.device)
        made = GraphNode(f"{name}_{len(self.nodes)}", [kind], [entry], name, function, device=source.device)
        return self._add(made, False)
