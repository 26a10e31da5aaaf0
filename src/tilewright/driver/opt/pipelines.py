"""The pipelines of the compiler by name, and pipelines from text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from tilewright.ir.pass_text import parse_passes
from tilewright.ir.transform import Pass, PassContext, Sequential
from tilewright.relay.pipeline import fusing_passes, prepare_passes
from tilewright.runtime.device import Device
from tilewright.support.errors import ModelError
from tilewright.target import Target
from tilewright.tir.build_pipeline import device_passes, host_passes, mixed_passes
from tilewright.tir.pipeline import lowering_passes


def _host(target: Target) -> Target:
    """The target of the code that launches kernels: the processor itself where it is the target."""
    if target.kind.device_type == Device.STR2MASK["cpu"]:
        return target
    return target.host or Target("llvm")


PIPELINES: dict[str, Callable[[Target], list[Pass]]] = {
    "prepare": prepare_passes,
    "fuse": fusing_passes,
    "lower": lambda target: lowering_passes(),
    "host": lambda target: [*mixed_passes(target, _host(target)), *host_passes(target, _host(target))],
    "device": lambda target: [*mixed_passes(target, _host(target)), *device_passes(target, _host(target))],
}
"""Passes by the name of their pipeline, for a target and the current pass context."""


def passes_of(names: Iterable[str], target: Target) -> list[Pass]:
    """The passes of pipelines, one after another, that the current context enables."""
    return [enabled for name in names for each in PIPELINES[name](target) for enabled in _enabled(each)]


def _enabled(each: Pass) -> Sequence[Pass]:
    """A pass if the current context runs it; of a sequence that it runs in part, that part."""
    if not isinstance(each, Sequential):
        return [each] if PassContext.current().enabled(each.info) else []
    parts = [enabled for part in each.passes for enabled in _enabled(part)]
    return [each] if len(parts) == len(each.passes) else parts


def passes_from_text(text: str) -> list[Pass]:
    """Passes as ``--passes`` gives them: their text, or ``@`` and the name of a file that holds it."""
    if text.startswith("@"):
        file = Path(text[1:])
        if not file.is_file():
            raise ModelError(f"there is no file {text[1:]} with passes")
        text = file.read_text(encoding="utf-8")
    return parse_passes(text)


def pipeline_text(passes: Iterable[Pass]) -> str:
    """Passes as text to edit and give back, one a line."""
    return ",\n".join(map(str, passes)) + "\n"
