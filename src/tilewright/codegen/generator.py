"""What a code generator is, and the registry that finds one by the kind of a target.

A generator turns a module of loop programs into code (``compile``), and codes into a runtime module (``link``). Code is
plain data: it can be made in another process and kept on disk. A new kind of target registers one generator, from its
own file: ``register(MyGenerator())``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Protocol

from tilewright.codegen.program import LoopProgram
from tilewright.runtime.module import Module
from tilewright.support.errors import TargetError
from tilewright.target.kind import nearest
from tilewright.target.target import Target


class Code(Protocol):
    """What a generator makes: the code of some functions."""

    @property
    def function_names(self) -> tuple[str, ...]:
        """The functions that callers may ask for."""

    def to_bytes(self) -> bytes:
        """The code as one block, which the generator's ``load`` reads."""

    def stages(self, target: Target) -> dict[str, str]:
        """The code in its readable forms, by file suffix, in the order in which they were made."""


class CodeGenerator(ABC):
    """Makes code for the kinds of target in ``kinds``."""

    kinds: tuple[str, ...]
    gives: str = "machine code"
    """What it makes, for lists of targets."""
    makes_host_code: bool = False
    """True if callers can call the code directly; other code is launched by a host's."""
    links_separate_code: bool = True
    """False where all functions of a library have to be generated together."""
    version: str = ""
    """Changes when the outside tools that make the code do; part of the key of the compile cache."""

    @abstractmethod
    def compile(self, program: LoopProgram, target: Target) -> Code:
        """The code of a module in flat form, after the passes of ``tir.build_pipeline``."""

    @abstractmethod
    def link(self, codes: Sequence[Code], target: Target) -> Module:
        """A runtime module with the functions of all codes, of which there is at least one."""

    @abstractmethod
    def load(self, block: bytes) -> Code:
        """The reverse of ``Code.to_bytes``; a ``TilewrightError`` or ``ValueError`` for a damaged block."""

    def cache_key(self, target: Target) -> str:
        """What decides the code beside the program and the target's own text."""
        return self.version


_GENERATORS: dict[str, CodeGenerator] = {}


def register(generator: CodeGenerator) -> CodeGenerator:
    """Use a generator for its kinds of target, in the place of one that was registered before."""
    for kind in generator.kinds:
        _GENERATORS[kind] = generator
    return generator


def generator_for(target: Target) -> CodeGenerator:
    """The generator of a target's kind; an error that lists the known kinds where there is none."""
    name = target.kind.name
    found = _GENERATORS.get(name)
    if found is None:
        raise TargetError(
            f"there is no code generator for targets of kind {name!r}{nearest(name, _GENERATORS)}; "
            f"there are generators for {', '.join(sorted(_GENERATORS))}"
        )
    return found


def known_kinds() -> list[str]:
    """The kinds of target that there are generators for."""
    return list(_GENERATORS)


def makes_host_code(target: Target) -> bool:
    """True if code for this target can be called directly, and can launch that of others."""
    found = _GENERATORS.get(target.kind.name)
    return found is not None and found.makes_host_code


def what_is_made(kind: str) -> str:
    """What is made for a kind of target, for people; empty where there is no generator for it."""
    found = _GENERATORS.get(kind)
    if found is None:
        return ""
    return f"{found.gives}; models" if found.makes_host_code else found.gives
