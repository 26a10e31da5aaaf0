"""A model compiled ahead of time: source or object, header, and the three regions of its memory."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tilewright.ir.module import IRModule
from tilewright.micro.model_library_format import ModelLibrary, export_model_library_format
from tilewright.relay.backend.aot.entry import Argument, ModelFunctions
from tilewright.relay.backend.aot.header import header_name, make_header
from tilewright.relay.output_names import unnamed_output
from tilewright.runtime.aot_model import AOTModel, TensorDescription
from tilewright.runtime.device import Device
from tilewright.runtime.module import JITModule, Module
from tilewright.runtime.ndarray import NDArray
from tilewright.runtime.session import Session
from tilewright.support.arena import ALIGNMENT
from tilewright.support.cbuild import find_compiler, write_bytes
from tilewright.support.errors import ModelError
from tilewright.target import Target


@dataclass(frozen=True)
class MemorySizes:
    """Bytes of each region; ``constants`` counts wherever they lie."""

    constants: int
    inputs: int
    outputs: int
    workspace: int
    alignment: int = ALIGNMENT


@dataclass(frozen=True)
class AOTModule:
    """The result of ``compile_aot``."""

    functions: ModelFunctions
    target: Target
    interface: str
    lib: Module
    """The code: runnable in this process for the target ``llvm`` of this machine, if the interface is packed."""
    loops: IRModule
    """Entry and kernels as the code generator got them."""
    constants: bytes
    """The content of the constants' region, which the caller provides unless it is in the artefact."""
    params: dict[str, NDArray]
    graph_json: str

    @property
    def name(self) -> str:
        """The model's name."""
        return self.functions.name

    @property
    def inputs(self) -> Sequence[Argument]:
        """The inputs, in the order of the structure and of packed arguments."""
        return self.functions.inputs

    @property
    def outputs(self) -> Sequence[Argument]:
        """The outputs, in order."""
        return self.functions.outputs

    @property
    def memory(self) -> MemorySizes:
        """How much memory the model needs."""
        plan = self.functions.plan
        return MemorySizes(
            plan.constants_size,
            sum(argument.num_bytes for argument in self.inputs),
            sum(argument.num_bytes for argument in self.outputs),
            plan.workspace_size,
        )

    def header(self) -> str:
        """The C header."""
        return make_header(self.functions)

    def c_source(self) -> str:
        """The C source; an error for a target that makes machine code."""
        if self.target.kind.name != "c":
            raise ModelError(
                f"the model {self.name} was compiled to machine code: compile it for the target c"
            )
        return self.lib.get_source("c")

    def object_code(self) -> bytes:
        """A linkable object; C source is compiled with the machine's compiler."""
        code = self.lib.object_code()
        if code is not None:
            return code
        with tempfile.TemporaryDirectory() as folder:
            source, output = Path(folder) / "model.c", Path(folder) / "model.o"
            source.write_text(self.c_source(), encoding="utf-8")
            find_compiler(self._triple).run(["-std=c11", "-O2", "-fPIC", "-c", source, "-o", output])
            return output.read_bytes()

    @property
    def _triple(self) -> str:
        return str(self.target.attrs.get("mtriple", "") or "")

    def export_library(
        self, file_name: str, fcompile: Callable[..., Any] | None = None, addons: Any = None, **kwargs: Any
    ) -> None:
        """Writes the model in the form that the file's suffix says.

        ``.c`` and ``.o``: code that needs no library but libc, with the header (``.h``) and, where they are the
        caller's, the constants (``.bin``) beside it. ``.so``, ``.dll``, ``.dylib``: a shared library for
        ``runtime.load_module`` if the interface is packed. ``.tar``: model library format.
        """
        path = Path(file_name)
        writers: dict[str, Callable[[], bytes]] = {
            ".c": lambda: self.c_source().encode(),
            ".o": self.object_code,
        }
        if path.suffix in writers:
            write_bytes(path, writers[path.suffix]())
            write_bytes(path.with_suffix(".h"), self.header().encode())
            if self.functions.takes_constants:
                write_bytes(path.with_suffix(".bin"), self.constants)
        elif path.suffix == ".tar":
            export_model_library_format(self, file_name)
        else:
            self._linkable().export_library(file_name, fcompile, addons, **kwargs)

    def session(self, device: Device | None = None, output_names: Sequence[str] | None = None) -> Session:
        """The model, to be called with named inputs from any number of threads; see ``Module.session``."""
        return self.described().session(device, self.name, output_names)

    def described(self) -> Module:
        """The code, with a description of the model in it if its function can be called by name."""
        return self._describe(self.lib)

    def _describe(self, library: Module) -> Module:
        known = any(isinstance(one, AOTModel) for one in library.imported_modules)
        if self.interface == "packed" and not self.functions.takes_constants and not known:
            memory, graph = self.memory, self.functions.graph
            names = graph.output_names or [unnamed_output(position) for position in range(len(self.outputs))]
            inputs = [
                _described(graph.nodes[number].name, one)
                for number, one in zip(self.functions.plan.inputs, self.inputs, strict=True)
            ]
            outputs = [_described(name, one) for name, one in zip(names, self.outputs, strict=True)]
            stored = sum(value.numpy().nbytes for value in self.params.values())
            sizes = (memory.workspace, len(self.params), stored)
            library.import_module(AOTModel(self.name, inputs, outputs, *sizes))
            library.target = str(self.target)
        return library

    def _linkable(self) -> Module:
        """The code as a module with an object, and with a description of the model."""
        if self.lib.object_code() is not None:
            return self._describe(self.lib)
        return self._describe(self._compiled_source())

    def _compiled_source(self) -> Module:
        return JITModule(
            lambda symbol: 0,
            function_names=self.lib.function_names,
            keep_alive=None,
            type_key="c",
            object_code=self.object_code,
            target_triple=self._triple,
            runnable=False,
        )

    def model_library(self) -> ModelLibrary:
        """What model library format says of this model."""
        memory = self.memory
        regions = {
            "constants_size_bytes": memory.constants,
            "io_size_bytes": memory.inputs + memory.outputs,
            "workspace_size_bytes": memory.workspace,
            "alignment_bytes": memory.alignment,
        }
        extra = {f"parameters/{self.name}.bin": self.constants} if self.functions.takes_constants else {}
        return ModelLibrary(
            name=self.name,
            target=str(self.target),
            executor="aot",
            interface=self.interface,
            objects=[] if self.target.kind.name == "c" else [self.object_code()],
            sources={f"{self.name}.c": self.c_source()} if self.target.kind.name == "c" else {},
            headers={header_name(self.name): self.header()},
            functions=list(self.lib.function_names),
            features=list(self.lib.features),
            triple=self.lib.target_triple or self._triple,
            params=self.params,
            executor_config={"graph.json": self.graph_json},
            loops=self.loops.script(),
            memory=regions,
            extra_files=extra,
        )


def _described(name: str, argument: Argument) -> TensorDescription:
    return TensorDescription(name, str(argument.tensor.dtype), argument.tensor.concrete_shape)
