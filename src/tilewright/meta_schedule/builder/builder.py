"""Builders: from a module and a target to a file that a runner can load."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tilewright.compile.build import build
from tilewright.ir.module import IRModule
from tilewright.meta_schedule.isolated import run_isolated
from tilewright.meta_schedule.utils import (
    cpu_count,
    get_global_func_with_default_on_worker,
    require_overridden,
)
from tilewright.runtime.module import Module
from tilewright.support.node import Object
from tilewright.target.target import Target, TargetLike

T_BUILD = Callable[[IRModule, Target], Module]
T_EXPORT = Callable[[Module], str]


class BuilderInput(Object):
    """A module, and the target to build it for."""

    def __init__(self, mod: IRModule, target: TargetLike) -> None:
        self.mod = mod
        self.target = Target(target)


class BuilderResult(Object):
    """The file that was built, or why there is none."""

    def __init__(self, artifact_path: str | None, error_msg: str | None) -> None:
        self.artifact_path = artifact_path
        self.error_msg = error_msg


class Builder(Object):
    """What builds candidates."""

    def build(self, build_inputs: Sequence[BuilderInput]) -> list[BuilderResult]:
        """Build every input; a result for each."""
        raise NotImplementedError(f"{type(self).__name__} has no method build")


class PyBuilder(Builder):
    """The base of builders that programs write."""

    def __init__(self) -> None:
        require_overridden(self, Builder, ["build"])


class LocalBuilder(PyBuilder):
    """Builds in forks of this process: a candidate that crashes or hangs costs its own time limit only.

    ``f_build`` and ``f_export`` replace the two steps; as names of registered functions, they may be registered by
    ``initializer``, which runs in each worker first.
    """

    def __init__(
        self,
        *,
        max_workers: int | None = None,
        timeout_sec: float = 30.0,
        f_build: str | T_BUILD | None = None,
        f_export: str | T_EXPORT | None = None,
        initializer: Callable[[], None] | None = None,
    ) -> None:
        super().__init__()
        self.max_workers = cpu_count() if max_workers is None else max_workers
        self.timeout_sec = timeout_sec
        self.f_build = f_build
        self.f_export = f_export
        self.initializer = initializer
        (answer,) = run_isolated([self._check], timeout_sec, 1, "the builder")
        if answer.problem is not None:
            raise ValueError(f"LocalBuilder cannot start: {answer.problem}")

    def build(self, build_inputs: Sequence[BuilderInput]) -> list[BuilderResult]:
        def action(one: BuilderInput) -> Callable[[], str]:
            return lambda: self._build(one)

        answers = run_isolated(
            [action(one) for one in build_inputs], self.timeout_sec, self.max_workers, "the builder"
        )
        results = []
        for answer in answers:
            if answer.timed_out:
                message = f"LocalBuilder: Timeout, killed after {self.timeout_sec} seconds"
            else:
                message = f"LocalBuilder: An exception occurred\n{answer.problem}"
            results.append(BuilderResult(answer.value, None if answer.problem is None else message))
        return results

    def _steps(self) -> tuple[Any, Any]:
        if self.initializer is not None:
            self.initializer()
        return (
            get_global_func_with_default_on_worker(self.f_build, default_build),
            get_global_func_with_default_on_worker(self.f_export, default_export),
        )

    def _check(self) -> None:
        self._steps()

    def _build(self, one: BuilderInput) -> str:
        builds, exports = self._steps()
        return str(exports(builds(one.mod, one.target)))


def default_build(mod: IRModule, target: Target) -> Module:
    """Compile a module as ``tvm.build`` does."""
    return build(mod, target=target)


def default_export(mod: Module) -> str:
    """Write a module to an archive in a new folder; its path."""
    path = Path(tempfile.mkdtemp(prefix="tilewright-candidate-")) / "candidate.tar"
    mod.export_library(str(path))
    return str(path)
