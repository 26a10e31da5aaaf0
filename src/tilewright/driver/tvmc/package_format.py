"""Packages: a compiled model in one tar file.

::

    mod.so or mod.tar   the kernels: a shared library, or objects that need no linker where they were made
    mod.json            the graph, for the graph executor and models compiled ahead of time
    mod.params          the parameters
    package.json        executor, target, inputs, outputs, and a checksum of every other file

The first three are what ``tvmc`` writes; a package without the fourth is read as one for the graph executor. A model
library (``-f mlf``) and a single shared library are packages too.
"""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tilewright import __version__
from tilewright.driver.tvmc.errors import TVMCException
from tilewright.driver.tvmc.tensors import TensorInfo, graph_tensors
from tilewright.runtime.artefact import check_model_library, read_members
from tilewright.runtime.ndarray import NDArray
from tilewright.runtime.params import load_param_dict, save_param_dict
from tilewright.support.cbuild import write_beside
from tilewright.support.errors import TilewrightError

DESCRIPTION = "package.json"
GRAPH = "mod.json"
PARAMS = "mod.params"
LIBRARIES = ("mod.so", "mod.tar", "mod.dll", "mod.dylib")
SHARED_SUFFIXES = (".so", ".dll", ".dylib", ".wasm")
_MODEL_SUFFIXES = (".onnx", ".pb", ".tflite", ".h5", ".pth", ".pt", ".pdmodel")


@dataclass(frozen=True)
class PackageContent:
    """The contents of a package. ``library`` is the code; its file name says in which form."""

    kind: str
    """``classic`` or ``mlf``."""
    executor: str
    library_name: str
    library: bytes
    graph: str | None = None
    params: Mapping[str, NDArray] = field(default_factory=dict)
    name: str = "default"
    target: str = ""
    inputs: list[TensorInfo] = field(default_factory=list)
    outputs: list[TensorInfo] = field(default_factory=list)
    workspace_bytes: int = 0
    """The memory for intermediate tensors. A model compiled ahead of time takes it from its caller."""

    def members(self) -> dict[str, bytes]:
        """The files of a classic package."""
        files = {self.library_name: self.library}
        if self.graph is not None:
            files[GRAPH] = self.graph.encode()
        files[PARAMS] = bytes(save_param_dict(self.params))
        description = {
            "format": 1,
            "tilewright": __version__,
            "executor": self.executor,
            "name": self.name,
            "target": self.target,
            "inputs": [one.as_json() for one in self.inputs],
            "outputs": [one.as_json() for one in self.outputs],
            "workspace_bytes": self.workspace_bytes,
            "sha256": {name: hashlib.sha256(content).hexdigest() for name, content in files.items()},
        }
        return {DESCRIPTION: json.dumps(description, indent=1).encode(), **files}


def write_members(path: Path, members: Mapping[str, bytes]) -> None:
    """Write a tar: the same bytes for the same content, whole or not at all."""

    def write(temporary: Path) -> None:
        with tarfile.open(temporary, "w", format=tarfile.PAX_FORMAT) as archive:
            for name, content in members.items():
                entry = tarfile.TarInfo(name)
                entry.size = len(content)
                archive.addfile(entry, io.BytesIO(content))

    write_beside(path, write)


def read_package(path: Path) -> PackageContent:
    """Read a package into memory; an error for one that is damaged, or that is something else."""
    if path.is_dir():
        raise TVMCException(f"{path} is a folder: name the package's file in it")
    if not path.exists():
        raise TVMCException(f"there is no package {path}")
    if path.suffix.lower() in _MODEL_SUFFIXES:
        raise TVMCException(f"{path} is a model, not a package: compile it first, tilewright compile {path}")
    members = read_members(path)
    if "metadata.json" in members:
        return _model_library(path, members)
    library = next((name for name in LIBRARIES if name in members), None)
    if library is None:
        raise TVMCException(
            f"{path} is not a package, or it is truncated: it contains none of {', '.join(LIBRARIES)}. "
            "'tilewright compile' writes packages"
        )
    description = _description(path, members)
    executor = str(description.get("executor", "graph"))
    graph = members[GRAPH].decode(errors="replace") if GRAPH in members else None
    params = _params(path, members.get(PARAMS))
    if graph is None and executor != "vm":
        raise TVMCException(f"{path} is damaged: it has no {GRAPH}")
    inputs, outputs = _tensors(path, description, graph, params)
    return PackageContent(
        "classic",
        executor,
        library,
        members[library],
        graph,
        params,
        str(description.get("name", "default")),
        str(description.get("target", "")),
        inputs,
        outputs,
        int(description.get("workspace_bytes", 0)),
    )


def _description(path: Path, members: Mapping[str, bytes]) -> dict[str, Any]:
    if DESCRIPTION not in members:
        return {}
    try:
        found = json.loads(members[DESCRIPTION])
        sums = dict(found["sha256"])
        version = found["format"]
    except (ValueError, KeyError, TypeError) as problem:
        raise TVMCException(f"{path} is damaged: its {DESCRIPTION} is not readable") from problem
    if version != 1:
        raise TVMCException(f"{path} has the format {version!r}; this version of Tilewright reads format 1")
    for name in sorted({*sums, *members} - {DESCRIPTION}):
        if name not in members or hashlib.sha256(members[name]).hexdigest() != sums.get(name):
            raise TVMCException(f"{path} is damaged: {name} is not what the package was written with")
    return dict(found)


def _params(path: Path, content: bytes | None) -> dict[str, NDArray]:
    try:
        return load_param_dict(content) if content else {}
    except TilewrightError as problem:
        raise TVMCException(f"{path} is damaged: {problem}") from problem


def _tensors(
    path: Path, description: Mapping[str, Any], graph: str | None, params: Mapping[str, NDArray]
) -> tuple[list[TensorInfo], list[TensorInfo]]:
    if "inputs" not in description:
        return graph_tensors(graph or "", list(params))
    try:
        inputs = [TensorInfo.from_json(one) for one in description["inputs"]]
        outputs = [TensorInfo.from_json(one) for one in description["outputs"]]
    except (KeyError, TypeError, ValueError) as problem:
        raise TVMCException(f"{path} is damaged: its {DESCRIPTION} is not complete") from problem
    return inputs, outputs


def _model_library(path: Path, members: Mapping[str, bytes]) -> PackageContent:
    metadata = check_model_library(dict(members), path)
    name = str(metadata.get("model_name", "default"))
    executor = next(iter(metadata.get("executors", [])), "none")
    graph = members.get(f"executor-config/{executor}/graph.json")
    params = _params(path, members.get(f"parameters/{name}.params"))
    text = None if graph is None else graph.decode(errors="replace")
    inputs, outputs = ([], []) if text is None else graph_tensors(text, list(params))
    return PackageContent(
        "mlf",
        executor,
        path.name,
        path.read_bytes(),
        text,
        params,
        name,
        str(metadata.get("target", "")),
        inputs,
        outputs,
        int(metadata.get("memory", {}).get("workspace_size_bytes", 0)),
    )
