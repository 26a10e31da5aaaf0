"""``compile_model``: from a model to a package."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tilewright.driver.tuning.records import applied_records
from tilewright.driver.tvmc.arguments import (
    DUMP_FORMATS,
    EXECUTOR_OPTIONS,
    Commands,
    add_compile_arguments,
    target_options,
)
from tilewright.driver.tvmc.common import (
    TVMCException,
    convert_graph_layout,
    parse_configs,
    parse_pass_list_str,
    parse_shape_string,
    target_from_cli,
)
from tilewright.driver.tvmc.composite_target import REGISTERED_CODEGEN, get_codegen_by_target, load_plugins
from tilewright.driver.tvmc.export import (
    Compiled,
    CompiledProgram,
    choose_format,
    export_shared_library,
)
from tilewright.driver.tvmc.frontends import load_model
from tilewright.driver.tvmc.input_options import (
    declared_inputs,
    dimensions_from_text,
    values_from_text,
    with_dimensions,
)
from tilewright.driver.tvmc.model import TVMCModel, TVMCPackage
from tilewright.driver.tvmc.open_inputs import OpenInputs
from tilewright.driver.tvmc.package_format import SHARED_SUFFIXES
from tilewright.driver.tvmc.tensors import module_inputs, require_static
from tilewright.ir.instrument import PassInstrument
from tilewright.ir.module import IRModule
from tilewright.ir.transform import PassContext
from tilewright.relay.backend import vm
from tilewright.relay.backend.byoc import Partition, choose_fastest, take_all
from tilewright.relay.backend.executor_factory import AOTExecutorFactoryModule, GraphExecutorFactoryModule
from tilewright.relay.backend.explain import KernelChoices, explain_module
from tilewright.relay.backend.machine import needs_machine
from tilewright.relay.build_module import build
from tilewright.relay.infer import infer_module
from tilewright.support.cbuild import write_bytes
from tilewright.support.wording import argument
from tilewright.target import Target
from tilewright.target.kind import nearest


@dataclass(frozen=True)
class Settings:
    """Everything that decides what a model is compiled to."""

    target: Target
    executor: str = "graph"
    opt_level: int = 3
    disabled_pass: tuple[str, ...] = ()
    config: Mapping[str, Any] = field(default_factory=dict)
    desired_layout: str | None = None
    mod_name: str = "default"
    in_place: Mapping[str, str] = field(default_factory=dict)
    """Outputs that take the memory of an input, by the input's name."""
    generators: Sequence[Mapping[str, Any]] = ()
    instruments: Sequence[PassInstrument] = ()
    """They watch the passes. Kernels that are watched are compiled anew, whatever the cache has."""
    partitions: dict[int, tuple[IRModule, Partition]] = field(default_factory=dict, repr=False, compare=False)
    """What went to which backend, by the module: measuring takes time, and is done once for a module."""

    def for_model(self, mod: IRModule) -> Settings:
        """The settings with an executor: the one that was chosen, else the graph executor where the model allows it."""
        if self.executor:
            return self
        return replace(self, executor="vm" if needs_machine(infer_module(mod)) else "graph")

    def compile(self, mod: IRModule, params: Mapping[str, Any]) -> Compiled:
        """Compile a module."""
        require_static(module_inputs(mod, params), self.executor)
        mod, context = self._with_context(mod, params)
        with context:
            if self.executor == "vm":
                program = vm.compile(mod, self.target, params=params, in_place=self.in_place)
                return CompiledProgram(program, self.target)
            made = build(
                mod,
                self.target,
                params=params,
                mod_name=self.mod_name,
                executor=self.executor,
                in_place=self.in_place,
            )
        assert isinstance(made, (GraphExecutorFactoryModule, AOTExecutorFactoryModule))
        return made

    def explain(self, mod: IRModule, params: Mapping[str, Any], compiled: Compiled) -> list[KernelChoices]:
        """How every kernel of a model that was compiled is computed, and why."""
        fused = self.fused(mod, params, compiled)
        with self._with_context(mod, params)[1]:
            return explain_module(fused, self.target)

    def partition(self, mod: IRModule, params: Mapping[str, Any]) -> Partition | None:
        """What the backends that stand beside the target compute of a model; None where there are none.

        The faster of backend and compiled code is taken. With the option ``-choose=0`` of a backend, and for the
        virtual machine, everything that can be taken is.
        """
        backends = [one for one in self.generators if one["name"] not in REGISTERED_CODEGEN]
        if not backends:
            return None
        known = self.partitions.get(id(mod))
        if known is None or known[0] is not mod:
            names = [str(one["name"]) for one in backends]
            for one in backends:
                for option in one["opts"]:
                    if option != "choose":
                        raise TVMCException(
                            f"the backend {one['name']} has no option {option!r}; it has choose"
                        )
            choose = all(one["opts"].get("choose", "1") not in ("0", "false") for one in backends)
            laid_out = self._laid_out(mod)
            if choose and self.executor != "vm":
                made = choose_fastest(laid_out, names, self.target, params, mod_name=self.mod_name)
            else:
                made = take_all(laid_out, names, params, self.mod_name)
            known = self.partitions[id(mod)] = (mod, made)
        return known[1]

    def fused(self, mod: IRModule, params: Mapping[str, Any], compiled: Compiled) -> IRModule:
        """The module of a compiled model with its operators in the functions that became kernels."""
        if not isinstance(compiled, CompiledProgram):
            return compiled.ir_mod
        mod, context = self._with_context(mod, params)
        with context:
            return vm.VMCompiler().optimize(mod, self.target, params=dict(params))[0]

    def context(self, mod: IRModule, params: Mapping[str, Any]) -> PassContext:
        """What the passes run under."""
        return self._with_context(mod, params)[1]

    def _laid_out(self, mod: IRModule) -> IRModule:
        """The module in the layout that the user asks for."""
        return convert_graph_layout(mod, self.desired_layout) if self.desired_layout else mod

    def _with_context(self, mod: IRModule, params: Mapping[str, Any]) -> tuple[IRModule, PassContext]:
        """The module after what users ask for before all passes, and what the passes run under."""
        config = dict(self.config)
        partition = self.partition(mod, params)
        mod = self._laid_out(mod) if partition is None else partition.module
        for one in self.generators:
            if one["name"] not in REGISTERED_CODEGEN:
                continue
            found = get_codegen_by_target(one["name"])
            if found["config_key"] is not None:
                config[found["config_key"]] = dict(one["opts"])
            with PassContext(config=config):
                mod = found["pass_pipeline"](mod, params, **one["opts"])
        context = PassContext(
            opt_level=self.opt_level,
            disabled_pass=list(self.disabled_pass),
            instruments=list(self.instruments),
            config=config,
        )
        return mod, context


def make_settings(
    target: Any,
    target_host: Any = None,
    additional_target_options: Mapping[str, Mapping[str, str]] | None = None,
    executor: str = "graph",
    interface: str | None = None,
    options: Mapping[str, bool] | None = None,
    **rest: Any,
) -> Settings:
    """Settings from a target as a user gives it, and the rest. ``options`` are further options of the target."""
    if executor not in ("", "graph", "vm", "aot"):
        hint = nearest(str(executor), ("graph", "vm", "aot"))
        raise TVMCException(f"the executors are graph, vm and aot, not {executor!r}{hint}")
    name = rest.get("mod_name", "default")
    if not (isinstance(name, str) and name.isascii() and name.isidentifier()):
        raise TVMCException(
            f"{argument('mod_name')} is a prefix of names in C, letters, digits and underscores, not {name!r}"
        )
    if isinstance(target, str):
        chosen, generators = target_from_cli(target, additional_target_options)
    else:
        chosen, generators = Target(target), []
    if target_host is not None:
        chosen = Target(chosen, target_host)
    unknown = [option for option in options or {} if option not in chosen.kind.options]
    if unknown:
        raise TVMCException(f"code for {chosen.kind.name} cannot be made with {unknown[0]}")
    if options:
        chosen = Target({**chosen.export(), **options}, chosen.host)
    if executor in ("", "graph") and chosen.attrs.get("executor") == "aot":
        # Programs for TVM choose it with the target: "c -executor=aot".
        executor = "aot"
    if executor == "aot":
        given = chosen.attrs.get("interface-api")
        if interface or (given is None and chosen.attrs.get("unpacked-api") is None):
            # A package is run by calling a function by its name.
            chosen = Target({**chosen.export(), "interface-api": interface or "packed"})
    elif interface:
        raise TVMCException(
            f"an interface can only be chosen for ahead-of-time models: {argument('executor', 'aot')}"
        )
    return Settings(chosen, executor, generators=tuple(generators), **rest)


def add_compile_parser(subparsers: Commands[argparse.ArgumentParser]) -> argparse.ArgumentParser:
    """Add the command with the options of ``tvmc compile``."""
    parser = subparsers.add_parser("compile", help="compile a model to a deployable package")
    add_compile_arguments(parser)
    parser.set_defaults(func=drive_compile)
    return parser


def shapes_from_text(text: str) -> dict[str, Any]:
    """The shapes of ``--input-shapes``."""
    try:
        return parse_shape_string(text)
    except argparse.ArgumentTypeError as problem:
        raise TVMCException(f"--input-shapes: {problem}") from problem


def load_from_arguments(args: argparse.Namespace) -> TVMCModel:
    """The model that the arguments name."""
    shapes = shapes_from_text(args.input_shapes) if args.input_shapes else {}
    if not args.dim and not args.input_value:
        return load_model(args.FILE, args.model_format, shapes or None)
    declared = declared_inputs(args.FILE, args.model_format)
    shapes = with_dimensions(declared, shapes, dimensions_from_text(args.dim or ()))
    values = values_from_text(declared, args.input_value or ())
    return load_model(args.FILE, args.model_format, shapes or None, convert_config={"values": values})


def open_inputs_from_arguments(args: argparse.Namespace) -> OpenInputs:
    """What is known of a model's open dimensions, and the inputs that it was compiled for."""
    try:
        declared = declared_inputs(args.FILE, args.model_format)
    except TVMCException:
        return OpenInputs({}, {})
    names = {name: one.shape for name, one in declared.items()}
    return OpenInputs(names, values_from_text(declared, args.input_value or ()))


def settings_from_arguments(args: argparse.Namespace) -> Settings:
    """How the arguments want it compiled."""
    load_plugins(args.plugin)
    try:
        disabled = parse_pass_list_str(args.disabled_pass) if args.disabled_pass else []
    except argparse.ArgumentTypeError as problem:
        raise TVMCException(f"--disabled-pass: {problem}") from problem
    return make_settings(
        args.target,
        None,
        target_options(args),
        args.executor or "",
        args.executor_aot_interface_api,
        _executor_options(args),
        opt_level=args.opt_level,
        disabled_pass=tuple(disabled),
        config=parse_configs(args.pass_config),
        desired_layout=args.desired_layout,
        mod_name=args.module_name,
        in_place=_pairs_from_text(args.in_place or ()),
    )


def _executor_options(args: argparse.Namespace) -> dict[str, bool]:
    """The options of the executor and of the runtime that were chosen; an error for those of another one."""
    chosen = {"executor": args.executor or "graph", "runtime": args.runtime or "cpp"}
    found = {}
    for what, name, option in EXECUTOR_OPTIONS:
        value = getattr(args, f"{what}_{name}_{option.replace('-', '_')}")
        if value is None:
            continue
        if chosen[what] != name:
            raise TVMCException(f"--{what}-{name}-{option} is for --{what} {name}, not for {chosen[what]}")
        found[option] = value
    return found


def _pairs_from_text(given: Sequence[str]) -> dict[str, str]:
    """The inputs and outputs of ``--in-place``."""
    found: dict[str, str] = {}
    for text in given:
        name, equals, output = text.partition("=")
        if not (name and equals and output) or name in found:
            raise TVMCException(f"--in-place takes INPUT=OUTPUT, each input once, not {text!r}")
        found[name] = output
    return found


def drive_compile(args: argparse.Namespace) -> int:
    """Runs the command."""
    model = load_from_arguments(args)
    settings = settings_from_arguments(args).for_model(model.mod)
    with applied_records(args.tuning_records):
        compiled = settings.compile(model.mod, model.params)
    write_package(
        model, compiled, args.output, args.cross_compiler, args.cross_compiler_options, args.output_format
    )
    if args.dump_code:
        dumps = make_dumps(model, compiled, dump_formats(args.dump_code))
        save_dumps(Path(args.output).name, dumps, str(Path(args.output).parent))
    return 0


def compile_model(
    tvmc_model: TVMCModel,
    target: Any,
    tuning_records: str | None = None,
    package_path: str | None = None,
    cross: Any = None,
    cross_options: str | None = None,
    output_format: str | None = None,
    dump_code: str | Sequence[str] | None = None,
    target_host: Any = None,
    desired_layout: str | None = None,
    disabled_pass: str | Sequence[str] | None = None,
    pass_context_configs: Sequence[str] | Mapping[str, Any] | None = None,
    additional_target_options: Mapping[str, Mapping[str, str]] | None = None,
    *,
    opt_level: int = 3,
    executor: str = "graph",
    interface: str | None = None,
    mod_name: str = "default",
    in_place: Mapping[str, str] | None = None,
) -> TVMCPackage:
    """Compile a model into a package at ``package_path``, by default in a folder that goes with the model.

    ``output_format`` is so, tar or mlf (see ``TVMCModel.export_package``); by default so, or tar where there is no C
    compiler to link with. ``dump_code`` names forms of the program (relay, tir, ll, asm) that are written next to the
    package (``model.tar.ll``). ``tuning_records`` is a file of what tuning found.
    ``executor`` is graph, vm or aot, ``interface`` how a model compiled ahead of time is called: packed or c.
    ``in_place`` names outputs that take the memory of an input, by the input's name (see ``relay.build``).
    """
    named = disabled_pass.split(",") if isinstance(disabled_pass, str) else (disabled_pass or [])
    config = (
        dict(pass_context_configs)
        if isinstance(pass_context_configs, Mapping)
        else parse_configs(pass_context_configs)
    )
    settings = make_settings(
        target,
        target_host,
        additional_target_options,
        executor,
        interface,
        opt_level=opt_level,
        disabled_pass=tuple(named),
        config=config,
        desired_layout=desired_layout,
        mod_name=mod_name,
        in_place=in_place or {},
    )
    with applied_records(tuning_records):
        compiled = settings.compile(tvmc_model.mod, tvmc_model.params)
    path = write_package(tvmc_model, compiled, package_path, cross, cross_options, output_format)
    if dump_code:
        dumps = make_dumps(tvmc_model, compiled, dump_formats(dump_code))
        save_dumps(Path(path).name, dumps, str(Path(path).parent))
    return TVMCPackage(path)


def write_package(
    model: TVMCModel,
    compiled: Compiled,
    path: str | None,
    cross: Any = None,
    cross_options: str | None = None,
    output_format: str | None = None,
) -> str:
    """Write a compiled model in the form that the format and the path's suffix say; gives the path."""
    output_format = choose_format(output_format, path, getattr(compiled, "target", None), cross)
    if path is not None and Path(path).suffix in SHARED_SUFFIXES:
        export_shared_library(compiled, path, cross, cross_options)
        return path
    return model.export_package(compiled, path, cross, cross_options, output_format)


def dump_formats(given: str | Sequence[str]) -> list[str]:
    """The formats of a list; an error for one that does not exist."""
    names = [name.strip() for name in given.split(",")] if isinstance(given, str) else list(given)
    for name in names:
        if name not in DUMP_FORMATS:
            hint = nearest(name, DUMP_FORMATS)
            raise TVMCException(f"code can be dumped as {', '.join(DUMP_FORMATS)}, not as {name!r}{hint}")
    return names


def make_dumps(model: TVMCModel, compiled: Compiled, formats: Sequence[str]) -> dict[str, str]:
    """The forms of a program by name: the module as it was imported, loops, LLVM IR, assembly."""
    dumps: dict[str, str] = {}
    for name in formats:
        if name == "relay":
            dumps[name] = f"{model.mod}\n"
        elif isinstance(compiled, AOTExecutorFactoryModule) and name == "tir":
            dumps[name] = compiled.lib.loops.script()
        else:
            dumps[name] = _library(compiled).get_source(name)
    return dumps


def _library(compiled: Compiled) -> Any:
    if isinstance(compiled, CompiledProgram):
        return compiled.executable.mod
    return compiled.lib.lib if isinstance(compiled, AOTExecutorFactoryModule) else compiled.lib


def save_dumps(module_name: str, dumps: Mapping[str, str], dump_root: str = ".") -> None:
    """Write each form into a file ``<module_name>.<form>``."""
    for name, text in dumps.items():
        write_bytes(Path(dump_root) / f"{module_name}.{name}", text.encode())
