"""What the commands share: their error class, and argument parsing."""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from tilewright.driver.tvmc.errors import TVMCException
from tilewright.driver.tvmc.targets import (
    is_inline_json,
    parse_target,
    target_from_cli,
    tokenize_target,
    validate_targets,
)
from tilewright.ir.expr import Any as UnknownDimension
from tilewright.ir.module import IRModule
from tilewright.ir.op import Op
from tilewright.ir.pass_config import PassConfigError, list_configs
from tilewright.ir.transform import Pass, PassContext, Sequential
from tilewright.relay import transform
from tilewright.target.kind import nearest

# The operators whose data layout ``--desired-layout`` names; the weights stay as they are.
_LAYOUT_OPERATORS = ("nn.conv2d", "nn.conv2d_transpose", "qnn.conv2d")


def convert_graph_layout(mod: IRModule, desired_layout: str) -> IRModule:
    """The module with the data of its convolutions in a layout: NCHW or NHWC."""
    if desired_layout not in ("NCHW", "NHWC"):
        raise TVMCException(f"the layouts are NCHW and NHWC, not {desired_layout!r}")
    wanted = {name: [desired_layout, "default"] for name in _LAYOUT_OPERATORS if _converts_layout(name)}
    passes = [transform.RemoveUnusedFunctions(), transform.ConvertLayout(wanted), transform.FoldConstant()]
    with PassContext(opt_level=3):
        return Sequential(passes, name="tvmc.layout")(mod)


def _converts_layout(operator: str) -> bool:
    return operator in Op.list_op_names() and Op.get(operator).get_attr("FTVMConvertOpLayout") is not None


def tracker_host_port_from_cli(rpc_tracker_str: str | None) -> tuple[str | None, int | None]:
    """Host and port of ``host:port``; the port is 9090 where there is none."""
    if not rpc_tracker_str:
        return None, None
    host, separator, port = rpc_tracker_str.rpartition(":")
    if not separator:
        return rpc_tracker_str, 9090
    if not port.isdigit():
        raise TVMCException(f"the tracker {rpc_tracker_str!r} is not of the form host:port")
    return host, int(port)


def parse_pass_list_str(input_string: str) -> list[str]:
    """The passes of a list such as ``FoldConstant,AlterOpLayout``; an error for one that does not exist. An empty text
    gives one empty name, which no pass has."""
    names = [name.strip() for name in input_string.split(",")]
    known = {full.rpartition(".")[2] for full in Pass.registry} | set(Pass.registry)
    missing = [name for name in names if name and name not in known]
    if missing:
        hints = "".join(nearest(name, known) for name in missing[:1])
        raise argparse.ArgumentTypeError(
            f"there is no pass named {', '.join(missing)}{hints}; the passes are {', '.join(sorted(known))}"
        )
    return names


_SHAPE = re.compile(
    r"""\s*(?P<quote>["']?)(?P<name>[^"'\[\]]+?)(?P=quote)\s*:\s*\[(?P<extents>[^\[\]]*)\]\s*,?"""
)


def parse_shape_string(inputs_string: str) -> dict[str, list[Any]]:
    """Shapes by name from ``"image:[1,3,224,224] mask:[1,-1]"``; -1 or ? is a dimension that stays unknown, which
    becomes a ``relay.Any()``."""
    shapes: dict[str, list[Any]] = {}
    at = 0
    text = inputs_string.strip()
    while at < len(text):
        found = _SHAPE.match(text, at)
        if found is None:
            raise argparse.ArgumentTypeError(
                f"{text[at:]!r} is not a shape: write name:[1,3,224,224], separated by spaces"
            )
        extents = [extent.strip() for extent in found["extents"].split(",") if extent.strip()]
        try:
            shapes[found["name"].strip()] = [_extent(extent) for extent in extents]
        except ValueError:
            raise argparse.ArgumentTypeError(
                f"the shape of {found['name']!r} is [{found['extents']}], but extents are integers"
            ) from None
        at = found.end()
    if not shapes:
        raise argparse.ArgumentTypeError("no shape is given: write name:[1,3,224,224]")
    return shapes


def _extent(text: str) -> Any:
    value = -1 if text == "?" else int(text)
    return UnknownDimension() if value < 0 else value


_WORDS = {"true": True, "false": False, "1": True, "0": False}


def get_pass_config_value(name: str, value: str, config_type: str) -> Any:
    """The value of an option of a pass context from its text, as the option's type says."""
    if config_type in ("bool", "IntImm") and value.lower() in ("true", "false"):
        return _WORDS[value.lower()]
    if config_type == "bool":
        if value not in _WORDS:
            raise TVMCException(f"the option {name} must be true or false, not {value!r}")
        return _WORDS[value]
    if config_type in ("int", "IntImm"):
        try:
            return int(value)
        except ValueError:
            raise TVMCException(f"the option {name} is a whole number, not {value!r}") from None
    if config_type in ("str", "runtime.String"):
        return value
    try:
        return json.loads(value)
    except ValueError:
        raise TVMCException(
            f"the option {name} has fields: give them as JSON, such as '{{\"field\": 1}}', not {value!r}"
        ) from None


def parse_configs(input_configs: Sequence[str] | None) -> dict[str, Any]:
    """The options of a pass context from texts ``name=value``."""
    known: Mapping[str, Mapping[str, str]] = list_configs()
    configs: dict[str, Any] = {}
    for given in input_configs or ():
        name, separator, value = given.partition("=")
        if not separator or not value:
            raise TVMCException(f"a pass option is name=value, not {given!r}")
        if name not in known:
            raise TVMCException(
                f"there is no pass option {name!r}{nearest(name, known)}; they are {', '.join(sorted(known))}"
            )
        configs[name] = get_pass_config_value(name, value, known[name]["type"])
    try:
        PassContext(config=configs)
    except PassConfigError as problem:
        raise TVMCException(str(problem)) from problem
    return configs


__all__ = [
    "TVMCException",
    "convert_graph_layout",
    "get_pass_config_value",
    "is_inline_json",
    "parse_configs",
    "parse_pass_list_str",
    "parse_shape_string",
    "parse_target",
    "target_from_cli",
    "tokenize_target",
    "tracker_host_port_from_cli",
    "validate_targets",
]
