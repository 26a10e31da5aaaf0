"""Which tensors of a graph share memory, and at what distance: a forest whose roots have memory of their own."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate

from tilewright.relay.backend.graph import Entry, ExecutorGraph, GraphNode, byte_size
from tilewright.support.arena import ALIGNMENT


class Places:
    """Where tensors lie: each in a root, so many bytes from its beginning.

    Roots in ``fixed`` are inputs and constants, which come with memory of their own. In the trees of roots in
    ``strict`` are tensors that must lie at whole cache lines; other roots may be put anywhere into another.
    """

    def __init__(self) -> None:
        self.sizes: dict[Entry, int] = {}
        self.fixed: set[Entry] = set()
        self.strict: set[Entry] = set()
        self._parents: dict[Entry, tuple[Entry, int]] = {}

    def add(self, number: int, node: GraphNode, strict: bool = False) -> None:
        """The results of a node, as roots."""
        for output, kind in enumerate(node.outputs):
            entry = Entry(number, output)
            self.sizes[entry] = byte_size(kind)
            if node.kernel is None:
                self.fixed.add(entry)
            if strict:
                self.strict.add(entry)

    def find(self, entry: Entry) -> tuple[Entry, int]:
        """The root of a tensor, and where in it the tensor begins."""
        path = []
        root = entry
        while root in self._parents:
            path.append(root)
            root = self._parents[root][0]
        offset = 0
        for passed in reversed(path):
            offset += self._parents[passed][1]
            self._parents[passed] = (root, offset)
        return root, offset

    def fits(self, root: Entry, offset: int) -> bool:
        """True if a root may be placed at this offset in another."""
        return root not in self.strict or offset % ALIGNMENT == 0

    def attach(self, root: Entry, to: Entry, offset: int) -> None:
        """Place a root, with all its views, inside another tensor."""
        into, beyond = self.find(to)
        self._parents[root] = (into, beyond + offset)
        if root in self.strict:
            self.strict.add(into)

    def settle(self, number: int, node: GraphNode) -> None:
        """Put the results of a view into its argument, or the arguments of a join into its result."""
        if not node.is_view:
            return
        if node.view_offsets is not None:
            for output, offset in enumerate(node.view_offsets):
                self.attach(Entry(number, output), node.inputs[0], offset)
        else:
            for entry, offset in zip(node.inputs, self.joined_offsets(node.inputs), strict=True):
                root, inside = self.find(entry)
                if root != Entry(number):
                    self.attach(root, Entry(number), offset - inside)

    def joined_offsets(self, operands: list[Entry]) -> list[int]:
        """Where each operand begins in what they are joined to."""
        return list(accumulate((self.sizes[entry] for entry in operands), initial=0))[:-1]

    def range_of(self, entry: Entry) -> tuple[Entry, int, int]:
        """The root of a tensor, and where in it the tensor begins and ends."""
        root, offset = self.find(entry)
        return root, offset, offset + self.sizes[entry]


def strict_entries(graph: ExecutorGraph) -> set[Entry]:
    """The tensors that must lie at whole cache lines: results of the graph, and what external code reads or writes."""
    found = set(graph.outputs)
    for number, node in enumerate(graph.nodes):
        if node.kernel in graph.external:
            found.update(node.inputs)
            found.update(results(number, node))
    return found


def results(number: int, node: GraphNode) -> Iterator[Entry]:
    """The tensors that a node produces."""
    return (Entry(number, output) for output in range(len(node.outputs)))
