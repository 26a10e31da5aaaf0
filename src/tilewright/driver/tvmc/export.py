"""The forms in which a compiled model is exported: the contents of a package, a shared library, or a model library."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tilewright.contrib.cc import cross_compiler
from tilewright.driver.tvmc.errors import TVMCException
from tilewright.driver.tvmc.package_format import SHARED_SUFFIXES, PackageContent
from tilewright.driver.tvmc.tensors import graph_tensors, module_inputs, module_outputs
from tilewright.ir.module import IRModule
from tilewright.micro.model_library_format import ModelLibrary, export_model_library_format
from tilewright.relay.backend.aot import AOTModule
from tilewright.relay.backend.executor_factory import AOTExecutorFactoryModule, GraphExecutorFactoryModule
from tilewright.runtime.export import links_without_compiler
from tilewright.runtime.graph_factory import GraphExecutorFactory
from tilewright.runtime.module import Module
from tilewright.runtime.vm import Executable
from tilewright.support.cbuild import has_compiler
from tilewright.support.wording import argument
from tilewright.target import Target


@dataclass(frozen=True)
class CompiledProgram:
    """A program of the virtual machine, and what it was compiled for."""

    executable: Executable
    target: Target


Compiled = GraphExecutorFactoryModule | AOTExecutorFactoryModule | CompiledProgram
"""The compiled forms of the three executors."""


class _Kernels(Module):
    """The kernels of a model without its graph and parameters, which a package has in separate files."""

    def __init__(self, library: Module) -> None:
        super().__init__(library.type_key, library.function_names)
        self._source = library
        self.features = library.features
        self.target = library.target
        for imported in library.imported_modules:
            if not isinstance(imported, GraphExecutorFactory):
                self._imports.append(imported)

    def object_codes(self) -> list[bytes]:
        return self._source.object_codes()

    @property
    def target_triple(self) -> str:
        return self._source.target_triple


def choose_format(
    output_format: str | None, path: str | None, target: Target | None, cross: Any = None
) -> str:
    """The form of a library, where the user may have said none: shared if there is a linker for the target.

    An error where the path or the format ask for a shared library and nothing can link one.
    """
    triple = "" if target is None else str(target.attrs.get("mtriple", "") or "")
    interface = None if target is None else target.attrs.get("interface-api")
    is_library = path is not None and Path(path).suffix in SHARED_SUFFIXES
    if is_library and output_format not in (None, "so"):
        raise TVMCException(
            f"{path} is a shared library, but {argument('output_format', output_format)} is not"
        )
    if output_format is None and interface == "c" and not is_library:
        return "mlf"  # C code has no function to call by name, and a program of the user's compiles it
    if output_format not in (None, "so") or cross or has_compiler(triple):
        return output_format or "so"
    if output_format is None and not is_library:
        return "tar"
    if links_without_compiler(triple):
        return "so"
    wanted = f"{path} is" if is_library else f"{argument('output_format', 'so')} is"
    instead = argument("output_format", "tar")
    if is_library:
        instead = argument("package_path", str(Path(str(path)).with_suffix(".tar")))
    where = f" for {triple}" if triple else ""
    raise TVMCException(
        f"{wanted} a shared library, which a C compiler links, and no C compiler{where} was found: install one (cc, "
        "gcc or clang) or the package ziglang (pip install ziglang), or write a package of object code with "
        f"{instead}"
    )


def linker(cross: Any, cross_options: str | None) -> Callable[..., None] | None:
    """The linker for a library: None for the machine's own compiler, otherwise the named one."""
    if not cross:
        if cross_options:
            raise TVMCException("options for a cross compiler are given, but no cross compiler")
        return None
    return cross_compiler(cross, options=(cross_options or "").split())


def _library_bytes(
    export: Callable[..., None], cross: Any, cross_options: str | None, lib_format: str
) -> bytes:
    if lib_format == "tar" and cross:
        raise TVMCException(
            "an archive of object files (tar) is not linked: it does not need a cross compiler"
        )
    link = linker(cross, cross_options)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"mod.{lib_format}"
        export(str(path), **({} if link is None else {"fcompile": link}))
        return path.read_bytes()


def classic_content(
    mod: IRModule,
    params: Mapping[str, Any],
    compiled: Any,
    cross: Any = None,
    cross_options: str | None = None,
    lib_format: str = "so",
) -> PackageContent:
    """The content of a package; ``mod`` and ``params`` are the model that was compiled."""
    if lib_format not in ("so", "tar"):
        raise TVMCException(f"the library in a package is so or tar, not {lib_format!r}")
    name = f"mod.{lib_format}"
    if isinstance(compiled, GraphExecutorFactoryModule):
        graph = compiled.get_graph_json()
        inputs, outputs = graph_tensors(graph, list(compiled.params))
        code = _library_bytes(_Kernels(compiled.lib).export_library, cross, cross_options, lib_format)
        return PackageContent(
            *("classic", "graph", name, code, graph, compiled.params),
            *(compiled.libmod_name, str(compiled.target), inputs, outputs),
            0 if compiled.memory is None else compiled.memory.arena_bytes,
        )
    if isinstance(compiled, AOTExecutorFactoryModule):
        model = _aot_model(compiled)
        inputs, outputs = graph_tensors(model.graph_json, list(compiled.params))
        # As .tar, the model itself would write a model library.
        exporter = model.export_library if lib_format == "so" else model.described().export_library
        code = _library_bytes(exporter, cross, cross_options, lib_format)
        # The code has the parameters inside; the graph is there for its inputs and outputs.
        return PackageContent(
            *("classic", "aot", name, code, model.graph_json, {}),
            *(compiled.libmod_name, str(compiled.target), inputs, outputs),
            model.memory.workspace,
        )
    if isinstance(compiled, CompiledProgram):
        code = _library_bytes(compiled.executable.export_library, cross, cross_options, lib_format)
        return PackageContent(
            *("classic", "vm", name, code, None, {}),
            *("default", str(compiled.target), module_inputs(mod, params), module_outputs(mod)),
        )
    raise TVMCException(f"a {type(compiled).__name__} is not a compiled model")


def _aot_model(compiled: AOTExecutorFactoryModule) -> AOTModule:
    model = compiled.lib
    assert isinstance(model, AOTModule)
    if model.interface != "packed":
        raise TVMCException(
            "a model with the C interface is called from C: export it with "
            f"{argument('output_format', 'mlf')}, or compile it with {argument('interface', 'packed')}"
        )
    return model


def export_shared_library(
    compiled: Any, path: str, cross: Any = None, cross_options: str | None = None
) -> None:
    """Write everything into one shared library, which ``runtime.load_module`` loads."""
    link = linker(cross, cross_options)
    options: dict[str, Any] = {} if link is None else {"fcompile": link}
    if isinstance(compiled, AOTExecutorFactoryModule):
        _aot_model(compiled).export_library(path, **options)
    elif isinstance(compiled, CompiledProgram):
        compiled.executable.export_library(path, **options)
    else:
        compiled.export_library(path, **options)


def export_model_library(compiled: Any, path: str) -> None:
    """Write a model library."""
    if isinstance(compiled, CompiledProgram):
        raise TVMCException(
            "a program of the virtual machine cannot be a model library: use "
            f"{argument('output_format', 'so')}, or another executor"
        )
    if isinstance(compiled, AOTExecutorFactoryModule):
        export_model_library_format(compiled.lib, path)
        return
    if not isinstance(compiled, GraphExecutorFactoryModule):
        raise TVMCException(f"a {type(compiled).__name__} is not a compiled model")
    if compiled.lib.format == "c":
        export_model_library_format(compiled, path)
        return
    library = _Kernels(compiled.lib)
    if library.imported_modules:
        raise TVMCException(
            "a model library holds only host code, but the model has code of other generators"
        )
    described = ModelLibrary(
        name=compiled.libmod_name,
        target=str(compiled.target),
        executor="graph",
        objects=library.object_codes(),
        functions=list(library.function_names),
        features=list(library.features),
        triple=library.target_triple,
        params=compiled.params,
        executor_config={"graph.json": compiled.get_graph_json()},
        loops=compiled.lib.get_source("tir"),
        memory={} if compiled.memory is None else {"workspace_size_bytes": compiled.memory.arena_bytes},
    )
    export_model_library_format(described, path)
