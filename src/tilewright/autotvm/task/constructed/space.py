"""The space of a constructed schedule's choices.

Some choices decide which others there are: the algorithm of a convolution, whether a reduction is split. Each of their
values is a variant with knobs of its own, and the space is the sum of the variants, not their product: every index is
another schedule. Index 0 is the schedule without tuning.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from tilewright.autotvm.task.option_space import OtherOptionEntity, OtherOptionSpace
from tilewright.autotvm.task.points import knob2point, point2knob
from tilewright.autotvm.task.space import ConfigEntity, ConfigSpace

VARIANT = "variant"


@dataclass(frozen=True)
class Variant:
    """Values that are fixed, and the knobs that then remain, each with its values."""

    fixed: Mapping[str, Any]
    knobs: Mapping[str, tuple[Any, ...]]

    @property
    def dims(self) -> list[int]:
        """The number of values of each knob."""
        return [len(values) for values in self.knobs.values()]

    def __len__(self) -> int:
        return prod(self.dims)

    def values(self, index: int) -> dict[str, Any]:
        """The value of each choice."""
        places = point2knob(index, self.dims)
        chosen = {
            name: values[place] for (name, values), place in zip(self.knobs.items(), places, strict=True)
        }
        return {**self.fixed, **chosen}


class ConstructedSpace(ConfigSpace):
    """The sum of variants. As knobs, tuners see the number of the variant, and then the choices by name; those that a
    variant does not have do not count."""

    def __init__(self, variants: Sequence[Variant]) -> None:
        super().__init__()
        self.variants = list(variants)
        self.default_index = 0
        self._names = list(dict.fromkeys(name for variant in self.variants for name in variant.knobs))
        self.space_map = {
            VARIANT: OtherOptionSpace([], None, candidate=range(len(self.variants))),
            **{name: OtherOptionSpace([], None, candidate=self._longest(name)) for name in self._names},
        }

    def _longest(self, name: str) -> tuple[Any, ...]:
        return max((variant.knobs.get(name, ()) for variant in self.variants), key=len)

    @property
    def range_length(self) -> int:
        """The number of schedules."""
        return sum(map(len, self.variants))

    def _place(self, index: int) -> tuple[int, int]:
        """The variant of an index, and the index within it."""
        for number, variant in enumerate(self.variants):
            if index < len(variant):
                return number, index
            index -= len(variant)
        raise IndexError(index)

    def get(self, index: int) -> ConfigEntity:
        """The configuration of an index."""
        if not 0 <= index < self.range_length:
            raise IndexError(f"index {index} is out of range: the space has {self.range_length} points")
        number, within = self._place(index)
        entities = {
            name: OtherOptionEntity(value) for name, value in self.variants[number].values(within).items()
        }
        return ConfigEntity(index, self.code_hash, entities, [])

    def point2knob(self, point: int) -> list[int]:
        """The number of the variant, and the place of each choice; 0 for those that the variant does not have."""
        number, within = self._place(point)
        variant = self.variants[number]
        places = dict(zip(variant.knobs, point2knob(within, variant.dims), strict=True))
        return [number, *(places.get(name, 0) for name in self._names)]

    def knob2point(self, knob: Sequence[int]) -> int:
        """The inverse; places beyond a variant's values count from the start again."""
        number = knob[0]
        variant = self.variants[number]
        places = dict(zip(self._names, knob[1:], strict=True))
        inside = [places[name] % len(values) for name, values in variant.knobs.items()]
        before = sum(map(len, self.variants[:number]))
        return before + knob2point(inside, variant.dims)

    def random_walk(self, point: int) -> int:
        """A point that differs in one choice; one time in ten, any point of another variant."""
        for _ in range(16):
            found = super().random_walk(point)
            if found != point:
                return found
        return self.get_rand_index()

    def __iter__(self) -> Iterator[ConfigEntity]:
        return (self.get(index) for index in range(self.range_length))
