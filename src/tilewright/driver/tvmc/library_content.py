"""What is in a compiled library, read from its file. No code of it runs, so it may be for another machine."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tilewright.driver.tvmc.errors import TVMCException
from tilewright.runtime.aot_model import TYPE_KEY as AOT_KEY
from tilewright.runtime.aot_model import AOTModel
from tilewright.runtime.artefact import Archive, StoredModule, check_checksum, unpack_imports
from tilewright.runtime.elf import check_elf, machine_of
from tilewright.runtime.elf_symbols import ElfSymbols
from tilewright.runtime.graph_factory import TYPE_KEY as GRAPH_KEY
from tilewright.runtime.graph_factory import GraphExecutorFactory
from tilewright.runtime.loading import load_module
from tilewright.runtime.vm import TYPE_KEY as PROGRAM_KEY
from tilewright.runtime.vm import VMModule

Model = GraphExecutorFactory | VMModule | AOTModel
"""The forms in which a library carries a model."""


@dataclass(frozen=True)
class LibraryContent:
    """A library: its functions, what they need, and the model, if it carries one."""

    functions: tuple[str, ...]
    features: tuple[str, ...]
    """The CPU features that the code needs, by LLVM's names."""
    target: str
    """Empty where the library does not say."""
    machine: str
    model: Model | None


def read_library(path: Path) -> LibraryContent:
    """The content of a shared library or of an archive of objects."""
    if path.suffix == ".tar":
        archive = Archive.read(path)
        model = _model(unpack_imports(archive.imports, str(path)) if archive.imports else [])
        machine = next(filter(None, map(machine_of, archive.objects)), "") or archive.triple
        functions, features = tuple(archive.functions), tuple(archive.features)
        return LibraryContent(functions, features, archive.target, machine, model)
    content = path.read_bytes()
    check_checksum(content, str(path))
    check_elf(content, str(path), any_machine=True)
    processor = machine_of(content)
    if processor is None or content[4] != 2:
        return _loaded(path)
    symbols = ElfSymbols(content, str(path))
    return LibraryContent(
        _names(symbols.text_of("__tilewright_functions")),
        _names(symbols.text_of("__tilewright_features")),
        symbols.text_of("__tilewright_target"),
        processor,
        _model(_imports(symbols, path)),
    )


def _imports(symbols: ElfSymbols, path: Path) -> list[StoredModule]:
    size = symbols.bytes_of("__tilewright_imports_size", 8)
    if size is None:
        return []
    block = symbols.bytes_of("__tilewright_imports", int.from_bytes(size, "little"))
    return [] if block is None else unpack_imports(block, str(path))


def _loaded(path: Path) -> LibraryContent:
    """Of a format that is not read here (Windows, macOS): what the system's loader makes of it."""
    if path.read_bytes()[:2] not in (b"MZ", b"\xcf\xfa", b"\xca\xfe", b"\x7fE"):
        raise TVMCException(f"{path} is not a shared library, or it is damaged")
    library = load_module(path)
    found = [one for one in library.imported_modules if isinstance(one, Model)]
    return LibraryContent(
        library.function_names, library.features, library.target, "", found[0] if found else None
    )


def _model(stored: list[StoredModule]) -> Model | None:
    for one in stored:
        content = bytes(one.content)
        if one.type_key == GRAPH_KEY:
            return GraphExecutorFactory.load_from_bytes(one.type_key, content)
        if one.type_key == PROGRAM_KEY:
            return VMModule.load_from_bytes(one.type_key, content)
        if one.type_key == AOT_KEY:
            return AOTModel.load_from_bytes(one.type_key, content)
    return None


def _names(text: str) -> tuple[str, ...]:
    return tuple(name for name in text.split(",") if name)
