"""What a code generator takes: loop programs in flat form, with their text forms made when asked for."""

from __future__ import annotations

from functools import cached_property

from tilewright.ir.module import IRModule
from tilewright.ir.serialize import load_json, save_json


class LoopProgram:
    """A module of loop programs, held as a module or as its JSON: whichever was given, until the other is needed."""

    def __init__(self, module: IRModule | None = None, json: str | None = None) -> None:
        assert module is not None or json is not None
        self._module, self._json = module, json

    @cached_property
    def module(self) -> IRModule:
        """The functions."""
        if self._module is not None:
            return self._module
        assert self._json is not None
        made = load_json(self._json)
        assert isinstance(made, IRModule)
        return made

    @cached_property
    def json(self) -> str:
        """The module with every field of every node: equal programs have equal texts."""
        return save_json(self._module) if self._json is None else self._json

    def script(self) -> str:
        """The text form."""
        return self.module.script()
