"""Code generators that write source text, for a compiler that runs later."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tilewright.codegen.generator import Code, CodeGenerator
from tilewright.codegen.program import LoopProgram
from tilewright.ir.module import IRModule
from tilewright.runtime.loading import register_module_loader
from tilewright.runtime.module import Module, SourceModule
from tilewright.target.target import Target


@dataclass(frozen=True)
class SourceCode:
    """Source text, and the names of its functions. ``suffix`` is that of a file with such text."""

    function_names: tuple[str, ...]
    text: str
    suffix: str

    def to_bytes(self) -> bytes:
        """As JSON."""
        return json.dumps([self.function_names, self.text, self.suffix]).encode()

    def stages(self, target: Target) -> dict[str, str]:
        """The text is the only form."""
        return {self.suffix: self.text}


class SourceGenerator(CodeGenerator):
    """A generator made of a function that prints a module, and one that lists the module's functions.

    Helper functions are printed once, at the head of the text, so all kernels of a library are printed together.
    """

    links_separate_code = False

    def __init__(
        self,
        kind: str,
        suffix: str,
        generate: Callable[[IRModule], str],
        names: Callable[[IRModule], list[str]],
        module_class: type[SourceModule] = SourceModule,
        makes_host_code: bool = False,
        language: str = "",
    ) -> None:
        self.kinds = (kind,)
        self.gives = f"{language or kind} source"
        self.makes_host_code = makes_host_code
        self.suffix = suffix
        self.generate = generate
        self.names = names
        self.module_class = module_class
        register_module_loader(kind, SourceModule.load_from_bytes)

    def compile(self, program: LoopProgram, target: Target) -> SourceCode:
        """Print the module."""
        return SourceCode(tuple(self.names(program.module)), self.generate(program.module), self.suffix)

    def link(self, codes: Sequence[Code], target: Target) -> Module:
        """A module that holds the text."""
        (code,) = codes
        assert isinstance(code, SourceCode)
        return self.module_class(
            code.text, format=self.suffix, type_key=self.kinds[0], function_names=code.function_names
        )

    def load(self, block: bytes) -> SourceCode:
        """From JSON."""
        names, text, suffix = json.loads(block)
        return SourceCode(tuple(names), text, suffix)
