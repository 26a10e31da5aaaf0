"""Model library format: a tar with everything that a build system needs to put a model into firmware.

::

    metadata.json                      what is inside, the memory it needs, and a checksum of every other file
    codegen/host/src/*.c               source, for the target c
    codegen/host/lib/*.o               objects, for the target llvm
    codegen/host/include/*.h           headers
    parameters/<model>.params          parameters, as save_param_dict writes them
    executor-config/graph|aot/*        the graph as the executor got it
    src/tir.txt                        the loop programs

``runtime.load_module`` loads the code of such a file where it can run.
"""

from __future__ import annotations

import datetime
import hashlib
import io
import json
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from tilewright.runtime.artefact import check_model_library, read_members
from tilewright.runtime.failure import failure
from tilewright.runtime.module import Module
from tilewright.runtime.params import save_param_dict
from tilewright.support.cbuild import write_beside
from tilewright.support.errors import ModelError

FORMAT_VERSION = 5
"""The version of TVM 0.8, whose layout this is."""


class UnsupportedInModelLibraryFormatError(ModelError):
    """A model that model library format cannot hold."""


@dataclass(frozen=True)
class ModelLibrary:
    """The content of a model library; every file name is relative to its folder."""

    name: str
    target: str
    executor: str
    """``graph``, ``aot``, or ``none`` for operators only."""
    objects: Sequence[bytes] = ()
    sources: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    functions: Sequence[str] = ()
    features: Sequence[str] = ()
    triple: str = ""
    interface: str = "packed"
    params: Mapping[str, Any] = field(default_factory=dict)
    executor_config: Mapping[str, str] = field(default_factory=dict)
    loops: str = ""
    memory: Mapping[str, int] = field(default_factory=dict)
    extra_files: Mapping[str, bytes] = field(default_factory=dict)

    def files(self) -> dict[str, bytes]:
        """Every file but the metadata."""
        host = "codegen/host"
        made = {f"{host}/src/{name}": text.encode() for name, text in self.sources.items()}
        made |= {f"{host}/lib/lib{index}.o": code for index, code in enumerate(self.objects)}
        made |= {f"{host}/include/{name}": text.encode() for name, text in self.headers.items()}
        if self.executor != "none":
            made[f"parameters/{self.name}.params"] = bytes(save_param_dict(self.params))
        for name, text in self.executor_config.items():
            made[f"executor-config/{self.executor}/{name}"] = text.encode()
        if self.loops:
            made["src/tir.txt"] = self.loops.encode()
        return {**made, **self.extra_files}

    def metadata(self, files: Mapping[str, bytes]) -> dict[str, Any]:
        """The contents of ``metadata.json``."""
        now = datetime.datetime.now(datetime.UTC)
        return {
            "version": FORMAT_VERSION,
            "model_name": self.name,
            "export_datetime": now.strftime("%Y-%m-%d %H:%M:%SZ"),
            "style": "operator" if self.executor == "none" else "full-model",
            "executors": [] if self.executor == "none" else [self.executor],
            "interface": self.interface,
            "target": self.target,
            "triple": self.triple,
            "functions": list(self.functions),
            "features": list(self.features),
            "memory": dict(self.memory),
            "sha256": {name: hashlib.sha256(content).hexdigest() for name, content in files.items()},
        }


@runtime_checkable
class DescribesItself(Protocol):
    """A module that knows what its model library has inside, as one compiled ahead of time does."""

    def model_library(self) -> ModelLibrary: ...


@runtime_checkable
class GraphFactory(Protocol):
    """A model for the graph executor: its graph, its parameters and its code."""

    libmod_name: str

    def get_graph_json(self) -> str: ...
    def get_params(self) -> Mapping[str, Any]: ...
    def get_lib(self) -> Module: ...


def export_model_library_format(mod: Any, file_name: str | Path) -> str:
    """Writes a model or a module of operators as a model library; the name of the file, whole or not there."""
    path = Path(file_name)
    library = _describe(mod)
    files = library.files()
    content = json.dumps(library.metadata(files), indent=2).encode()

    def write(temporary: Path) -> None:
        with tarfile.open(temporary, "w", format=tarfile.PAX_FORMAT) as archive:
            for name, data in {"metadata.json": content, **files}.items():
                entry = tarfile.TarInfo(f"./{name}")
                entry.size = len(data)
                archive.addfile(entry, io.BytesIO(data))

    write_beside(path, write)
    return str(path)


def _describe(module: Any) -> ModelLibrary:
    if isinstance(module, ModelLibrary):
        return module
    for one in (
        module,
        getattr(module, "lib", None),
    ):  # a model for the executor of ahead-of-time code holds one
        if isinstance(one, DescribesItself):
            return one.model_library()
    if isinstance(module, GraphFactory):
        lib = module.get_lib()
        config = {"graph.json": module.get_graph_json()}
        return _of_code(module.libmod_name, lib, "graph", params=module.get_params(), executor_config=config)
    if isinstance(module, Module):
        return _of_code(getattr(module, "name", None) or "default", module, "none")
    raise UnsupportedInModelLibraryFormatError(
        f"a {type(module).__name__} is not a module that model library format can hold"
    )


def _of_code(name: str, lib: Module, executor: str, **rest: Any) -> ModelLibrary:
    """A library around compiled code or C source."""
    by_target = getattr(lib, "ir_module_by_target", {})
    # C source is written as such, whether or not this machine could compile it.
    code = None if lib.format == "c" else lib.object_code()
    if code is None and lib.format != "c":
        raise UnsupportedInModelLibraryFormatError(
            f"the {lib.type_key} module has neither object code nor C source: model library format holds host code"
        )
    # The graph and the parameters, which other formats store with the code, are separate files here.
    if any(imported.type_key != "GraphExecutorFactory" for imported in lib.imported_modules):
        raise UnsupportedInModelLibraryFormatError(
            "model library format holds only host code, but the module imports device code"
        )
    return ModelLibrary(
        name=name,
        target=" ".join(str(target) for target in by_target),
        executor=executor,
        objects=[] if code is None else [code],
        sources={} if code is not None else {"lib0.c": lib.get_source()},
        functions=list(lib.function_names),
        features=list(lib.features),
        triple=lib.target_triple,
        loops="\n".join(loops.script() for loops in by_target.values()),
        **rest,
    )


def extract_model_library(file_name: str | Path, folder: str | Path) -> dict[str, Any]:
    """Unpacks a model library into a folder, and returns its metadata.

    No file of it lands outside the folder, whatever the archive says, and every file has the checksum it was written
    with.
    """
    path = Path(file_name)
    metadata = check_model_library(read_members(path), path)
    try:
        with tarfile.open(path, "r:*") as archive:
            archive.extractall(folder, filter="data")
    except tarfile.TarError as problem:
        raise failure("ValueError", f"{path} cannot be unpacked: {problem}") from problem
    return metadata
