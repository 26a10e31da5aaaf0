"""The table of tasks: which operator's calls each is made from, under which name, and with which arguments.

Names and arguments are those of TVM 0.8, so that its records are of the same workloads.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from tilewright.autotvm.task.constructed.description import Description
from tilewright.autotvm.task.constructed.kinds_of_windows import (
    conv1d_arguments,
    conv1d_call,
    conv2d_blocked_arguments,
    conv2d_blocked_call,
    conv2d_grouped_arguments,
    conv2d_grouped_call,
    conv2d_nhwc_arguments,
    conv2d_nhwc_call,
    conv2d_plain_arguments,
    conv2d_plain_call,
    conv3d_arguments,
    conv3d_call,
    transposed_arguments,
    transposed_call,
)
from tilewright.autotvm.task.constructed.other_kinds import (
    any_arguments,
    any_call,
    batch_matmul_arguments,
    batch_matmul_call,
    dense_arguments,
    dense_call,
)
from tilewright.target.target import Target

Arguments = Callable[[Description], tuple[Any, ...] | None]
"""From a call to a task's arguments; None if the call is not of this kind."""


@dataclass(frozen=True)
class Kind:
    """A kind of task. ``fixed`` are the choices of graph passes that distinguish it from others of the same call;
    ``is_rewritten``: graph passes may make other operators of such calls, so that they are extracted only where they
    are asked for by name."""

    name: str
    key: str
    operator: str
    arguments: Arguments
    call: Callable[..., Any]
    fixed: Mapping[str, str] = field(default_factory=dict)
    is_rewritten: bool = False
    is_default: bool = True


PACKED, WHOLE = "packed", "whole"
"""What a task fixes about the weight of a dense layer."""


def _dense_batch(call: Description, is_small: bool) -> tuple[Any, ...] | None:
    is_int8 = call.tensors[0][2] in ("int8", "uint8")
    if is_int8 or (call.tensors[0][1][0] < 32) != is_small:
        return None
    return dense_arguments(call)


def _dense_int8(call: Description) -> tuple[Any, ...] | None:
    return dense_arguments(call) if call.tensors[0][2] in ("int8", "uint8") else None


def _integers(arguments: Arguments, wanted: bool) -> Arguments:
    """The same for tensors of 8-bit integers only, or for all others."""

    def selected(call: Description) -> tuple[Any, ...] | None:
        return arguments(call) if (call.tensors[0][2] in ("int8", "uint8")) == wanted else None

    return selected


def _of_form(arguments: Callable[[Description, str], tuple[Any, ...] | None], form: str) -> Arguments:
    return lambda call: arguments(call, form)


_WINDOWS: Final = ("max_pool1d", "max_pool2d", "max_pool3d", "avg_pool1d", "avg_pool2d", "avg_pool3d")
_OTHERS: Final = tuple(
    f"nn.{name}"
    for name in (
        *_WINDOWS,
        *("global_max_pool2d", "global_avg_pool2d", "adaptive_avg_pool2d", "adaptive_max_pool2d"),
        *("softmax", "log_softmax", "lrn"),
    )
)


def _kinds_of_cpu(suffix: str) -> list[Kind]:
    plain = _of_form(conv2d_blocked_arguments, "plain")
    depthwise = _of_form(conv2d_blocked_arguments, "depthwise")
    return [
        Kind(f"conv2d_NCHWc.{suffix}", suffix, "nn.conv2d", _integers(plain, False), conv2d_blocked_call),
        Kind(f"conv2d_NCHWc_int8.{suffix}", suffix, "nn.conv2d", _integers(plain, True), conv2d_blocked_call),
        Kind(
            f"depthwise_conv2d_NCHWc.{suffix}",
            suffix,
            "nn.conv2d",
            depthwise,
            partial(conv2d_blocked_call, depthwise=True),
        ),
        Kind(
            f"group_conv2d_nchw.{suffix}", suffix, "nn.conv2d", conv2d_grouped_arguments, conv2d_grouped_call
        ),
        Kind(
            f"dense_nopack.{suffix}", suffix, "nn.dense", dense_arguments, dense_call, fixed={"block": WHOLE}
        ),
        Kind(
            f"dense_pack.{suffix}", suffix, "nn.dense", dense_arguments, dense_call, fixed={"block": PACKED}
        ),
        Kind(f"batch_matmul.{suffix}", suffix, "nn.batch_matmul", batch_matmul_arguments, batch_matmul_call),
        *_kinds_of_all(suffix),
    ]


def _kinds_of_gpu(suffix: str) -> list[Kind]:
    plain = _of_form(conv2d_plain_arguments, "plain")
    depthwise = _of_form(conv2d_plain_arguments, "depthwise")
    return [
        Kind(f"conv2d_nchw.{suffix}", suffix, "nn.conv2d", plain, conv2d_plain_call),
        Kind(
            f"depthwise_conv2d_nchw.{suffix}",
            suffix,
            "nn.conv2d",
            depthwise,
            partial(conv2d_plain_call, depthwise=True),
        ),
        Kind(
            f"group_conv2d_nchw.{suffix}", suffix, "nn.conv2d", conv2d_grouped_arguments, conv2d_grouped_call
        ),
        Kind("dense_small_batch.gpu", suffix, "nn.dense", lambda call: _dense_batch(call, True), dense_call),
        Kind("dense_large_batch.gpu", suffix, "nn.dense", lambda call: _dense_batch(call, False), dense_call),
        Kind(f"dense_int8.{suffix}", suffix, "nn.dense", _dense_int8, dense_call),
        Kind(f"batch_matmul.{suffix}", suffix, "nn.batch_matmul", batch_matmul_arguments, batch_matmul_call),
        *_kinds_of_all(suffix),
    ]


def _kinds_of_all(suffix: str) -> list[Kind]:
    made = [
        Kind(
            f"conv2d_nhwc.{suffix}",
            suffix,
            "nn.conv2d",
            _of_form(conv2d_nhwc_arguments, "plain"),
            conv2d_nhwc_call,
        ),
        Kind(
            f"depthwise_conv2d_nhwc.{suffix}",
            suffix,
            "nn.conv2d",
            _of_form(conv2d_nhwc_arguments, "depthwise"),
            partial(conv2d_nhwc_call, depthwise=True),
        ),
        Kind(
            f"conv2d_transpose_nchw.{suffix}",
            suffix,
            "nn.conv2d_transpose",
            transposed_arguments,
            transposed_call,
            is_rewritten=True,
        ),
    ]
    for rank, layouts in ((1, ("NCW", "NWC")), (3, ("NCDHW", "NDHWC"))):
        arguments, call = (conv1d_arguments, conv1d_call) if rank == 1 else (conv3d_arguments, conv3d_call)
        for layout in layouts:
            made.append(
                Kind(
                    f"conv{rank}d_{layout.lower()}.{suffix}",
                    suffix,
                    f"nn.conv{rank}d",
                    _of_form(arguments, layout),
                    _with_layout(call, layout),
                    is_rewritten=True,
                )
            )
    return made + [
        Kind(
            f"{name.removeprefix('nn.')}.{suffix}",
            suffix,
            name,
            any_arguments,
            _with_operator(name),
            is_default=False,
        )
        for name in _OTHERS
    ]


def _with_layout(call: Callable[..., Any], layout: str) -> Callable[..., Any]:
    return lambda *args: call(layout, *args)


def _with_operator(name: str) -> Callable[..., Any]:
    return lambda *args: any_call(name, *args)


KINDS: Final[dict[str, Kind]] = {
    kind.name: kind for kind in (*_kinds_of_cpu("x86"), *_kinds_of_cpu("arm_cpu"), *_kinds_of_gpu("cuda"))
}
"""The kinds of tasks by name."""


def suffix_of(target: Target) -> str | None:
    """How TVM ends the names of tasks for a target; None if there are no tasks for it."""
    if "arm_cpu" in target.keys:
        return "arm_cpu"
    if "cpu" in target.keys:
        return "x86"
    return "cuda" if "cuda" in target.keys else None


def workloads_of(call: Description, target: Target, everything: bool = True) -> list[tuple[Any, ...]]:
    """The workloads that a call is, one for each kind of task; unless ``everything``, of the kinds that are extracted
    without being asked for."""
    suffix = suffix_of(target)
    found: list[tuple[Any, ...]] = []
    for kind in KINDS.values():
        if kind.key == suffix and kind.operator == call.operator and (everything or kind.is_default):
            arguments = kind.arguments(call)
            if arguments is not None:
                found.append((kind.name, *arguments))
    return found


def operators_with_tasks() -> Sequence[str]:
    """The operators whose calls are tasks, the most used first."""
    return list(dict.fromkeys(kind.operator for kind in KINDS.values()))
