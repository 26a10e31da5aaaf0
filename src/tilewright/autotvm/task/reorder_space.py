"""Orders of axes as a knob."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import permutations
from typing import Any

from tilewright.autotvm.task.transform_space import InstantiationError, TransformSpace

Chain = list[int]


class ReorderEntity:
    """A permutation of axes, by their positions."""

    def __init__(self, perm: Sequence[int]) -> None:
        self.perm = list(perm)

    def apply(self, sch: Any, op: Any, axes: Sequence[Any]) -> list[Any]:
        """Reorder axes of a stage, and return them in the new order. Of fewer axes than the knob was defined for,
        those that are there are ordered."""
        order = [axes[position] for position in self.perm if position < len(axes)]
        sch[op].reorder(*order)
        return order

    def __repr__(self) -> str:
        return str(self.perm)


class ReorderSpace(TransformSpace):
    """Orders of axes, by a policy:

    * ``identity``: as they are;
    * ``all``: every permutation;
    * ``interval_all``: every permutation of ``interval=(begin, end)``;
    * ``candidate``: the list ``candidate`` of orders of the axes;
    * ``interleave``, ``interleave_cuda``: the parts of tiled axes, given as chains in ``spatial`` and ``reduce``: outer
      parts first, then the innermost ones mixed with the reduction, each chain in its own order.
    """

    def __init__(self, axes: Sequence[Any], policy: str, **kwargs: Any) -> None:
        super().__init__()
        self.ins = list(axes)
        self.policy = policy
        self.num_output = len(axes)
        self.entities = [ReorderEntity(order) for order in self._orders(**kwargs)]

    def _orders(self, **kwargs: Any) -> Iterator[Chain]:
        everything = list(range(len(self.ins)))
        if self.policy == "identity":
            yield everything
        elif self.policy == "all":
            yield from map(list, permutations(everything))
        elif self.policy == "interval_all":
            begin, end = kwargs["interval"]
            for middle in permutations(everything[begin:end]):
                yield [*everything[:begin], *middle, *everything[end:]]
        elif self.policy == "candidate":
            for order in kwargs["candidate"]:
                yield [self._position(axis) for axis in order]
        elif self.policy in ("interleave", "interleave_cuda"):
            spatial = [[self._position(axis) for axis in chain] for chain in kwargs["spatial"] if chain]
            reduce = [[self._position(axis) for axis in chain] for chain in kwargs["reduce"] if chain]
            for outer in merged_chains([chain[:-1] for chain in spatial]):
                for inner in merged_chains([chain[-1:] for chain in spatial] + reduce):
                    yield outer + inner
        else:
            raise InstantiationError(
                f"unknown policy {self.policy!r} of a reorder: it is identity, all, interval_all, candidate, "
                "interleave or interleave_cuda"
            )

    def _position(self, axis: Any) -> int:
        for position, one in enumerate(self.ins):
            if one is axis or one == axis:
                return position
        raise InstantiationError(f"the axis {axis} of an order is not among the axes of the knob")

    @staticmethod
    def get_num_output(axes: Sequence[Any], policy: str, **kwargs: Any) -> int:
        """As many as there are."""
        return len(axes)

    def __repr__(self) -> str:
        return f"Reorder(policy={self.policy}) len={len(self)}"


def merged_chains(chains: Sequence[Chain]) -> list[Chain]:
    """All orders of the elements of chains in which each chain keeps its own order."""
    left = [chain for chain in chains if chain]
    if not left:
        return [[]]
    return [
        [chain[0], *rest]
        for number, chain in enumerate(left)
        for rest in merged_chains([*left[:number], chain[1:], *left[number + 1 :]])
    ]
