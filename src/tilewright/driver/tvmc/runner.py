"""``run_module``: runs a package on inputs and returns the outputs and times."""

from __future__ import annotations

import argparse
import contextlib
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from tilewright.driver.tvmc.arguments import Commands, add_run_arguments
from tilewright.driver.tvmc.common import parse_shape_string, tracker_host_port_from_cli
from tilewright.driver.tvmc.devices import graph_devices, require_named, target_devices
from tilewright.driver.tvmc.errors import TVMCException
from tilewright.driver.tvmc.executors import (
    FunctionRunnable,
    GraphRunnable,
    MachineRunnable,
    Runnable,
    Values,
)
from tilewright.driver.tvmc.images import SUFFIXES, ImageOptions, parse_numbers, read_images
from tilewright.driver.tvmc.model import TVMCPackage, TVMCResult
from tilewright.driver.tvmc.remote import make_remote_runnable, open_session
from tilewright.driver.tvmc.tensors import TensorInfo, graph_tensors, output_name
from tilewright.runtime.device import Device
from tilewright.runtime.ndarray import NDArray
from tilewright.runtime.params import load_param_dict
from tilewright.runtime.vm import Executable
from tilewright.support.suggestions import did_you_mean

UNKNOWN_EXTENT = 1
"""The size that made-up inputs have where the model leaves it open."""


def get_input_info(
    graph_str: str, params: Mapping[str, Any] | bytes | bytearray
) -> tuple[dict[str, list[int]], dict[str, str]]:
    """Shapes and types of the inputs of a graph by name; parameters are not inputs."""
    known = load_param_dict(params) if isinstance(params, (bytes, bytearray)) else params
    inputs, _ = graph_tensors(graph_str, list(known))
    shapes = {one.name: [size for size in one.shape if size is not None] for one in inputs}
    return shapes, {one.name: one.dtype for one in inputs}


def generate_tensor_data(shape: Sequence[int], dtype: str, fill_mode: str) -> np.ndarray[Any, Any]:
    """Zeros, ones, or random values: from 0 to 1 for real numbers, small ones for whole numbers."""
    return _filled(TensorInfo("", tuple(shape), dtype), fill_mode, np.random.default_rng(0))


def _filled(info: TensorInfo, fill_mode: str, generator: np.random.Generator) -> np.ndarray[Any, Any]:
    shape = [UNKNOWN_EXTENT if size is None else size for size in info.shape]
    dtype = info.array_dtype
    if fill_mode == "zeros":
        return np.zeros(shape, dtype)
    if fill_mode == "ones":
        return np.ones(shape, dtype)
    if fill_mode != "random":
        raise TVMCException(f"inputs can be filled with zeros, ones or random values, not with {fill_mode!r}")
    if dtype.kind == "b":
        return generator.integers(0, 2, shape).astype(bool)
    if dtype.kind in "iu":
        return generator.integers(0, 128 if dtype.itemsize == 1 else 2, shape).astype(dtype)
    return generator.uniform(0.0, 1.0, shape).astype(dtype)


def make_inputs_dict(
    shape_dict: Mapping[str, Sequence[int]],
    dtype_dict: Mapping[str, str],
    inputs: Mapping[str, Any] | None = None,
    fill_mode: str = "random",
) -> dict[str, np.ndarray[Any, Any]]:
    """A value for every input: what is given, made up where nothing is. An error for names that are none."""
    infos = [TensorInfo(name, tuple(shape_dict[name]), dtype_dict[name]) for name in shape_dict]
    return complete_inputs(infos, inputs or {}, fill_mode)


def complete_inputs(
    infos: Sequence[TensorInfo],
    given: Mapping[str, Any],
    fill_mode: str = "random",
    generator: np.random.Generator | None = None,
) -> dict[str, np.ndarray[Any, Any]]:
    """A value for every input, of the right type and shape."""
    names = [one.name for one in infos]
    unknown = [name for name in given if name not in names]
    if unknown:
        raise _no_such_input(unknown, infos)
    chosen = generator if generator is not None else np.random.default_rng(0)
    values: dict[str, np.ndarray[Any, Any]] = {}
    for one in infos:
        if one.name in given:
            values[one.name] = _fitting(one, given[one.name])
        else:
            values[one.name] = _filled(one, fill_mode, chosen)
    return values


def with_shapes(infos: Sequence[TensorInfo], shapes: Mapping[str, Sequence[Any]] | None) -> list[TensorInfo]:
    """The inputs with shapes for those that are generated. An error for a name that is none, or a shape that does not
    fit."""
    unknown = [name for name in shapes or {} if name not in [one.name for one in infos]]
    if unknown:
        raise _no_such_input(unknown, infos)
    made = []
    for one in infos:
        given = tuple((shapes or {}).get(one.name, one.shape))
        sizes = tuple(size if size is None or isinstance(size, int) else None for size in given)
        if not fits(one, sizes):
            raise TVMCException(f"the input {one.text()} cannot have the shape {list(sizes)}")
        made.append(replace(one, shape=sizes))
    return made


def fits(info: TensorInfo, shape: Sequence[int | None]) -> bool:
    """True if an input can have this shape."""
    return len(shape) == len(info.shape) and all(
        size is None or size == extent for size, extent in zip(info.shape, shape, strict=True)
    )


def _no_such_input(unknown: Sequence[str], infos: Sequence[TensorInfo]) -> TVMCException:
    names = [one.name for one in infos]
    hint = did_you_mean(unknown[0], names)
    return TVMCException(
        f"the model has no input {', '.join(map(repr, unknown))}{hint}; it has {', '.join(names) or 'none'}"
    )


def _fitting(info: TensorInfo, given: Any) -> np.ndarray[Any, Any]:
    """A given value in the input's type; an error where its shape or type is another."""
    value = given.numpy() if isinstance(given, NDArray) else np.asarray(given)
    if not fits(info, value.shape):
        raise TVMCException(f"the input {info.text()} is given a value of shape {list(value.shape)}")
    wanted = info.array_dtype
    if value.dtype != wanted:
        # Text files and NumPy itself make float64 and int64; whatever else has to be meant so.
        if wanted.kind != value.dtype.kind and not (wanted.name == "bfloat16" and value.dtype.kind == "f"):
            raise TVMCException(
                f"the input {info.text()} is given values of type {value.dtype}: convert them first, "
                f"array.astype('{wanted}')"
            )
        value = _cast(info, value, wanted)
    return np.ascontiguousarray(value).reshape(value.shape)


def _cast(info: TensorInfo, value: np.ndarray[Any, Any], wanted: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """Whole numbers keep their value, or there is an error."""
    made = value.astype(wanted)
    if wanted.kind in "iu" and not np.array_equal(made, value):
        raise TVMCException(f"the input {info.text()} is given values that its type cannot represent")
    return made


def read_inputs(
    given: Sequence[str], infos: Sequence[TensorInfo], options: ImageOptions | None = None
) -> dict[str, np.ndarray[Any, Any]]:
    """The inputs of files: ``.npz`` has arrays by name; ``.npy`` and images are for the input that ``name=`` says, or
    for the only one."""
    values: dict[str, np.ndarray[Any, Any]] = {}
    images: dict[str, list[Path]] = {}
    by_name = {one.name: one for one in infos}
    for text in given:
        name, separator, rest = text.partition("=")
        if separator and name not in by_name and Path(rest).is_file() and not Path(text).is_file():
            raise _no_such_input([name], infos)
        if not separator or name not in by_name:
            name, rest = "", text
        path = Path(rest)
        suffix = path.suffix.lower()
        if not path.is_file():
            raise TVMCException(f"there is no file {path} for the inputs")
        if suffix == ".npz":
            values.update(_read_arrays(path))
        elif suffix == ".npy":
            values[name or _only(infos, path)] = _read_arrays(path)[""]
        elif suffix in SUFFIXES:
            images.setdefault(name or _only(infos, path), []).append(path)
        else:
            raise TVMCException(f"inputs are .npz, .npy or images ({', '.join(SUFFIXES)}), not {path}")
    for name, paths in images.items():
        values[name] = read_images(paths, by_name[name], options or ImageOptions())
    return values


def _only(infos: Sequence[TensorInfo], path: Path) -> str:
    if len(infos) != 1:
        names = ", ".join(one.name for one in infos)
        raise TVMCException(f"name the input for {path}: --inputs name={path}, one of {names or 'none'}")
    return infos[0].name


# What NumPy, and the zip files under it, raise for files that are damaged.
_UNREADABLE = (OSError, ValueError, EOFError, KeyError, NotImplementedError, zipfile.BadZipFile, zlib.error)


def _read_arrays(path: Path) -> dict[str, np.ndarray[Any, Any]]:
    """Arrays by name; an ``.npy`` has one, without a name."""
    try:
        with path.open("rb") as file:
            loaded = np.load(file, allow_pickle=False)
            if isinstance(loaded, np.ndarray):
                return {"": loaded}
            return {name: loaded[name] for name in loaded.files}
    except _UNREADABLE as problem:
        # NumPy takes a file of another kind for a pickle, and says how to load one, which nobody should.
        reason = f"not a file of NumPy's ({path.suffix})" if "pickle" in str(problem) else str(problem)
        raise TVMCException(f"the inputs {path} cannot be read: {reason}") from problem


def make_runnable(package: TVMCPackage) -> Runnable:
    """A package, loaded."""
    content = package.content
    library = package.load_library()
    if content.executor == "vm":
        return MachineRunnable(Executable(library), content.target)
    if content.executor == "aot":
        return FunctionRunnable(
            library[content.name], content.inputs, content.outputs, content.workspace_bytes
        )
    if content.executor != "graph" or content.graph is None:
        raise TVMCException(f"{package.package_path} contains no model: its executor is {content.executor!r}")
    return GraphRunnable(content.graph, library, content.params)


def _devices(package: TVMCPackage) -> list[Device]:
    """The devices that a package was compiled for."""
    content = package.content
    return target_devices(content.target) if content.graph is None else graph_devices(content.graph)


def run_module(
    tvmc_package: TVMCPackage,
    device: str | None = None,
    hostname: str | None = None,
    port: int | str = 9090,
    rpc_key: str | None = None,
    inputs: Mapping[str, Any] | None = None,
    fill_mode: str = "random",
    repeat: int = 10,
    number: int = 10,
    profile: bool = False,
    *,
    end_to_end: bool = False,
    measure: bool = True,
    fill_shapes: Mapping[str, Sequence[Any]] | None = None,
) -> TVMCResult:
    """Run a package on inputs, measure it ``repeat`` times ``number`` runs, and give outputs and times.

    Inputs that are not given are made up as ``fill_mode`` says: zeros, ones, or random, the same ones each time. With
    ``profile`` the result has a report on every kernel. ``fill_shapes`` gives shapes to made-up inputs whose sizes
    the model leaves open. Without a ``device`` it is the one that the package was compiled for.

    With ``hostname`` it runs on another machine: on a device of the tracker there that has the label ``rpc_key``, or
    without a label on the server there.
    """
    if not isinstance(tvmc_package, TVMCPackage):
        raise TVMCException(
            f"a TVMCPackage can be run, not a {type(tvmc_package).__name__}: compile the model first"
        )
    if rpc_key and not hostname:
        raise TVMCException(
            "rpc_key names a device of a tracker: give its hostname and port too, or --rpc-tracker"
        )
    if repeat < 1 or number < 1:
        raise TVMCException(f"repeat and number are at least 1, not {repeat} and {number}")
    with contextlib.ExitStack() as stack:
        if hostname:
            session = stack.enter_context(open_session(hostname, port, rpc_key))
            runnable = make_remote_runnable(tvmc_package, session, device or "cpu")
        else:
            if device is not None:
                require_named(device, _devices(tvmc_package))
            runnable = make_runnable(tvmc_package)
        return _run(
            tvmc_package,
            runnable,
            inputs,
            fill_mode,
            repeat,
            number,
            profile,
            end_to_end,
            measure,
            fill_shapes,
        )


def _run(
    tvmc_package: TVMCPackage,
    runnable: Runnable,
    inputs: Mapping[str, Any] | None,
    fill_mode: str,
    repeat: int,
    number: int,
    profile: bool,
    end_to_end: bool,
    measure: bool,
    fill_shapes: Mapping[str, Sequence[Any]] | None,
) -> TVMCResult:
    """Inputs, one run, and the measurements."""
    infos = with_shapes(tvmc_package.content.inputs, fill_shapes)
    values: Values = complete_inputs(infos, inputs or {}, fill_mode)
    runnable.set_inputs(values)
    outputs = runnable.run()
    times = runnable.benchmark(repeat, number, end_to_end) if measure else None
    names = [one.name for one in tvmc_package.content.outputs]
    if len(names) != len(outputs):  # a program whose results are not known before it runs
        names = [output_name(place) for place in range(len(outputs))]
    result = TVMCResult(dict(zip(names, outputs, strict=True)), times)
    result.filled = [one.name for one in tvmc_package.content.inputs if one.name not in (inputs or {})]
    if profile:
        result.profile = runnable.profile(repeat)
    return result


def add_run_parser(subparsers: Commands[argparse.ArgumentParser]) -> argparse.ArgumentParser:
    """Add the command with the options of ``tvmc run``."""
    parser = subparsers.add_parser("run", help="run a compiled model")
    add_run_arguments(parser)
    parser.set_defaults(func=drive_run)
    return parser


def inputs_from_arguments(
    args: argparse.Namespace, infos: Sequence[TensorInfo]
) -> dict[str, np.ndarray[Any, Any]]:
    """The inputs that the arguments name files for."""
    images = ImageOptions(
        args.image_layout,
        parse_numbers(args.mean, 0.0, "--mean"),
        parse_numbers(args.scale, 1.0, "--scale"),
    )
    return read_inputs(args.inputs or [], infos, images)


def fill_shapes_from_arguments(args: argparse.Namespace) -> dict[str, list[Any]] | None:
    """The shapes of ``--fill-shapes``."""
    if not args.fill_shapes:
        return None
    try:
        return parse_shape_string(args.fill_shapes)
    except argparse.ArgumentTypeError as problem:
        raise TVMCException(f"--fill-shapes: {problem}") from problem


def run_from_arguments(args: argparse.Namespace, package: TVMCPackage) -> TVMCResult:
    """Run a package as the arguments say."""
    hostname, port = tracker_host_port_from_cli(args.rpc_tracker)
    if hostname is not None and not args.rpc_key:
        raise TVMCException(
            "a tracker lends devices by a key: give --rpc-key; --hostname is for a server itself"
        )
    if hostname is None and args.hostname:
        hostname, port = args.hostname, args.port
    return run_module(
        package,
        args.device,
        hostname=hostname,
        port=port or 9090,
        rpc_key=args.rpc_key,
        inputs=inputs_from_arguments(args, package.content.inputs),
        fill_mode=args.fill_mode,
        repeat=args.repeat,
        number=args.number,
        profile=args.profile,
        end_to_end=args.end_to_end,
        measure=args.print_time,
        fill_shapes=fill_shapes_from_arguments(args),
    )


def drive_run(args: argparse.Namespace) -> int:
    """Runs the command, without printing."""
    result = run_from_arguments(args, TVMCPackage(args.FILE))
    if args.outputs:
        result.save(args.outputs, by_position=True)
    return 0
