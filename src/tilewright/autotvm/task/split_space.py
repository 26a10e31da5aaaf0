"""Splits of an axis: the knob that tile sizes are chosen with."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import isqrt, prod
from typing import Any

from tilewright.autotvm.task.transform_space import InstantiationError, TransformSpace


def get_factors(n: int) -> list[int]:
    """The divisors of a number, in order."""
    small = [size for size in range(1, isqrt(n) + 1) if n % size == 0]
    return small + [n // size for size in reversed(small) if size * size != n]


def get_pow2s(n: int) -> list[int]:
    """The powers of two up to a number."""
    return [1 << exponent for exponent in range(max(int(n), 1).bit_length())]


class SplitEntity:
    """The sizes of the parts of an axis, outermost first; -1 is what is left over."""

    def __init__(self, size: Sequence[int]) -> None:
        self.size = list(size)

    def apply(self, sch: Any, op: Any, axis: Any) -> list[Any]:
        """Split an axis of a schedule, and return the parts, outermost first."""
        parts = []
        for position in range(1, len(self.size)):
            outer, axis = sch[op].split(axis, factor=int(prod(self.size[position:])))
            parts.append(outer)
        return [*parts, axis]

    def __repr__(self) -> str:
        return str(self.size)


class SplitSpace(TransformSpace):
    """All splits of an axis into ``num_outputs`` parts, by a policy:

    * ``factors``: sizes whose product divides the axis;
    * ``power2``: powers of two, with a partial last tile where they do not divide;
    * ``verbose``: both kinds of sizes, partial tiles included;
    * ``candidate``: the list ``candidate``.

    ``max_factor`` bounds each inner size, ``filter`` selects entities, and ``no_tail=True`` forbids partial tiles.
    """

    def __init__(self, axes: Sequence[Any], policy: str, **kwargs: Any) -> None:
        super().__init__()
        self.policy = policy
        self.product: int = axes[0].length
        self.num_output = kwargs.get("num_outputs", 0)
        accepts: Callable[[SplitEntity], bool] = kwargs.get("filter") or (lambda entity: True)
        if policy == "candidate":
            self.entities = [self._candidate(sizes) for sizes in kwargs["candidate"]]
        else:
            if self.num_output < 1:
                raise InstantiationError("a split needs num_outputs, the number of parts")
            self.factors = self._sizes(kwargs.get("max_factor", 1 << 31))
            no_tail = kwargs.get("no_tail", policy == "factors")
            self.entities = [SplitEntity([-1, *sizes]) for sizes in self._products(no_tail)]
        self.entities = [entity for entity in self.entities if accepts(entity)]
        if not self.entities:
            raise InstantiationError(f"no split of an axis of {self.product} passes the filter")

    def _candidate(self, sizes: Sequence[int]) -> SplitEntity:
        if len(sizes) != self.num_output:
            raise InstantiationError(
                f"the candidate {list(sizes)} has {len(sizes)} parts, but num_outputs is {self.num_output}"
            )
        return SplitEntity(sizes)

    def _sizes(self, most: int) -> list[int]:
        if self.policy == "factors":
            found = get_factors(self.product)
        elif self.policy == "power2":
            found = get_pow2s(self.product)
        elif self.policy == "verbose":
            found = sorted({*get_factors(self.product), *get_pow2s(self.product)})
        else:
            raise InstantiationError(
                f"unknown policy {self.policy!r} of a split: it is factors, power2, verbose or candidate"
            )
        return [size for size in found if size <= most]

    def _products(self, no_tail: bool) -> Iterator[list[int]]:
        """The sizes of the inner parts, outermost first; the innermost varies slowest, as in records of indices."""

        def extend(inner: list[int], total: int) -> Iterator[list[int]]:
            if total > self.product or (no_tail and self.product % total):
                return
            if len(inner) == self.num_output - 1:
                if self.product % total == 0 or total < self.product:
                    yield inner[::-1]
                return
            for size in self.factors:
                yield from extend([*inner, size], total * size)

        return extend([], 1)

    @staticmethod
    def get_num_output(axes: Sequence[Any], policy: str, **kwargs: Any) -> int:
        """The number of parts."""
        return int(kwargs["num_outputs"])

    def __repr__(self) -> str:
        return f"Split(policy={self.policy}, product={self.product}, num_outputs={self.num_output}) len={len(self)}"
