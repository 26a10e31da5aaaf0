"""``export_library``: a module and all it imports, as one file that loads anywhere.

A shared library has the runtime inside, with hidden symbols: it needs no Tilewright where it runs. Where there is
no C compiler to link one, it is linked here (see ``elf_linker``), without the runtime. A tar archive holds the same
objects without the runtime, for a machine that links or JIT-links them itself.
"""

from __future__ import annotations

import struct
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tilewright.runtime.artefact import Archive, StoredModule, append_checksum, pack_imports
from tilewright.runtime.elf_linker import link, links
from tilewright.runtime.failure import failure
from tilewright.runtime.wasm_export import link_wasm
from tilewright.support.cbuild import (
    Triple,
    embedded_objects,
    find_compiler,
    has_compiler,
    host_triple,
    link_shared,
    write_beside,
    write_bytes,
)

if TYPE_CHECKING:
    from tilewright.runtime.module import Module

_DATA = """\
/* Written by export_library: the data that travels with the code. */
#if defined(_WIN32)
#define EXPORTED __declspec(dllexport)
#else
#define EXPORTED
#endif
EXPORTED const char __tilewright_functions[] = "{functions}";
EXPORTED const char __tilewright_features[] = "{features}";
EXPORTED const char __tilewright_target[] = "{target}";
{imports}"""

_IMPORTS = """\
extern const char __tilewright_imports[];
extern EXPORTED const unsigned long long __tilewright_imports_size;
const unsigned long long __tilewright_imports_size = {size}ull;
#if defined(__APPLE__)
#define NAME "___tilewright_imports"
#define SECTION ".const_data"
#elif defined(_WIN32)
#define NAME "__tilewright_imports"
#define SECTION ".section .rdata,\\"dr\\""
#else
#define NAME "__tilewright_imports"
#define SECTION ".section .rodata"
#endif
__asm__(SECTION "\\n.globl " NAME "\\n.p2align 4\\n" NAME ":\\n.incbin \\"{path}\\"\\n.text\\n");
#if defined(_WIN32)
__asm__(".section .drectve,\\"yn\\"\\n.ascii \\" -export:__tilewright_imports,data\\"\\n.text\\n");
#endif
"""


class _Collected:
    """A module tree, sorted into what links and what is carried as data."""

    def __init__(self, root: Module) -> None:
        self.objects: list[bytes] = []
        self.functions: list[str] = []
        self.features: list[str] = []
        self.stored: list[StoredModule] = []
        self.triple = root.target_triple
        self.target = root.target
        self._collect(root)

    def _collect(self, root: Module) -> None:
        pending: list[tuple[Module, int]] = [(root, -1)]
        seen: list[Module] = []
        while pending:
            module, parent = pending.pop(0)
            if any(module is other for other in seen):
                continue
            seen.append(module)
            code = module.object_codes()
            data = None if code else module.save_to_bytes()
            if code:
                self.objects += code
                self.functions += module.function_names
                self.features += [name for name in module.features if name not in self.features]
                index = parent
            elif data is not None and module is not root:
                self.stored.append(StoredModule(module.storage_key, data, parent))
                index = len(self.stored) - 1
            else:
                raise failure(
                    "ValueError",
                    f"a {module.type_key} module cannot be exported: it has neither object code nor a stored form",
                )
            pending += [(imported, index) for imported in module.imported_modules]

    def archive(self) -> Archive:
        """The content of a tar archive."""
        imports = pack_imports(self.stored) if self.stored else b""
        return Archive(self.objects, self.functions, self.features, self.triple, imports, target=self.target)


def export_library(
    module: Module,
    file_name: str,
    fcompile: Callable[..., Any] | None = None,
    addons: Sequence[str] | None = None,
    workspace_dir: str | None = None,
    options: Sequence[str] | None = None,
    **kwargs: Any,
) -> None:
    """Writes ``.so`` (or ``.dll``, ``.dylib``), ``.tar`` or ``.o``; see ``Module.export_library``."""
    path = Path(file_name)
    fcompile = fcompile or None  # older programs say False
    collected = _Collected(module)
    if path.suffix == ".o" and not collected.stored and not module.imported_modules:
        code = module.object_code()
        collected.objects = [] if code is None else [code]
    if path.suffix == ".o" and fcompile is None:
        _export_object(collected, path, addons)
    elif path.suffix == ".tar" or getattr(fcompile, "output_format", None) == "tar":
        archive = collected.archive()
        archive.objects += [Path(addon).read_bytes() for addon in addons or ()]
        if options:
            kwargs = {**kwargs, "options": list(options)}
        with tempfile.TemporaryDirectory(dir=workspace_dir) as folder:
            _pack(archive, path, Path(folder), fcompile, kwargs)
    else:
        with tempfile.TemporaryDirectory(dir=workspace_dir) as folder:
            _export_shared(collected, path, Path(folder), fcompile, addons or (), options or (), kwargs)


def _pack(
    archive: Archive, path: Path, folder: Path, fcompile: Callable[..., Any] | None, kwargs: dict[str, Any]
) -> None:
    """Write an archive. An ``fcompile``, such as ``contrib.tar.tar``, is given the files that are in one."""
    if fcompile is None:
        write_beside(path, archive.write)
        return
    members = {folder / name: content for name, content in archive.members().items()}
    for file, content in members.items():
        file.write_bytes(content)
    write_beside(path, lambda temporary: fcompile(str(temporary), [str(file) for file in members], **kwargs))


def _export_object(collected: _Collected, path: Path, addons: Sequence[str] | None) -> None:
    if len(collected.objects) != 1 or collected.stored or addons:
        raise failure(
            "ValueError",
            f"{path.name}: a module with imports or addons needs a .so or .tar, not one object file",
        )
    write_bytes(path, collected.objects[0])


def _export_shared(
    collected: _Collected,
    path: Path,
    folder: Path,
    fcompile: Callable[..., Any] | None,
    addons: Sequence[str],
    options: Sequence[str],
    kwargs: dict[str, Any],
) -> None:
    triple = collected.triple
    if fcompile is not None and hasattr(fcompile, "get_target_triple"):
        triple = fcompile.get_target_triple() or triple
    if fcompile is None and links_without_compiler(triple):
        _link_here(collected, path, addons, options, kwargs)
        return
    objects: list[Path] = []
    for index, code in enumerate(collected.objects):
        objects.append(folder / f"lib{index}.o")
        objects[-1].write_bytes(code)
    if fcompile is None and _is_wasm(triple):
        if kwargs:
            raise failure("TypeError", f"export_library does not know the option {', '.join(sorted(kwargs))}")
        imports = pack_imports(collected.stored) if collected.stored else b""
        parts = [*objects, *(Path(addon) for addon in addons)]
        write_beside(
            path,
            lambda output: link_wasm(output, parts, collected.functions, imports, folder, triple, options),
        )
        return
    if collected.stored or len(objects) > 1:  # a single object has these itself
        objects.append(_compile_data(collected, folder, triple))
    objects += [Path(addon) for addon in addons]
    if fcompile is None:
        write_beside(path, lambda temporary: _link_with_checksum(temporary, objects, triple, options, kwargs))
        return
    if options:
        kwargs = {**kwargs, "options": list(options)}
    linked = [str(part) for part in [*objects, *embedded_objects(triple)]]
    write_beside(path, lambda temporary: fcompile(str(temporary), linked, **kwargs))


def _is_wasm(triple: str) -> bool:
    return bool(triple) and Triple.parse(triple).machine.startswith("wasm")


def links_without_compiler(triple: str = "") -> bool:
    """True where there is no C compiler for the target, and its libraries can be linked here."""
    parsed = Triple.parse(triple) if triple else host_triple()
    return links(parsed.machine, parsed.system) and not has_compiler(triple)


def _link_here(
    collected: _Collected, path: Path, addons: Sequence[str], options: Sequence[str], kwargs: dict[str, Any]
) -> None:
    """Link without a C compiler: the library has no runtime inside."""
    given = [*options, *kwargs]
    if given:
        raise failure(
            "ValueError", f"{', '.join(map(str, given))}: options are for a C compiler, and none was found"
        )
    data = {
        "__tilewright_functions": ",".join(collected.functions).encode() + b"\0",
        "__tilewright_features": ",".join(collected.features).encode() + b"\0",
        "__tilewright_target": collected.target.encode() + b"\0",
    }
    if collected.stored:
        block = pack_imports(collected.stored)
        data |= {"__tilewright_imports": block, "__tilewright_imports_size": struct.pack("<Q", len(block))}
    objects = [*collected.objects, *(Path(addon).read_bytes() for addon in addons)]

    def write(temporary: Path) -> None:
        temporary.write_bytes(link(objects, data))
        append_checksum(temporary)

    write_beside(path, write)


def _link_with_checksum(
    output: Path, objects: Sequence[Path], triple: str, options: Sequence[str], kwargs: dict[str, Any]
) -> None:
    if kwargs:
        raise failure("TypeError", f"export_library does not know the option {', '.join(sorted(kwargs))}")
    link_shared(output, objects, triple, options)
    append_checksum(output)


def _compile_data(collected: _Collected, folder: Path, triple: str) -> Path:
    """An object with the names of the functions, the CPU features and the imported modules."""
    imports = ""
    if collected.stored:
        block = pack_imports(collected.stored)
        (folder / "imports.bin").write_bytes(block)
        where = str(folder / "imports.bin").replace("\\", "/")
        imports = _IMPORTS.format(size=len(block), path=where)
    source, output = folder / "data.c", folder / "data.o"
    source.write_text(
        _DATA.format(
            functions=",".join(collected.functions),
            features=",".join(collected.features),
            target=collected.target.replace("\\", "\\\\").replace('"', '\\"'),
            imports=imports,
        )
    )
    find_compiler(triple).run(["-fPIC", "-c", source, "-o", output])
    return output
