"""Collecting a profile: of a model, which is compiled here, or of a package."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tilewright import __version__
from tilewright.codegen.llvm.build import LLVMModule
from tilewright.codegen.llvm.limits import MachineLimits
from tilewright.driver.profile.device_code import ptx_of
from tilewright.driver.profile.graphs import DrawnGraph, kernel_graph, operator_graph
from tilewright.driver.profile.kernels import KernelProfile
from tilewright.driver.profile.machine_kernels import call_graph, measure_program, require_host
from tilewright.driver.profile.memory import MemoryProfile, memory_profile
from tilewright.driver.profile.notebook import kernels_html
from tilewright.driver.profile.passes import CompileWatch, PassRun, PassTotal
from tilewright.driver.profile.roofline import compared_with_limits
from tilewright.driver.tvmc.compiler import Settings
from tilewright.driver.tvmc.devices import target_devices, timed_device
from tilewright.driver.tvmc.errors import TVMCException
from tilewright.driver.tvmc.executors import GraphRunnable
from tilewright.driver.tvmc.export import CompiledProgram
from tilewright.driver.tvmc.model import TVMCModel, TVMCPackage
from tilewright.driver.tvmc.runner import complete_inputs, with_shapes
from tilewright.driver.tvmc.tensors import TensorInfo, module_inputs, module_outputs
from tilewright.ir.transform import PassContext
from tilewright.relay.backend.byoc.report import Partition
from tilewright.relay.backend.executor_factory import GraphExecutorFactoryModule
from tilewright.relay.backend.explain import KernelChoices, explain_kernels, kernel_functions
from tilewright.relay.backend.views import build_graph
from tilewright.relay.function import Function
from tilewright.runtime.module import Module
from tilewright.runtime.vm import Executable
from tilewright.support.cbuild import is_host

CODE_FORMS = {"relay": "Relay", "tir": "Loops", "ll": "LLVM IR", "asm": "Assembly", "ptx": "PTX"}
"""The forms in which a report shows a kernel's code, from the graph to the machine."""


@dataclass(frozen=True)
class CompileProfile:
    """How long compiling took, and its passes: every run in order, and each pass's total."""

    seconds: float
    runs: tuple[PassRun, ...]
    totals: tuple[PassTotal, ...]


@dataclass(frozen=True)
class ProfileReport:
    """The contents of a profile. What is only known at compile time is None, or empty, for a package."""

    model: str
    target: str
    version: str
    system: str
    inputs: tuple[TensorInfo, ...]
    outputs: tuple[TensorInfo, ...]
    kernels: KernelProfile
    memory: MemoryProfile
    after_fusion: DrawnGraph
    before_fusion: DrawnGraph | None = None
    compiling: CompileProfile | None = None
    code: Mapping[str, Mapping[str, str]] | None = None
    """The forms of ``CODE_FORMS`` for each kernel by name."""
    choices: Mapping[str, KernelChoices] | None = None
    """How each kernel by name is computed, and why."""
    executor: str = "graph"
    partition: Partition | None = None
    """What went to which backend, and why the rest did not, where there are backends."""

    def _repr_html_(self) -> str:
        """The kernels for a notebook; ``report.write_report`` writes the whole report."""
        return kernels_html(self.kernels, self.model)

    def as_json(self) -> dict[str, Any]:
        """For programs: without the graphs and the code."""
        limits = self.kernels.limits
        return {
            "model": self.model,
            "target": self.target,
            "executor": self.executor,
            "version": self.version,
            "run_seconds": self.kernels.run_seconds,
            "kernel_seconds": self.kernels.total_seconds,
            "runs": self.kernels.runs,
            "flops": self.kernels.flops,
            "operations": self.kernels.operations,
            "of_limit": self.kernels.of_limit,
            "limit_measurements": self.kernels.limit_measurements,
            "limits": None if limits is None else limits_json(limits),
            "kernels": [kernel.as_json() for kernel in self.kernels.kernels()],
            "memory": {
                "arena_bytes": self.memory.arena_bytes,
                "peak_bytes": self.memory.peak_bytes,
                "parameter_bytes": self.memory.parameter_bytes,
                "live_bytes": list(self.memory.live_bytes),
            },
            "partition": None if self.partition is None else self.partition.as_json(),
            "compiling": None
            if self.compiling is None
            else {
                "seconds": self.compiling.seconds,
                "passes": [
                    {"name": one.name, "runs": one.runs, "seconds": one.seconds}
                    for one in self.compiling.totals
                ],
            },
        }


def limits_json(limits: MachineLimits) -> dict[str, Any]:
    """The limits of the machine, for programs."""
    return {
        "processor": limits.processor,
        "threads": limits.threads,
        "unit": limits.unit,
        "flops_per_second": limits.flops_per_second,
        "peaks": {"float32": limits.flops_per_second, **limits.peaks},
        "bandwidths": [
            {
                "level": one.level,
                "capacity_bytes": one.capacity_bytes,
                "bytes_per_second": one.bytes_per_second,
            }
            for one in limits.bandwidths
        ],
    }


def profile_model(
    model: TVMCModel,
    settings: Settings,
    name: str = "model",
    inputs: Mapping[str, Any] | None = None,
    fill_mode: str = "random",
    repeat: int = 10,
    fill_shapes: Mapping[str, Sequence[Any]] | None = None,
) -> ProfileReport:
    """Compile a model for the graph executor or the virtual machine, with a clock on every pass, and measure it."""
    triple = str(settings.target.attrs.get("mtriple", ""))
    if not is_host(triple):
        raise TVMCException(f"code for {triple} cannot run on this machine: profile it where it runs")
    infos = module_inputs(model.mod, model.params)
    values = complete_inputs(with_shapes(infos, fill_shapes), inputs or {}, fill_mode)
    watch = CompileWatch()
    compiled = replace(settings, instruments=(watch,)).compile(model.mod, model.params)
    watch.finish()
    if isinstance(compiled, CompiledProgram):
        functions = kernel_functions(settings.fused(model.mod, model.params, compiled))
        require_host(timed_device(target_devices(settings.target)))
        measured = _measured_program(compiled.executable, values, functions, repeat)
        library = compiled.executable.mod
    elif isinstance(compiled, GraphExecutorFactoryModule):
        functions = _functions(compiled)
        runnable = GraphRunnable(compiled.graph_json_str, compiled.lib, compiled.params)
        runnable.set_inputs(values)
        measured = _measured_graph(runnable, compiled.params, repeat)
        library = compiled.lib
    else:
        raise TVMCException(
            f"the {settings.executor} executor has no kernels to time one by one: profile with graph or vm"
        )
    return ProfileReport(
        name,
        str(settings.target),
        __version__,
        _system(),
        tuple(infos),
        tuple(module_outputs(model.mod)),
        *measured,
        None
        if watch.before_fusion is None
        else operator_graph(watch.before_fusion["main"], functions, watch.before_fusion),
        CompileProfile(watch.seconds, tuple(watch.runs), tuple(watch.totals())),
        _code(library, functions, watch),
        _choices(functions, settings),
        executor=settings.executor,
        partition=settings.partition(model.mod, model.params),
    )


def profile_package(
    package: TVMCPackage,
    name: str = "model",
    inputs: Mapping[str, Any] | None = None,
    fill_mode: str = "random",
    repeat: int = 10,
    fill_shapes: Mapping[str, Sequence[Any]] | None = None,
) -> ProfileReport:
    """Measure a compiled model. It has neither its passes nor its code with it."""
    content = package.content
    values = complete_inputs(with_shapes(content.inputs, fill_shapes), inputs or {}, fill_mode)
    if content.executor == "vm":
        require_host(timed_device(target_devices(content.target)))
        measured = _measured_program(Executable(package.load_library()), values, None, repeat)
    elif content.executor == "graph" and content.graph is not None:
        runnable = GraphRunnable(content.graph, package.load_library(), content.params)
        runnable.set_inputs(values)
        measured = _measured_graph(runnable, content.params, repeat)
    else:
        raise TVMCException(
            f"{name} was compiled for the {content.executor} executor, which has no kernels to time one by one: "
            "compile it for graph or vm"
        )
    return ProfileReport(
        name,
        content.target,
        __version__,
        _system(),
        tuple(content.inputs),
        tuple(content.outputs),
        *measured,
        executor=content.executor,
    )


Measured = tuple[KernelProfile, MemoryProfile, DrawnGraph]
"""What running a model shows: the times of its kernels, its memory, and how they follow one another."""


def _measured_graph(runnable: GraphRunnable, params: Mapping[str, Any], repeat: int) -> Measured:
    kernels = runnable.profile(repeat)
    memory = memory_profile(runnable.graph, runnable.executor.arena_bytes, _bytes(params))
    return kernels, memory, kernel_graph(runnable.graph, frozenset(params))


def _measured_program(
    executable: Executable,
    values: Mapping[str, Any],
    functions: Mapping[str, Sequence[Function]] | None,
    repeat: int,
) -> Measured:
    arguments = [values[name] for name in executable.get_function_params("main")]
    kernels = compared_with_limits(lambda: measure_program(executable, arguments, functions, repeat))
    constants = sum(int(one.numpy().nbytes) for one in executable.program.constants)
    # The machine takes memory as it goes: there is no arena, and no plan.
    return kernels, MemoryProfile(0, constants, (), (), ()), call_graph(kernels)


def _system() -> str:
    return f"{platform.system()} {platform.machine()}, Python {platform.python_version()}"


def _bytes(params: Mapping[str, Any]) -> int:
    return sum(int(value.numpy().nbytes) for value in params.values())


def _functions(factory: GraphExecutorFactoryModule) -> dict[str, list[Function]]:
    """The fused functions of every kernel: one for each place that calls it."""
    found: dict[str, list[Function]] = {}
    for node in build_graph(factory.ir_mod["main"], f"tvmgen_{factory.libmod_name}").nodes:
        if node.function is not None and node.kernel is not None:
            found.setdefault(node.kernel, []).append(node.function)
    return found


def _choices(functions: Mapping[str, list[Function]], settings: Settings) -> dict[str, KernelChoices]:
    """How every kernel is computed, and why."""
    first = {name: calls[0] for name, calls in functions.items()}
    with PassContext(opt_level=settings.opt_level, config=dict(settings.config)):
        return {one.kernel: one for one in explain_kernels(first, settings.target)}


def _code(
    library: Module, functions: Mapping[str, list[Function]], watch: CompileWatch
) -> dict[str, dict[str, str]]:
    """Every kernel in every form."""
    assert isinstance(library, LLVMModule)
    device_code = "\n".join(
        one.get_source("ptx") for one in library.imported_modules if one.type_key == "cuda"
    )
    made = {}
    for name, calls in functions.items():
        loops = watch.loops.get(name)
        forms = {
            "relay": calls[0].astext(show_meta_data=False),
            "tir": loops.script() if loops is not None else library.get_function_source(name, "tir"),
        }
        kernels = ptx_of(device_code, name)
        if kernels:
            forms["ptx"] = kernels
        else:
            forms |= {form: library.get_function_source(name, form) for form in ("ll", "asm")}
        made[name] = forms
    return made
