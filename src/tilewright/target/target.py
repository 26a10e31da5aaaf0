"""``Target``: what code is generated for.

A target is a kind, keys by which schedules are selected (most specific first), attributes (the options that were given,
and defaults) and, for a device that is driven by a CPU, the host. It is immutable; two targets are equal if all of
these are.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextvars import ContextVar
from types import MappingProxyType, TracebackType
from typing import Any, TypeAlias

from tilewright.runtime.device import Device
from tilewright.runtime.device import device as named_device
from tilewright.support.errors import HostWithoutTarget, TargetError
from tilewright.support.node import Object
from tilewright.target.kind import KINDS, TARGETS, TargetKind, get_kind, nearest
from tilewright.target.tag_table import TAGS
from tilewright.target.text import check_value, print_target, read_value, split_words

TargetLike: TypeAlias = "Target | str | Mapping[str, Any]"

# The targets whose ``with`` blocks enclose the running code, innermost last; each thread starts with none.
_ENTERED: ContextVar[tuple[Target, ...]] = ContextVar("tilewright_targets", default=())


class Target(Object):
    """A compilation target, made from a string, a JSON string, a dictionary, a tag or another target.

    ``Target("llvm -mcpu=skylake")``, ``Target({"kind": "cuda", "arch": "sm_80"}, host="llvm")``,
    ``Target("nvidia/geforce-rtx-3090")``. ``host`` replaces a host that the description names.
    """

    __slots__ = ("__weakref__", "_text", "attrs", "host", "keys", "kind", "tag")

    kind: TargetKind
    keys: tuple[str, ...]
    attrs: Mapping[str, Any]
    host: Target | None
    tag: str
    _text: str

    def __init__(self, target: TargetLike, host: TargetLike | None = None) -> None:
        if isinstance(target, Target):
            described = target.export()
        else:
            described = _read_config(target)
        if host is not None:
            described["host"] = _checked_host(host)
        self._fill(described)

    def _fill(self, config: dict[str, Any]) -> None:
        kind = get_kind(config.pop("kind"))
        tag = check_value(kind, "tag", config.pop("tag", ""))
        host = config.pop("host", None)
        own_keys = check_value(kind, "keys", config.pop("keys", []))
        given = {name: check_value(kind, name, value) for name, value in config.items()}
        attrs = {**kind.defaults, **(kind.detect(given) if kind.detect is not None else {}), **given}
        for name in attrs:
            if kind.option_type(name) == TARGETS:
                attrs[name] = [Target(element) for element in attrs[name]]
        device_key = [attrs["device"]] if attrs.get("device") else []
        keys = tuple(dict.fromkeys([*own_keys, *device_key, *kind.default_keys]))
        self._set(kind, keys, attrs, None if host is None else Target(_checked_host(host)), tag)

    def _set(
        self, kind: TargetKind, keys: tuple[str, ...], attrs: dict[str, Any], host: Target | None, tag: str
    ) -> None:
        for name, value in (
            ("kind", kind),
            ("keys", keys),
            ("attrs", MappingProxyType(attrs)),
            ("host", host),
            ("tag", tag),
            ("_text", print_target(kind, keys, attrs, host, tag)),
        ):
            object.__setattr__(self, name, value)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a target never changes; make a new one instead of setting {name!r}")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"a target never changes; {name!r} cannot be deleted")

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"Target({self._text!r})"

    def __eq__(self, other: object) -> bool:
        # The text form is faithful, so equal texts are equal targets.
        return self._text == other._text if isinstance(other, Target) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._text)

    def __reduce__(self) -> tuple[type[Target], tuple[str]]:
        return Target, (self._text,)

    def __enter__(self) -> Target:
        _ENTERED.set((*_ENTERED.get(), self))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _ENTERED.set(_ENTERED.get()[:-1])

    def export(self) -> dict[str, Any]:
        """The description as a dictionary that ``Target`` and ``json.dumps`` take."""
        config: dict[str, Any] = {"kind": self.kind.name, "tag": self.tag, "keys": list(self.keys)}
        for name, value in self.attrs.items():
            if isinstance(value, list):
                value = [element.export() if isinstance(element, Target) else element for element in value]
            config[name] = value
        if self.host is not None:
            config["host"] = self.host.export()
        return config

    def with_host(self, host: TargetLike | None = None) -> Target:
        """This target with another host, or without one."""
        config = self.export()
        config.pop("host", None)
        return Target(config, host)

    @staticmethod
    def from_device(device: str | Device) -> Target:
        """The target that compiles for a device of this machine: of an NVIDIA GPU, with its architecture and limits."""
        found = named_device(device) if isinstance(device, str) else device
        if not found.exist:
            raise TargetError(f"there is no {found} here, so nothing is known of it; write its target down")
        if found.kind == "cpu":
            return Target("llvm")
        version = found.compute_version
        if found.kind != "cuda" or version is None:
            raise TargetError(f"the driver of {found} does not say what code it takes; write its target down")
        number = int(version.replace(".", ""))
        return Target(
            {
                "kind": "cuda",
                # From Hopper on, the tensor cores' instructions are only in the variant "a" of each architecture.
                "arch": f"sm_{number}{'a' if number >= 90 else ''}",
                "max_num_threads": found.max_threads_per_block,
                "thread_warp_size": found.warp_size,
            }
        )

    @staticmethod
    def current(allow_none: bool = True) -> Target | None:
        """The target of the innermost ``with`` block; where there is none, None or an error."""
        entered = _ENTERED.get()
        if entered:
            return entered[-1]
        if allow_none:
            return None
        raise TargetError("no target is set; write 'with tvm.target.Target(...):' around this code")

    @property
    def max_num_threads(self) -> int:
        """The most threads that a block of this device can have."""
        return self._integer("max_num_threads")

    @property
    def thread_warp_size(self) -> int:
        """The number of threads that this device runs in step."""
        return self._integer("thread_warp_size")

    @property
    def max_function_args(self) -> int:
        """The most arguments that a kernel of this device can have; -1 if there is no limit."""
        return int(self.attrs.get("max_function_args", -1))

    @property
    def device_name(self) -> str:
        """The ``device`` attribute, such as ``arm_cpu`` or ``mali``; empty if it is not given."""
        return str(self.attrs.get("device", ""))

    @property
    def model(self) -> str:
        """The model of the device, ``unknown`` if it is not given."""
        return str(self.attrs.get("model", "unknown"))

    @property
    def mcpu(self) -> str:
        """The ``mcpu`` attribute; empty if it is not given."""
        return str(self.attrs.get("mcpu", ""))

    @property
    def mattr(self) -> list[str] | None:
        """The machine attributes such as ``+avx2``, or None if none are given."""
        given = self.attrs.get("mattr")
        return None if given is None else list(given)

    @property
    def libs(self) -> list[str]:
        """The external libraries that operators may use."""
        return list(self.attrs.get("libs", []))

    def _integer(self, name: str) -> int:
        if name not in self.attrs:
            raise TargetError(f"target '{self}' has no {name!r}: it is not a device with thread blocks")
        return int(self.attrs[name])

    @staticmethod
    def list_kinds() -> list[str]:
        """The names of all kinds."""
        return list(KINDS)

    @staticmethod
    def check_and_update_host_consist(
        target: Any, host: TargetLike | None = None, target_is_dict_key: bool = True
    ) -> tuple[Any, Target | None]:
        """``target`` with its host set, and that host.

        ``target`` is one target, or a dictionary with targets as its keys (or, with ``target_is_dict_key=False``,
        as its values); a host found in one entry serves those that follow.
        """
        if target is None:
            if host is not None:
                raise HostWithoutTarget(f"Target host is not empty when target is empty. The host is {host}")
            return None, None
        if isinstance(target, Mapping) and "kind" not in target and "tag" not in target:
            updated: dict[Any, Any] = {}
            for key, value in target.items():
                made = Target(key if target_is_dict_key else value, host)
                host = made.host
                updated[made if target_is_dict_key else key] = value if target_is_dict_key else made
            return updated, None if host is None else Target(host)
        made = Target(target, host)
        return made, made.host


def create(target: TargetLike) -> Target:
    """``Target(target)``, under its older name."""
    return Target(target)


def _checked_host(host: Any) -> Any:
    if not isinstance(host, Target | str | Mapping):
        raise TargetError(f"target host has to be a string or dictionary, or a Target, but is {host!r}")
    return host


def _read_config(target: Any) -> dict[str, Any]:
    """A new dictionary with a ``kind``, from a string, a JSON string, a tag or a dictionary."""
    if isinstance(target, Mapping):
        return _expand_tag(dict(target))
    if not isinstance(target, str):
        raise TargetError(f"target has to be a string or dictionary, or a Target, but is {target!r}")
    if target.lstrip().startswith("{"):
        try:
            config = json.loads(target)
        except (ValueError, RecursionError) as problem:
            raise TargetError(f"target string {target!r} is not valid JSON: {problem}") from None
        return _expand_tag(config)
    name, options = split_words(target)
    config = dict(TAGS[name], tag=name) if name in TAGS else {"kind": name}
    if name not in TAGS and name not in KINDS and "/" in name:
        raise TargetError(
            f"{name!r} is not a target tag{nearest(name, TAGS)}; tvm.target.tag.list_tags() gives all"
        )
    kind = get_kind(config["kind"])
    for option, value in options:
        config[option] = read_value(kind, option, value)
    return config


def _expand_tag(config: dict[str, Any]) -> dict[str, Any]:
    """The description with what its tag stands for, where it names a tag and no kind."""
    for name in config:
        if not isinstance(name, str):
            raise TargetError(f"in a target dictionary, {name!r} is not the name of an option")
    if "kind" not in config:
        tag = config.get("tag")
        if tag is None:
            raise TargetError(f"a target dictionary needs a 'kind' or a 'tag'; this one has {sorted(config)}")
        if not isinstance(tag, str) or tag not in TAGS:
            raise TargetError(f"{tag!r} is not a target tag{nearest(str(tag), TAGS)}")
        return {**TAGS[tag], **config}
    if not isinstance(config["kind"], str):
        raise TargetError(f"the kind of a target must be a string, but is {config['kind']!r}")
    return config
