"""Descriptions of executors and runtimes: a name, and options of known types with their defaults.

``Executor("aot", {"interface-api": "c"})`` and ``Runtime("c", {"system-lib": True})`` say in one value what the options
``-executor``, ``-runtime`` and so on of a target say in its text.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from tilewright.support.errors import TilewrightError

_TEXT, _INTEGER = "runtime.String", "IntImm"
_LINK: dict[str, tuple[str, Any]] = {"link-params": (_INTEGER, False)}


class _Description:
    """A name from a table, and values for the options that the table has under it."""

    _word: ClassVar[str]
    _table: ClassVar[dict[str, dict[str, tuple[str, Any]]]]

    def __init__(self, name: str, options: Mapping[str, Any] | None = None) -> None:
        known = self._known(name)
        self.name = name
        self.attrs = {key: default for key, (_, default) in known.items() if default is not None}
        for key, value in (options or {}).items():
            if key not in known:
                raise TilewrightError(
                    f'Attribute "{key}" is not available on this {self._word}; it has: {", ".join(known) or "none"}'
                )
            wanted, found = known[key][0], _TEXT if isinstance(value, str) else _INTEGER
            if found != wanted:
                raise TilewrightError(
                    f'Attribute "{key}" should have type "{wanted}" but instead found "{found}"'
                )
            self.attrs[key] = value

    @classmethod
    def _known(cls, name: str) -> dict[str, tuple[str, Any]]:
        if name not in cls._table:
            raise TilewrightError(f'{cls._word} "{name}" is not defined; there are: {", ".join(cls._table)}')
        return cls._table[name]

    def __getitem__(self, key: str) -> Any:
        return self.attrs[key]

    def __contains__(self, key: str) -> bool:
        return key in self.attrs

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"{self._word}({self.name!r}, {self.attrs})"

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash((self._word, self.name))

    @classmethod
    def list_registered(cls) -> list[str]:
        """The names of all that there are."""
        return list(cls._table)

    @classmethod
    def list_registered_options(cls, name: str | _Description) -> dict[str, str]:
        """The options of one of them, each with the name of its type."""
        return {key: kind for key, (kind, _) in cls._known(str(name)).items()}

    def target_options(self) -> dict[str, Any]:
        """The options as those of a target; what is not asked for is left out."""
        return {key: value for key, value in self.attrs.items() if value}


class Executor(_Description):
    """What runs a model: "graph" or "aot"."""

    _word = "Executor"
    _table: ClassVar = {
        "graph": _LINK,
        "aot": {**_LINK, "unpacked-api": (_INTEGER, None), "interface-api": (_TEXT, None)},
    }

    @staticmethod
    def list_executors() -> list[str]:
        """The names of all executors."""
        return Executor.list_registered()

    @staticmethod
    def list_executor_options(executor: str | Executor) -> dict[str, str]:
        """The options of an executor, each with the name of its type."""
        return Executor.list_registered_options(executor)


class Runtime(_Description):
    """What a model is linked with: "cpp", or "crt" and "c" where there is no operating system."""

    _word = "Runtime"
    _table: ClassVar = {name: {"system-lib": (_INTEGER, None)} for name in ("cpp", "c", "crt")}

    @staticmethod
    def list_runtimes() -> list[str]:
        """The names of all runtimes."""
        return Runtime.list_registered()

    @staticmethod
    def list_runtime_options(runtime: str | Runtime) -> dict[str, str]:
        """The options of a runtime, each with the name of its type."""
        return Runtime.list_registered_options(runtime)
