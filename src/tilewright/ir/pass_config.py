"""The options that passes read from a ``PassContext``: every key, its type and its default.

An option is a plain value (bool, int, str), or a frozen dataclass for a pass with several, which users give as a
dictionary. An unregistered key is an error that lists the registered ones.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tilewright.ir.expr import IntImm, StringImm
from tilewright.support.errors import TilewrightError


class PassConfigError(TilewrightError, AttributeError, ValueError):
    """A key of a pass context is not known, or its value has another type than the pass expects."""


@dataclass(frozen=True)
class UnrollLoopConfig:
    """``tir.UnrollLoop``: which loops are unrolled without being asked, and how."""

    auto_max_step: int = 0
    auto_max_depth: int = 8
    auto_max_extent: int = 0
    explicit_unroll: bool = True


@dataclass(frozen=True)
class LoopPartitionConfig:
    """``tir.LoopPartition``: whether loops of constant extent are split at their conditions."""

    partition_const_loop: bool = False
    no_unroll_loop_with_extent_one: bool = False


@dataclass(frozen=True)
class HoistIfThenElseConfig:
    """``tir.HoistIfThenElse``: whether conditions also move out of blocks."""

    support_block_scope_hosting: bool = False


@dataclass(frozen=True)
class InjectDoubleBufferConfig:
    """``tir.InjectDoubleBuffer``: by how much the loop around a doubled buffer is split."""

    split_loop: int = 1


def with_own_options(config: Any, given: Any) -> Any:
    """The options of a context with those that a pass sets itself: its fields of the same names, unless None."""
    own = {field.name: getattr(given, field.name, None) for field in dataclasses.fields(config)}
    changed = {name: value for name, value in own.items() if value is not None}
    return dataclasses.replace(config, **changed) if changed else config


@dataclass(frozen=True)
class ConfigOption:
    """One key: the type of its value and its default."""

    key: str
    value_type: type
    default: Any

    def check(self, value: Any) -> Any:
        """The value in the option's type; an error where it has none."""
        if isinstance(value, IntImm):
            value = bool(value.value) if self.value_type is bool else value.value
        elif isinstance(value, StringImm):
            value = value.value
        if isinstance(value, self.value_type) and not (self.value_type is int and isinstance(value, bool)):
            return value
        if self.value_type is bool and isinstance(value, int):
            return bool(value)
        if self.value_type is tuple and isinstance(value, list):
            return tuple(value)
        if dataclasses.is_dataclass(self.value_type) and isinstance(value, Mapping):
            return self._structure(value)
        raise PassConfigError(
            f"option {self.key!r} expects {self.value_type.__name__}, not {value!r} of type {type(value).__name__}"
        )

    def _structure(self, value: Mapping[str, Any]) -> Any:
        """The option's dataclass from a dictionary of its fields."""
        fields = {field.name: field for field in dataclasses.fields(self.value_type)}
        unknown = [name for name in value if name not in fields]
        if unknown:
            raise PassConfigError(
                f"option {self.key!r} has no field {', '.join(map(repr, unknown))}; it has {', '.join(fields)}"
            )
        checked = {
            name: ConfigOption(f"{self.key}.{name}", type(fields[name].default), fields[name].default).check(
                given
            )
            for name, given in value.items()
        }
        return self.value_type(**checked)


_OPTIONS: dict[str, ConfigOption] = {}


def register_config(key: str, value_type: type, default: Any = None) -> ConfigOption:
    """Make a key known. Registering it again with another type is an error."""
    known = _OPTIONS.get(key)
    if known is not None and known.value_type is not value_type:
        raise PassConfigError(f"option {key!r} is already known with the type {known.value_type.__name__}")
    if default is None and dataclasses.is_dataclass(value_type):
        default = value_type()
    option = _OPTIONS[key] = ConfigOption(key, value_type, default)
    return option


def config_option(key: str) -> ConfigOption:
    """The option of this key; an error that names the known keys where there is none."""
    found = _OPTIONS.get(key)
    if found is None:
        raise PassConfigError(
            f"{key!r} is not an option of a pass context; the options are {', '.join(sorted(_OPTIONS))}"
        )
    return found


def list_configs() -> dict[str, dict[str, str]]:
    """Every key with the name of its type."""
    return {key: {"type": option.value_type.__name__} for key, option in sorted(_OPTIONS.items())}


register_config("tir.UnrollLoop", UnrollLoopConfig)
register_config("tir.LoopPartition", LoopPartitionConfig)
register_config("tir.HoistIfThenElse", HoistIfThenElseConfig)
register_config("tir.InjectDoubleBuffer", InjectDoubleBufferConfig)
register_config("tir.noalias", bool, True)
register_config("tir.detect_global_barrier", bool, False)
register_config("tir.instrument_bound_checkers", bool, False)
register_config("tir.disable_assert", bool, False)
register_config("tir.disable_vectorize", bool, False)
register_config("tir.is_entry_func", bool, False)
register_config("tir.debug_keep_trivial_loop", bool, False)
register_config("tir.add_lower_pass", tuple, ())
register_config("tir.strict_float32", bool, False)
register_config("relay.FuseOps.max_depth", int, 256)
register_config("relay.winograd.largest_tile", int, 6)
register_config("relay.fallback_device_type", int, 1)
register_config("relay.check_indices", bool, False)
register_config("relay.backend.use_auto_scheduler", bool, False)
