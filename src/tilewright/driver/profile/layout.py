"""A layered drawing of a directed graph: every edge points down, and neighbours are near each other.

The usual steps: layers by the longest path, dummy nodes where long edges pass, an order in each layer that follows the
neighbours' (so that few edges cross), then positions that pull nodes below their inputs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

NODE_WIDTH, NODE_HEIGHT = 190.0, 44.0
GAP, LAYER_GAP, POINT_WIDTH = 24.0, 40.0, 10.0

_SWEEPS = 6
# The weight of a passing edge's position relative to a node's.
_POINT_WEIGHT = 0.001
# A graph whose edges pass more layers than this in all is drawn with straight ones.
_MOST_POINTS = 40_000


@dataclass(frozen=True)
class Layout:
    """The middle of every node, the points that every edge passes from its source to its target, and the size of the
    whole, whose top left corner is at the origin."""

    positions: tuple[tuple[float, float], ...]
    paths: tuple[tuple[tuple[float, float], ...], ...]
    width: float
    height: float


def layered_layout(count: int, edges: Sequence[tuple[int, int]]) -> Layout:
    """The drawing of a graph whose edges go from lower numbers to higher ones."""
    if count == 0:
        return Layout((), (), 0.0, 0.0)
    layer = [0] * count
    by_target = sorted(edges, key=lambda edge: edge[1])
    for source, target in by_target:
        layer[target] = max(layer[target], layer[source] + 1)
    _pull_down(layer, edges)
    points = sum(layer[target] - layer[source] - 1 for source, target in edges)
    chains: list[list[int]] = []
    with_points = points <= _MOST_POINTS
    for source, target in edges:
        chain = [source]
        if with_points:
            for between in range(layer[source] + 1, layer[target]):
                chain.append(len(layer))
                layer.append(between)
        chains.append([*chain, target])
    above: list[list[int]] = [[] for _ in layer]
    below: list[list[int]] = [[] for _ in layer]
    for chain in chains:
        for first, second in pairwise(chain):
            below[first].append(second)
            above[second].append(first)
    rows = _ordered_rows(layer, above, below)
    across = _across(count, rows, above, below)
    down = [NODE_HEIGHT / 2 + number * (NODE_HEIGHT + LAYER_GAP) for number in range(len(rows))]
    left = min(across[node] - _width(node, count) / 2 for node in range(len(layer)))
    places = [(round(across[node] - left, 1), down[layer[node]]) for node in range(len(layer))]
    width = max(places[node][0] + _width(node, count) / 2 for node in range(len(layer)))
    return Layout(
        tuple(places[:count]),
        tuple(tuple(places[node] for node in chain) for chain in chains),
        round(width, 1),
        down[-1] + NODE_HEIGHT / 2,
    )


def _pull_down(layer: list[int], edges: Sequence[tuple[int, int]]) -> None:
    """Nodes that nothing comes into stand just above what reads them."""
    has_input = {target for _, target in edges}
    nearest: dict[int, int] = {}
    for source, target in edges:
        if source not in has_input:
            nearest[source] = min(nearest.get(source, layer[target]), layer[target])
    for source, lowest in nearest.items():
        layer[source] = lowest - 1


def _width(node: int, count: int) -> float:
    return NODE_WIDTH if node < count else POINT_WIDTH


def _ordered_rows(
    layer: Sequence[int], above: Sequence[Sequence[int]], below: Sequence[Sequence[int]]
) -> list[list[int]]:
    """The nodes of every layer from left to right."""
    rows: list[list[int]] = [[] for _ in range(max(layer) + 1)]
    for node, number in enumerate(layer):
        rows[number].append(node)
    place = {node: index for row in rows for index, node in enumerate(row)}
    for sweep in range(_SWEEPS):
        neighbours = above if sweep % 2 == 0 else below
        for row in rows if sweep % 2 == 0 else reversed(rows):
            if len(row) < 2:
                continue
            wanted = {
                node: sum(place[other] for other in neighbours[node]) / len(neighbours[node])
                if neighbours[node]
                else float(place[node])
                for node in row
            }
            row.sort(key=wanted.__getitem__)
            for index, node in enumerate(row):
                place[node] = index
    return rows


def _across(
    count: int,
    rows: Sequence[Sequence[int]],
    above: Sequence[Sequence[int]],
    below: Sequence[Sequence[int]],
) -> dict[int, float]:
    """Where the middle of every node stands: near those of its neighbours, in order, with room between."""
    across: dict[int, float] = {}
    for row in rows:
        for node, place in zip(row, _spread(row, [0.0] * len(row), count), strict=True):
            across[node] = place
    for sweep in range(_SWEEPS):
        neighbours = above if sweep % 2 == 0 else below
        for row in rows if sweep % 2 == 0 else reversed(rows):
            wanted = [_wish(node, neighbours[node], across, count) for node in row]
            for node, place in zip(row, _spread(row, wanted, count), strict=True):
                across[node] = place
    return across


def _wish(node: int, neighbours: Sequence[int], across: dict[int, float], count: int) -> float:
    """Below its neighbours, nodes before passing edges: the main line of a model stays straight."""
    followed = [other for other in neighbours if other < count] or neighbours
    return sum(across[other] for other in followed) / len(followed) if followed else across[node]


def _spread(row: Sequence[int], wanted: Sequence[float], count: int) -> list[float]:
    """Places in order, no two too near, and as close to the wanted ones as can be; nodes weigh more than passing edges.

    Neighbours that want the same place form a group, which begins where their wishes put it on average.
    """
    groups: list[_Group] = []
    for index, place in enumerate(wanted):
        room = _width(row[index], count) + GAP
        weight = 1.0 if row[index] < count else _POINT_WEIGHT
        group = _Group([index], weight * (place - room / 2), weight, room)
        while groups and groups[-1].begin + groups[-1].room > group.begin:
            group = groups.pop().joined(group)
        groups.append(group)
    places = [0.0] * len(row)
    for group in groups:
        at = group.begin
        for index in group.members:
            room = _width(row[index], count) + GAP
            places[index] = at + room / 2
            at += room
    return places


@dataclass(frozen=True)
class _Group:
    """Nodes side by side: the weighted sum of where each would have the group begin, the weights, and its width."""

    members: list[int]
    wishes: float
    weight: float
    room: float

    @property
    def begin(self) -> float:
        return self.wishes / self.weight

    def joined(self, after: _Group) -> _Group:
        wishes = self.wishes + after.wishes - after.weight * self.room
        return _Group(
            self.members + after.members, wishes, self.weight + after.weight, self.room + after.room
        )
