"""Disjoint sets of objects, as a forest that gets flatter with every look-up."""

from __future__ import annotations

from typing import Self


class UnionFind:
    """An object in one of several disjoint sets. Joining two sets gives one representative the other as parent."""

    parent: Self | None = None

    def find(self) -> Self:
        """The representative of the set."""
        root = self
        while root.parent is not None:
            root = root.parent
        node = self
        while node.parent is not None:
            node.parent, node = root, node.parent
        return root
