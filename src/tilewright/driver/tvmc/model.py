"""``TVMCModel``, ``TVMCPackage`` and ``TVMCResult``: a model, a compiled model, and the results of a run."""

from __future__ import annotations

import sys
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np

from tilewright.contrib.utils import tempdir
from tilewright.driver.profile.kernels import KernelProfile
from tilewright.driver.tvmc.errors import TVMCException
from tilewright.driver.tvmc.export import classic_content, export_model_library
from tilewright.driver.tvmc.package_format import (
    SHARED_SUFFIXES,
    PackageContent,
    read_package,
    write_members,
)
from tilewright.driver.tvmc.shared_library import read_shared_library
from tilewright.ir.module import IRModule
from tilewright.ir.serialize import load_json, save_json
from tilewright.runtime.artefact import read_members
from tilewright.runtime.benchmark import BenchmarkResult
from tilewright.runtime.loading import load_module
from tilewright.runtime.module import Module
from tilewright.runtime.params import load_param_dict, save_param_dict
from tilewright.support import html
from tilewright.support.cbuild import write_beside
from tilewright.support.errors import TilewrightError

_MODULE, _PARAMS = "mod.json", "mod.params"


class TVMCModel:
    """A model at the graph level: a module and its parameters."""

    def __init__(
        self,
        mod: IRModule | None = None,
        params: Mapping[str, Any] | None = None,
        model_path: str | None = None,
    ) -> None:
        """From a module and parameters, or from a file that ``save`` wrote."""
        if (mod is None or params is None) and model_path is None:
            raise TVMCException(
                "a TVMCModel is created from a module and parameters, or from the file of a saved one"
            )
        self._tmp_dir = tempdir()
        self.mod: IRModule
        self.params: dict[str, Any]
        if mod is not None and params is not None:
            self.mod, self.params = mod, dict(params)
        else:
            self.load(str(model_path))

    def save(self, model_path: str) -> None:
        """Write the model into a file."""
        content = {_MODULE: save_json(self.mod).encode(), _PARAMS: bytes(save_param_dict(self.params))}
        write_members(Path(model_path), content)

    def load(self, model_path: str) -> None:
        """Take over the model of a file that ``save`` wrote."""
        path = Path(model_path)
        if not path.is_file():
            raise TVMCException(f"there is no saved model {path}")
        members = read_members(path)
        if _MODULE not in members or _PARAMS not in members:
            raise TVMCException(f"{path} is not a saved model: it has no {_MODULE} and {_PARAMS} in it")
        try:
            mod = load_json(members[_MODULE].decode())
            params = load_param_dict(members[_PARAMS])
        except (TilewrightError, ValueError, KeyError) as problem:
            raise TVMCException(f"the saved model {path} is damaged: {problem}") from problem
        if not isinstance(mod, IRModule):
            raise TVMCException(f"the saved model {path} is damaged: it contains no module")
        self.mod, self.params = mod, dict(params)

    def default_tuning_records_path(self) -> str:
        """Where tuning writes, unless it is told otherwise."""
        return str(self._tmp_dir.relpath("tuning_records.json"))

    def default_package_path(self) -> str:
        """Where the compiled model goes, unless it is told otherwise: a folder that goes with this object."""
        return str(self._tmp_dir.relpath("model_package.tar"))

    def export_classic_format(
        self,
        executor_factory: Any,
        package_path: str | None = None,
        cross: Any = None,
        cross_options: str | None = None,
        lib_format: str = "so",
    ) -> str:
        """Write a compiled model as a package of library, graph and parameters; gives its path."""
        path = package_path or self.default_package_path()
        content = classic_content(self.mod, self.params, executor_factory, cross, cross_options, lib_format)
        write_members(Path(path), content.members())
        return path

    def export_package(
        self,
        executor_factory: Any,
        package_path: str | None = None,
        cross: Any = None,
        cross_options: str | None = None,
        output_format: str = "so",
    ) -> str:
        """Write a compiled model: ``so`` and ``tar`` say what the library in the package is, ``mlf`` is model library
        format. Gives the path."""
        if output_format not in ("so", "tar", "mlf"):
            raise TVMCException(f"the output formats are so, tar and mlf, not {output_format!r}")
        if output_format == "mlf":
            if cross:
                raise TVMCException("a model library is not linked: it does not need a cross compiler")
            path = package_path or self.default_package_path()
            export_model_library(executor_factory, path)
            return path
        return self.export_classic_format(executor_factory, package_path, cross, cross_options, output_format)

    def _repr_html_(self) -> str:
        """The program for a notebook, and its parameters."""
        rows = [
            [name, str(value.dtype), ", ".join(map(str, value.shape))] for name, value in self.params.items()
        ]
        parameters = html.folded(f"{len(rows)} parameters", html.table(["name", "type", "shape"], rows))
        return html.fragment("TVMCModel", html.program(repr(self.mod)), parameters if rows else "")

    def summary(self, file: IO[str] | None = None) -> None:
        """Print the program."""
        (file or sys.stdout).write(f"{self.mod}\n")


class TVMCPackage:
    """A compiled model in a file: a package as ``tvmc`` writes it, a model library, or one shared library."""

    def __init__(self, package_path: str) -> None:
        self._tmp_dir = tempdir()
        self.package_path = str(package_path)
        self.content: PackageContent
        self.lib_path: str | None
        """The library as a file; None for a model library, which has objects or source."""
        self.import_package(self.package_path)

    def import_package(self, package_path: str) -> None:
        """Read a file; an error for one that is damaged."""
        path = Path(package_path)
        self.package_path = str(package_path)
        if path.suffix in SHARED_SUFFIXES:
            self.content = read_shared_library(path)
            self.lib_path = str(path)
            return
        self.content = read_package(path)
        if self.content.kind == "mlf":
            self.lib_path = None
            return
        library = Path(tempfile.mkdtemp(dir=self._tmp_dir.temp_dir)) / self.content.library_name
        library.write_bytes(self.content.library)
        self.lib_path = str(library)

    def _repr_html_(self) -> str:
        """What is in the package, for a notebook."""
        content = self.content
        rows = [
            [kind, one.name, one.text().removeprefix(one.name).strip()]
            for kind, infos in (("input", content.inputs), ("output", content.outputs))
            for one in infos
        ]
        facts = [
            ("executor", content.executor),
            ("target", content.target),
            ("library", content.library_name),
        ]
        table = html.table(["", "name", "type"], rows)
        return html.fragment("TVMCPackage", html.facts(facts), table, subtitle=self.package_path)

    @property
    def type(self) -> str:
        """``classic`` or ``mlf``."""
        return self.content.kind

    @property
    def executor_type(self) -> str:
        """``graph``, ``vm`` or ``aot``."""
        return self.content.executor

    @property
    def lib_name(self) -> str | None:
        """The file name of the library in the package; None for a model library."""
        return None if self.content.kind == "mlf" else self.content.library_name

    @property
    def graph(self) -> str | None:
        """The graph; None for a program of the virtual machine, and for a model library without an executor."""
        return None if (self.content.kind, self.content.executor) == ("mlf", "aot") else self.content.graph

    @property
    def params(self) -> bytearray:
        """The parameters, as ``save_param_dict`` writes them."""
        return save_param_dict(self.content.params)

    def load_library(self) -> Module:
        """The code, in this process."""
        if self.lib_path is None:
            return load_module(self.package_path, "tar")
        return load_module(self.lib_path)


def npz_path(path: str) -> Path:
    """Where outputs are written: the path itself, or the path with ``.npz`` behind it."""
    given = Path(path)
    return given if given.suffix == ".npz" else given.with_name(f"{given.name}.npz")


class Outputs(dict[str, np.ndarray[Any, Any]]):
    """Outputs under the model's names, and also by position under the names that ``tvmc`` gives them, ``output_0`` and
    so on, for programs that were written for it."""

    def __missing__(self, name: str) -> np.ndarray[Any, Any]:
        for position, value in enumerate(self.values()):
            if name == f"output_{position}":
                return value
        raise KeyError(name)

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or name in [f"output_{position}" for position in range(len(self))]

    def get(self, name: str, default: Any = None) -> Any:
        """The output of a name, or ``default`` where there is none."""
        try:
            return self[name]
        except KeyError:
            return default


class TVMCResult:
    """The outputs of a run by name, and the times that were measured, if any were."""

    def __init__(
        self, outputs: Mapping[str, np.ndarray[Any, Any]] | None, times: BenchmarkResult | None
    ) -> None:
        self.outputs = Outputs(outputs or {})
        self.times = times
        self.profile: KernelProfile | None = None
        """The report on every kernel, where it was requested."""
        self.filled: list[str] = []
        """The inputs that no value was given for."""

    def format_times(self) -> str:
        """The times as a table."""
        return str(self.times) if self.times is not None else "no times were measured\n"

    def get_output(self, name: str) -> np.ndarray[Any, Any]:
        """One output."""
        try:
            return self.outputs[name]
        except KeyError:
            raise TVMCException(f"there is no output {name!r}; there are {', '.join(self.outputs)}") from None

    def save(self, output_path: str, by_position: bool = False) -> None:
        """Write the outputs as ``.npz``; a path without that suffix gets it. They have the model's names or, as in
        files of TVM's ``tvmc``, ``output_0`` and so on."""
        target = npz_path(output_path)
        named = {
            f"output_{position}" if by_position else name: value
            for position, (name, value) in enumerate(self.outputs.items())
        }

        def write(temporary: Path) -> None:
            # Not np.savez: a model may have an output of the name "file", which is that function's own.
            with zipfile.ZipFile(temporary, "w") as archive:
                for name, value in named.items():
                    with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                        np.lib.format.write_array(member, np.asarray(value), allow_pickle=False)

        write_beside(target, write)

    def _repr_html_(self) -> str:
        """The outputs for a notebook, the times and the kernels, as far as they were measured."""
        rows = [
            [name, str(value.dtype), ", ".join(map(str, value.shape))] for name, value in self.outputs.items()
        ]
        times = "" if self.times is None else self.times._repr_html_()
        kernels = "" if self.profile is None else self.profile._repr_html_()
        table = html.table(["output", "type", "shape"], rows)
        return html.fragment("TVMCResult", table, times, kernels)

    def __str__(self) -> str:
        return f"{self.format_times()}\nOutput Names:\n {list(self.outputs)}"
