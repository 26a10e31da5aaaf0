"""The space of a template's configurations: named knobs, and points that give each of them a value.

A template defines its knobs on the configuration that ``get_config()`` gives it, and applies them:

    cfg = autotvm.get_config()
    cfg.define_split("tile_y", y, num_outputs=2)
    outer, inner = cfg["tile_y"].apply(s, C, y)

When a task is created, that configuration is a ``ConfigSpace``, which collects what is defined; when it is measured or
built, it is a ``ConfigEntity``, one point of the space. A ``FallbackConfigEntity`` is used where nothing is known of a
workload.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import prod
from typing import Any

import numpy as np

from tilewright.autotvm.task.annotate_space import AnnotateEntity, AnnotateSpace
from tilewright.autotvm.task.option_space import OtherOptionEntity, OtherOptionSpace
from tilewright.autotvm.task.points import Points
from tilewright.autotvm.task.reorder_space import ReorderEntity, ReorderSpace
from tilewright.autotvm.task.split_space import SplitEntity, SplitSpace, get_factors, get_pow2s
from tilewright.autotvm.task.transform_space import Axis, InstantiationError, TransformSpace, VirtualAxis

Entity = SplitEntity | ReorderEntity | AnnotateEntity | OtherOptionEntity


class ConfigSpace(Points):
    """The product of all knobs that a template defines.

    ``default_index`` is the point that is used without tuning, for the spaces of constructed schedules; tuners measure
    it first. It is None for other templates.
    """

    def __init__(self) -> None:
        self.space_map: dict[str, TransformSpace] = {}
        self._collect = True
        self._entity_map: dict[str, Any] = {}
        self._constraints: list[Any] = []
        self._filter: Callable[[ConfigEntity], bool] | None = None
        self._valid: list[int] | None = None
        self.errors: list[str] = []
        self.code_hash: str | None = None
        self.flop = 0.0
        self.cost: float | None = None
        self.is_fallback = False
        self.default_index: int | None = None

    @staticmethod
    def axis(var: Any) -> VirtualAxis:
        """An axis of the space, of an axis of a schedule or a length."""
        return VirtualAxis(var)

    reduce_axis = axis

    def define_split(self, name: str, axis: Any, policy: str = "factors", **kwargs: Any) -> list[Axis]:
        """A knob that splits an axis: see ``SplitSpace``."""
        return self._define(SplitSpace, name, [axis], policy, **kwargs)

    def define_reorder(self, name: str, axes: Sequence[Any], policy: str, **kwargs: Any) -> list[Axis]:
        """A knob that orders axes: see ``ReorderSpace``."""
        return self._define(ReorderSpace, name, axes, policy, **kwargs)

    def define_annotate(self, name: str, axes: Sequence[Any], policy: str, **kwargs: Any) -> list[Axis]:
        """A knob that annotates axes: see ``AnnotateSpace``."""
        return self._define(AnnotateSpace, name, axes, policy, **kwargs)

    def define_knob(self, name: str, candidate: Sequence[Any]) -> list[Axis]:
        """A knob with these values."""
        return self._define(OtherOptionSpace, name, [], None, candidate=candidate)

    def multi_filter(self, filter: Callable[[ConfigEntity], bool]) -> None:
        """Keep only the points that pass a filter, which sees all knobs together. Define the knobs first."""
        self._filter, self._valid = filter, None

    def add_flop(self, flop: Any) -> None:
        """Say how many floating-point operations the template does, where they cannot be counted."""
        self.flop += float(getattr(flop, "value", flop))

    def raise_error(self, msg: str) -> None:
        """Report that this configuration is not valid."""
        self.errors.append(msg)

    def valid(self) -> bool:
        """True if no error was reported."""
        return not self.errors

    def get(self, index: int) -> ConfigEntity:
        """The configuration of an index."""
        if not 0 <= index < self.range_length:
            raise IndexError(f"index {index} is out of range: the space has {self.range_length} points")
        entities: dict[str, Any] = {}
        for (name, space), position in zip(self.space_map.items(), self.point2knob(index), strict=True):
            entities[name] = space[position]
        return ConfigEntity(index, self.code_hash, entities, self._constraints)

    @property
    def dims(self) -> list[int]:
        """The number of values of each knob."""
        return [len(space) for space in self.space_map.values()]

    @property
    def range_length(self) -> int:
        """The number of indices; a filter may leave fewer points."""
        return prod(self.dims)

    def is_index_valid(self, index: int) -> bool:
        """True for an index of the space that passes the filter."""
        if not 0 <= index < self.range_length:
            return False
        return self._filter is None or bool(self._filter(self.get(index)))

    @property
    def has_filter(self) -> bool:
        """True if not every index is a point."""
        return self._filter is not None

    def __len__(self) -> int:
        return self.range_length if self._filter is None else len(self.valid_indices())

    def __iter__(self) -> Iterator[ConfigEntity]:
        return (self.get(index) for index in range(self.range_length) if self.is_index_valid(index))

    def __getitem__(self, name: str) -> Any:
        """The entity of a knob; of a space, the first one that it has."""
        return self._entity_map[name]

    def __contains__(self, name: str) -> bool:
        return name in self._entity_map

    def _define(
        self, kind: type[TransformSpace], name: str, axes: Sequence[Any], policy: str | None, **kwargs: Any
    ) -> list[Axis]:
        if not self._collect:
            count = kind.get_num_output(axes, policy, **kwargs)  # type: ignore[arg-type]
            return [Axis(None, number) for number in range(count)]
        given = [axis if isinstance(axis, (VirtualAxis, Axis)) else self.axis(axis) for axis in axes]
        space = kind(given, policy, **kwargs)  # type: ignore[call-arg]
        self.space_map[name] = space
        # What a fallback configuration was given before stays.
        self._entity_map.setdefault(name, space[0])
        self._valid = None
        return [Axis(space, number) for number in range(space.num_output)]

    def __repr__(self) -> str:
        knobs = "\n".join(
            f"  {number:2d} {name}: {space}" for number, (name, space) in enumerate(self.space_map.items())
        )
        return f"ConfigSpace (len={len(self)}, range_length={self.range_length}, space_map=\n{knobs}\n)"


_WRITTEN: dict[type, tuple[str, str]] = {
    SplitEntity: ("sp", "size"),
    ReorderEntity: ("re", "perm"),
    AnnotateEntity: ("an", "anns"),
    OtherOptionEntity: ("ot", "val"),
}
"""How records name the kinds of entities, and the attribute that they keep."""
_READ: dict[str, type] = {short: kind for kind, (short, _) in _WRITTEN.items()}


class ConfigEntity(ConfigSpace):
    """One configuration: a value for each knob."""

    def __init__(
        self, index: int, code_hash: str | None, entity_map: dict[str, Any], constraints: Sequence[Any]
    ) -> None:
        super().__init__()
        self.index = index
        self._collect = False
        self._entity_map = entity_map
        self._constraints = list(constraints)
        self.code_hash = code_hash

    @property
    def entities(self) -> dict[str, Any]:
        """The value of each knob."""
        return self._entity_map

    def get_flatten_feature(self) -> np.ndarray[Any, Any]:
        """All values as numbers, in the order of the knobs."""
        found: list[float] = []
        for entity in self._entity_map.values():
            if isinstance(entity, SplitEntity):
                found += [float(size) for size in entity.size]
            elif isinstance(entity, OtherOptionEntity):
                found += _numbers(entity.val)
            elif isinstance(entity, ReorderEntity):
                found += [float(position) for position in entity.perm]
        return np.array(found, dtype=np.float32)

    def get_other_option(self) -> dict[str, Any]:
        """The values of knobs that ``define_knob`` made."""
        return {
            name: entity.val
            for name, entity in self._entity_map.items()
            if isinstance(entity, OtherOptionEntity)
        }

    def to_json_dict(self) -> dict[str, Any]:
        """The configuration as records keep it."""
        entities = []
        for name, entity in self._entity_map.items():
            if type(entity) not in _WRITTEN:
                raise InstantiationError(
                    f"the knob {name!r} has a value of {type(entity).__name__}, which records cannot keep"
                )
            short, attribute = _WRITTEN[type(entity)]
            entities.append([name, short, getattr(entity, attribute)])
        return {"index": int(self.index), "code_hash": self.code_hash, "entity": entities}

    @staticmethod
    def from_json_dict(json_dict: dict[str, Any]) -> ConfigEntity:
        """The configuration of a record."""
        entities: dict[str, Any] = {}
        for name, short, value in json_dict["entity"]:
            if short not in _READ:
                raise InstantiationError(
                    f"the knob {name!r} has the unknown kind {short!r}: it is one of {', '.join(_READ)}"
                )
            if short != "ot" and not isinstance(value, list):
                raise InstantiationError(f"the knob {name!r} of kind {short!r} has {value!r}, not a list")
            entities[str(name)] = _READ[short](value)
        return ConfigEntity(int(json_dict["index"]), json_dict.get("code_hash"), entities, [])

    def __repr__(self) -> str:
        shown = ", ".join(f"({name!r}, {entity})" for name, entity in self._entity_map.items())
        return f"[{shown}],{self.code_hash},{self.index}"


def _numbers(value: Any) -> list[float]:
    """A value as numbers; text by its letters, so that equal text is the same number in every process."""
    if isinstance(value, (list, tuple)):
        return [number for part in value for number in _numbers(part)]
    if value is None:
        return [-1.0]
    if isinstance(value, str):
        return [float(sum(value.encode()))]
    return [float(value)]


class FallbackConfigEntity(ConfigSpace):
    """The configuration where nothing is known of a workload: the first value of each knob, unless the template says
    otherwise with the methods here."""

    def __init__(self) -> None:
        super().__init__()
        self.is_fallback = True

    def fallback_split(self, name: str, constraints: Sequence[int]) -> None:
        """Split with the largest factors up to ``constraints``, one for each part, innermost first; -1 for no limit."""
        space = self.space_map[name]
        if not isinstance(space, SplitSpace) or len(constraints) != space.num_output:
            raise RuntimeError(f"the knob {name!r} is not a split into {len(constraints)} parts")
        sizes, left = [1] * space.num_output, space.product
        for position in reversed(range(space.num_output)):
            limit = constraints[position]
            fitting = [size for size in get_factors(left) if limit == -1 or size <= limit]
            if not fitting:
                raise RuntimeError(
                    f"the knob {name!r} has no split with parts of at most {list(constraints)}"
                )
            sizes[position] = fitting[-1]
            left //= fitting[-1]
        self._entity_map[name] = SplitEntity(sizes)

    def fallback_with_reference_log(self, ref_log: Sequence[tuple[Any, Any]]) -> None:
        """Take the configuration of the reference whose tiles have most factors in common with those possible here,
        adapted to the lengths of the axes."""
        splits = {name: space for name, space in self.space_map.items() if isinstance(space, SplitSpace)}
        best, best_score = None, 0.0
        for inp, _ in ref_log:
            config = inp.config
            if any(name not in config for name in self.space_map):
                continue
            score = sum(_common(space, config[name]) for name, space in splits.items())
            if score > best_score:
                best, best_score = config, score
        if best is None:
            return
        for name in splits:
            self.fallback_split(name, [-1, *best[name].size[1:]])
        for name in self.space_map:
            if name not in splits:
                self._entity_map[name] = best[name]

    def __setitem__(self, name: str, entity: Any) -> None:
        self._entity_map[name] = entity

    def __repr__(self) -> str:
        shown = ", ".join(f"({name!r}, {entity})" for name, entity in self._entity_map.items())
        return f"[{shown}],{self.code_hash}"


def _common(space: SplitSpace, entity: SplitEntity) -> float:
    """The share of an axis's factors that the tiles of an entity have too."""
    mine = set(get_factors(space.product))
    theirs = set(get_factors(max(abs(int(prod(entity.size))), 1)))
    return len(mine & theirs) / len(mine)


__all__ = [
    "AnnotateEntity",
    "AnnotateSpace",
    "Axis",
    "ConfigEntity",
    "ConfigSpace",
    "FallbackConfigEntity",
    "InstantiationError",
    "OtherOptionEntity",
    "OtherOptionSpace",
    "ReorderEntity",
    "ReorderSpace",
    "SplitEntity",
    "SplitSpace",
    "TransformSpace",
    "VirtualAxis",
    "get_factors",
    "get_pow2s",
]
