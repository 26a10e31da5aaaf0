"""``relay.vm.compile``: from a module to a program of the virtual machine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from tilewright.compile import link
from tilewright.compile.dump import dump_passes
from tilewright.ir.base import RelayExpr
from tilewright.ir.module import IRModule
from tilewright.ir.transform import Sequential
from tilewright.relay import transform
from tilewright.relay.backend.executor import CompilingExecutor, ordered_arguments
from tilewright.relay.backend.external.code import compile_external
from tilewright.relay.backend.kernel_units import compile_kernels
from tilewright.relay.backend.preparation import Params, as_module, owned, prepared
from tilewright.relay.backend.targets import BuildTargets, build_targets, devices_of
from tilewright.relay.backend.vm.codegen import ProgramBuilder
from tilewright.relay.function import Function
from tilewright.relay.infer import infer_module
from tilewright.relay.pipeline import fusing_passes
from tilewright.runtime.vm import Executable, VirtualMachine
from tilewright.runtime.vm_program import VMProgram
from tilewright.support.collection import rare_collection
from tilewright.support.errors import TilewrightError
from tilewright.support.recursion import recursion_room


def compile(
    mod: IRModule | Function,
    target: Any = None,
    target_host: Any = None,
    params: Params | None = None,
    *,
    in_place: Mapping[str, str] | None = None,
) -> Executable:
    """Compile a module for the virtual machine. ``params`` gives values to parameters of ``main`` by name.

    ``target`` is a target, or a dictionary from devices to targets, and ``in_place`` names outputs that take the memory
    of an input, both as for ``relay.build``. A call overwrites such an argument: the output is the same array.
    """
    compiler = VMCompiler()
    if params:
        compiler.set_params(params)
    with rare_collection():
        compiler.lower(as_module(mod), target, target_host, in_place)
        compiler.codegen()
    return compiler.get_exec()


class VMCompiler:
    """The steps of a compilation, one by one."""

    def __init__(self) -> None:
        self._params: dict[str, Any] = {}
        self._builder: ProgramBuilder | None = None
        self._program: VMProgram | None = None
        self._targets: BuildTargets | None = None
        self._executable: Executable | None = None

    def set_params(self, params: Params) -> None:
        """Values for parameters of ``main``, by name."""
        self._params = dict(params)

    def get_params(self) -> dict[str, Any]:
        """The values that were set."""
        return dict(self._params)

    def optimize(
        self,
        mod: IRModule | Function,
        target: Any = None,
        target_host: Any = None,
        params: Params | None = None,
    ) -> tuple[IRModule, dict[str, Any]]:
        """The module from which instructions are generated: in A-normal form, operators in primitive functions.
        Parameters that have values are part of it."""
        targets = build_targets(target, target_host)
        if params:
            self.set_params(params)
        module = prepared(as_module(mod), targets, self._params)
        with recursion_room(), targets.default:
            with dump_passes("graph/2-fuse"):
                fused = Sequential(fusing_passes(targets.default), name="relay.fuse")(module)
            normal = transform.ToANormalForm()(infer_module(fused))
            # The device of a value follows from types.
            return normal if targets.is_single else infer_module(normal), {}

    def lower(
        self,
        mod: IRModule | Function,
        target: Any = None,
        target_host: Any = None,
        in_place: Mapping[str, str] | None = None,
    ) -> None:
        """Make instructions, and find the kernels that they call."""
        targets = build_targets(target, target_host)
        module, _ = self.optimize(mod, target, target_host)
        with recursion_room(), targets.default:
            builder = ProgramBuilder(module, "tvmgen_default", devices_of(module, targets), in_place)
            program = builder.build()
        self._program = replace(program, constants=owned(program.constants, self._params))
        self._builder, self._targets, self._executable = builder, targets, None

    def codegen(self) -> None:
        """Compile the kernels."""
        if self._builder is None or self._program is None or self._targets is None:
            raise TilewrightError("nothing is lowered yet: call lower first")
        kernels, targets, host = self._builder.kernels, self._targets, self._targets.host
        chosen = {
            name: (function, targets.of(kernels.devices[name]))
            for name, function in kernels.functions.items()
        }
        units, _ = compile_kernels(chosen, host, kernels.shape_functions)
        library = link(list(units.values()), host)
        external = compile_external(kernels.external, host)
        for part in external.modules:
            library.import_module(part)
        self._params.update(external.constants)
        self._executable = Executable.from_program(self._program, library)

    def get_exec(self) -> Executable:
        """The compiled program."""
        if self._executable is None:
            raise TilewrightError("nothing is compiled yet: call lower and codegen first")
        return self._executable


class VMExecutor(CompilingExecutor):
    """The "vm" executor: compiles for the virtual machine, then runs."""

    def make_executor(self, expr: RelayExpr | None = None) -> Callable[..., Any]:
        """A Python function that runs the compiled one."""
        module = self.typed_module(expr)
        main = module["main"]
        machine = VirtualMachine(compile(module, self.target), self.device)

        def run(*args: Any, **kwargs: Any) -> Any:
            return machine.invoke("main", *ordered_arguments(main, args, kwargs))

        return run
