"""Units: the code of some functions, for the host and for the devices that it launches kernels on.

``compile_unit`` is the only way from lowered loops to code. A unit is plain data until ``link`` makes a runtime module
of one or several.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tilewright.codegen import Code, LoopProgram, generator_for
from tilewright.compile.dump import dump_text
from tilewright.ir.module import IRModule
from tilewright.ir.transform import Sequential
from tilewright.runtime.module import Module
from tilewright.support.errors import TargetError, TilewrightError
from tilewright.support.options import dump_folder
from tilewright.target import Target
from tilewright.tir.build_pipeline import device_passes, host_passes, mixed_passes

_MAGIC = b"TWUNIT01"


@dataclass(frozen=True)
class Part:
    """Loops, ready for the code generator of a target."""

    target: Target
    program: LoopProgram

    def compile(self) -> Code:
        """The code."""
        return generator_for(self.target).compile(self.program, self.target)


@dataclass(frozen=True)
class Parts:
    """What a unit is compiled from: the host's functions, and the kernels of each device."""

    host: Part
    devices: tuple[Part, ...]

    @property
    def all(self) -> tuple[Part, ...]:
        """The host first."""
        return (self.host, *self.devices)

    def digest(self) -> str:
        """Names the code: equal for equal loops, targets and generators."""
        made = hashlib.sha256()
        for part in self.all:
            generator = generator_for(part.target)
            for text in (str(part.target), generator.cache_key(part.target), part.program.json):
                made.update(f"{len(text)} ".encode() + text.encode())
        return made.hexdigest()


@dataclass(frozen=True)
class CompiledPart:
    """The code of one target."""

    target: Target
    code: Code


@dataclass(frozen=True)
class Unit:
    """Compiled functions: the host's code, and the code of the devices that it launches."""

    host: CompiledPart
    devices: tuple[CompiledPart, ...] = ()

    def to_bytes(self) -> bytes:
        """The unit as one block."""
        parts = (self.host, *self.devices)
        blocks = [part.code.to_bytes() for part in parts]
        head = json.dumps(
            [[str(part.target), len(block)] for part, block in zip(parts, blocks, strict=True)]
        ).encode()
        return b"".join([_MAGIC, struct.pack("<I", len(head)), head, *blocks])

    @staticmethod
    def from_bytes(block: bytes) -> Unit:
        """The reverse; a ``TilewrightError`` or ``ValueError`` where the block is damaged."""
        start = len(_MAGIC) + 4
        if block[: len(_MAGIC)] != _MAGIC or len(block) < start:
            raise TilewrightError("not a compiled unit of this version")
        (size,) = struct.unpack_from("<I", block, len(_MAGIC))
        at = start + size
        parts = []
        for text, length in json.loads(block[start:at]):
            target = Target(text)
            parts.append(CompiledPart(target, generator_for(target).load(block[at : at + length])))
            at += length
        if not parts or at != len(block):
            raise TilewrightError("the compiled unit is damaged")
        return Unit(parts[0], tuple(parts[1:]))


def split(modules: Mapping[Target, IRModule], host: Target) -> Parts:
    """The host's functions and each target's kernels, after the passes that stand before code generators."""
    host_module = IRModule()
    devices = []
    for target, module in modules.items():
        mixed = Sequential(mixed_passes(target, host), name="mixed")(module)
        for variable, function in Sequential(host_passes(target, host), name="host")(mixed).functions.items():
            host_module[variable.name_hint] = function
        kernels = Sequential(device_passes(target, host), name="device")(mixed)
        if kernels.functions:
            devices.append(Part(target, LoopProgram(kernels)))
    return Parts(Part(host, LoopProgram(host_module)), tuple(devices))


def compile_parts(parts: Parts) -> Unit:
    """Code for the host and for every device."""
    compiled = [CompiledPart(part.target, part.compile()) for part in parts.all]
    return Unit(compiled[0], tuple(compiled[1:]))


def compile_unit(module: IRModule, target: Target, host: Target | None = None) -> Unit:
    """Code for a lowered module; ``host`` is where its functions are called from, the target itself by default."""
    return compile_modules({target: module}, target if host is None else host)


def compile_modules(modules: Mapping[Target, IRModule], host: Target) -> Unit:
    """Code for lowered modules of several targets, called from one host."""
    parts = split(modules, host)
    unit = compile_parts(parts)
    dump_stages(modules, parts, unit)
    return unit


def dump_stages(modules: Mapping[Target, IRModule], parts: Parts, unit: Unit) -> None:
    """Write the stages that all units have, if stages are wanted."""
    if dump_folder() is None:
        return
    names = [variable.name_hint for module in modules.values() for variable in module.functions]
    name = names[0] if names else "empty"
    for target, module in modules.items():
        dump_text(name, f"1-lowered.{target.kind.name}.py", module.script())
    for role, part, compiled in zip(
        ["host", *("device" for _ in unit.devices)], parts.all, (unit.host, *unit.devices), strict=True
    ):
        label = f"{role}.{part.target.kind.name}"
        dump_text(name, f"2-{label}.py", part.program.script())
        for suffix, text in compiled.code.stages(part.target).items():
            dump_text(name, f"3-{label}.{suffix}", text)


def link(units: Sequence[Unit], host: Target) -> Module:
    """A runtime module with the functions of all units; it imports one module for each device target."""
    # A module without functions still says that it has none.
    given = list(units) or [compile_modules({}, host)]
    if any(str(unit.host.target) != str(host) for unit in given):
        raise TargetError("units for different hosts cannot be linked into one module")
    built = generator_for(host).link([unit.host.code for unit in given], host)
    by_target: dict[str, list[CompiledPart]] = {}
    for unit in given:
        for part in unit.devices:
            by_target.setdefault(str(part.target), []).append(part)
    for parts in by_target.values():
        target = parts[0].target
        built.import_module(generator_for(target).link([part.code for part in parts], target))
    return built
