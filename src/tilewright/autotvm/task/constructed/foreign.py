"""Records of TVM's own templates: their tiles, where these are register tiles that a schedule here can have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tilewright.autotvm.task.space import ConfigEntity, OtherOptionEntity, SplitEntity
from tilewright.schedule.decisions import Decision

_TILES = "tile"


def is_foreign(config: Any) -> bool:
    """True for a configuration that a template of TVM's defined."""
    return isinstance(config, ConfigEntity) and any(
        isinstance(entity, SplitEntity) or name in _ITS_OWN for name, entity in config.entities.items()
    )


_ITS_OWN = {"unroll_kw", "tile_oh", "auto_unroll_max_step", "unroll_explicit"}


def translated(
    task: str, config: ConfigEntity, asked: Mapping[str, Decision]
) -> tuple[dict[str, Any], list[str]]:
    """The choices here that a record of TVM's says, and the names of its knobs that say nothing here."""
    knobs = {name: _size(entity) for name, entity in config.entities.items()}
    wanted = _register_tile(task, knobs)
    used: set[str] = set()
    choices: dict[str, Any] = {}
    if wanted is not None and _TILES in asked:
        rows, columns, names = wanted
        fitting = [
            tile for tile in asked[_TILES].candidates if _rows(tile) == rows and tile[2] * tile[3] == columns
        ]
        if fitting:
            choices[_TILES] = fitting[0]
            used.update(names)
    if knobs.get("unroll_kw") is not None and "unroll_window" in asked:
        choices["unroll_window"] = bool(knobs["unroll_kw"])
        used.add("unroll_kw")
    return choices, [name for name in knobs if name not in used]


def _rows(tile: tuple[int, ...]) -> int:
    return tile[0] * tile[1]


def _size(entity: Any) -> Any:
    """The innermost size of a split, or a value."""
    if isinstance(entity, SplitEntity):
        return entity.size[-1]
    return entity.val if isinstance(entity, OtherOptionEntity) else None


def _register_tile(task: str, knobs: Mapping[str, Any]) -> tuple[int, int, list[str]] | None:
    """Rows and columns of results that TVM's template keeps in registers, and the knobs that say so."""
    if "conv2d_NCHWc" in task and {"tile_ow", "tile_oc"} <= set(knobs):
        return (
            int(knobs["tile_ow"]) * int(knobs.get("tile_oh") or 1),
            int(knobs["tile_oc"]),
            ["tile_ow", "tile_oc", "tile_ic", "tile_oh"],
        )
    if {"tile_y", "tile_x"} <= set(knobs):
        return int(knobs["tile_y"]), int(knobs["tile_x"]), ["tile_y", "tile_x"]
    return None
