"""``tilewright doctor``: what this machine has, which parts of Tilewright work on it, and one end-to-end test."""

from __future__ import annotations

import argparse
import importlib.util
import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib import metadata

import numpy

import tilewright as tvm
from tilewright import te
from tilewright.codegen.llvm.measurement import measure_machine
from tilewright.driver import tvmc
from tilewright.driver.cli.devices import cuda_devices, describe_device
from tilewright.driver.cli.output import bytes_text, show_json, show_table
from tilewright.support.cbuild import runtime_library, zig_command
from tilewright.support.errors import TilewrightError
from tilewright.support.options import cache_dir
from tilewright.target.cpu import describe_cpu
from tilewright.target.measured import keep_measurement, kept_measurement

OK, MISSING, FAILED = "ok", "missing", "failed"

# Optional packages: what to import, the extra that installs it, and what it is for.
_PACKAGES = (
    ("onnx", "", "ONNX models"),
    ("rich", "", "tables on a terminal"),
    ("ziglang", "cross", "linking without a C compiler, and for other machines"),
    ("PIL", "images", "images as inputs"),
    ("onnxruntime", "", "a second reference for tilewright compile --validate"),
    ("torch", "torch", "PyTorch tensors, without a copy"),
    ("tvm_ffi", "test", "loading artefacts through apache-tvm-ffi"),
)


# The features that decide which vector code can be made.
_NOTABLE_FEATURES = (
    *("avx2", "fma", "avx512f", "avx512vnni", "avx512bf16", "avx512fp16", "avxvnni", "amx-tile"),
    *("neon", "dotprod", "i8mm", "bf16", "fullfp16", "sve", "v"),
)


_NO_DRIVER = "this version generates source code for it, but cannot run it"


@dataclass(frozen=True)
class Finding:
    """One line of the report. Only a ``failed`` one makes the exit code 1; ``missing`` things are optional."""

    area: str
    name: str
    status: str
    detail: str


def add_commands(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    parser = commands.add_parser("doctor", help="check this machine and run an end-to-end self-test")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument(
        "--measure",
        action="store_true",
        help="measure the rates of this processor and keep them: schedules are then computed from them",
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the findings; 1 if something that must work does not."""
    if arguments.measure:
        keep_measurement(measure_machine())
    findings = [
        *(_checked(area, check) for area, check in _CHECKS),
        *_compilers(),
        *_packages(),
        *_formats(),
        *_gpus(),
        _checked("self-test", _self_test),
    ]
    healthy = all(finding.status != FAILED for finding in findings)
    if arguments.json:
        show_json({"healthy": healthy, "findings": [asdict(finding) for finding in findings]})
    else:
        rows = [[finding.area, finding.name, finding.status, finding.detail] for finding in findings]
        show_table("tilewright doctor", ["area", "name", "status", "detail"], rows)
        print("everything required works" if healthy else "something required does not work; see above")
    return 0 if healthy else 1


def _checked(area: str, check: Callable[[], tuple[str, str]]) -> Finding:
    """The finding of one check; an error that it raises is what it found."""
    try:
        name, detail = check()
    except (TilewrightError, OSError, ImportError, AssertionError) as problem:
        return Finding(
            area, check.__name__.strip("_").replace("_", " "), FAILED, str(problem).replace("\n", " ")
        )
    return Finding(area, name, OK, detail)


def _python() -> tuple[str, str]:
    return (
        "Python",
        f"{platform.python_version()} on {platform.system()} {platform.machine()} ({sys.executable})",
    )


def _llvm() -> tuple[str, str]:
    import llvmlite
    import llvmlite.binding

    version = ".".join(str(part) for part in llvmlite.binding.llvm_version_info)
    return "LLVM", f"{version} through llvmlite {llvmlite.__version__}"


def _numpy() -> tuple[str, str]:
    return "NumPy", numpy.__version__


def _processor() -> tuple[str, str]:
    cpu = describe_cpu("llvm")
    vectors = f"{cpu.vector_registers} vector registers of {cpu.vector_bits} bits"
    return cpu.name, f"{cpu.cores} cores, {vectors}, {'fused' if cpu.has_fma else 'no fused'} multiply-add"


def _features() -> tuple[str, str]:
    features = describe_cpu("llvm").features
    return "features", " ".join(name for name in _NOTABLE_FEATURES if name in features) or "none of note"


def _caches() -> tuple[str, str]:
    cpu = describe_cpu("llvm")
    sizes = (("L1", cpu.l1d_bytes), ("L2", cpu.l2_bytes), ("L3", cpu.l3_bytes))
    return "caches", ", ".join(f"{name} {bytes_text(size)}" for name, size in sizes if size)


_NOT_MEASURED = "not measured: 'tilewright doctor --measure' takes a few seconds of an idle machine"


def _rates() -> tuple[str, str]:
    measured = kept_measurement()
    if measured is None:
        return "rates", _NOT_MEASURED
    return "rates", (
        f"{measured.flops_one_core / 1e9:.0f} GFLOP/s on one core, {measured.flops_all_cores / 1e9:.0f} on "
        f"{measured.cores}, at {measured.cycles_per_second / 1e9:.2f} GHz; "
        f"a parallel loop costs {measured.dispatch_seconds * 1e6:.2f} µs"
    )


def _bandwidths() -> tuple[str, str]:
    measured = kept_measurement()
    if measured is None:
        return "bandwidths", _NOT_MEASURED
    levels = ", ".join(
        f"{level.level} {level.one_core / 1e9:.0f} ({level.all_cores / 1e9:.0f})" for level in measured.levels
    )
    return "bandwidths", f"GB/s on one core (on all): {levels}"


def _runtime() -> tuple[str, str]:
    path = runtime_library()
    return "runtime library", f"{bytes_text(path.stat().st_size)}, {path}"


def _cache_folder() -> tuple[str, str]:
    folder = cache_dir()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=folder):
            return "cache folder", f"{folder} can be written"
    except OSError as problem:
        return "cache folder", (
            f"{folder} cannot be written ({problem.strerror}): nothing is kept between runs; "
            "TILEWRIGHT_CACHE_DIR names another folder"
        )


_CHECKS: tuple[tuple[str, Callable[[], tuple[str, str]]], ...] = (
    ("software", _python),
    ("software", _numpy),
    ("software", _llvm),
    ("processor", _processor),
    ("processor", _features),
    ("processor", _caches),
    ("processor", _rates),
    ("processor", _bandwidths),
    ("runtime", _runtime),
    ("runtime", _cache_folder),
)


def _compilers() -> list[Finding]:
    """The C compilers that could link an artefact; one is enough, and none is needed to compile and run."""
    found = [(name, shutil.which(name)) for name in ("cc", "gcc", "clang")]
    findings = [Finding("compiler", name, OK, path) for name, path in found if path]
    zig = zig_command()
    if zig is not None:
        findings.append(Finding("compiler", "zig cc", OK, " ".join(zig)))
    if not any(finding.name in ("cc", "gcc", "clang", "zig cc") for finding in findings):
        advice = 'export_library to .so needs one: pip install "tilewright[cross]"'
        findings.append(Finding("compiler", "C compiler", MISSING, advice))
    return findings


def _packages() -> list[Finding]:
    findings = []
    for name, extra, purpose in _PACKAGES:
        if importlib.util.find_spec(name) is not None:
            findings.append(Finding("package", name, OK, f"{_version_of(name)}; {purpose}"))
        else:
            advice = f'pip install "tilewright[{extra}]"' if extra else f"pip install {name}"
            findings.append(Finding("package", name, MISSING, f"{purpose}: {advice}"))
    return findings


def _formats() -> list[Finding]:
    """The formats of models that can be read, those of other packages included."""
    return [
        Finding("format", name, OK, " ".join(f".{suffix}" for suffix in frontend.suffixes))
        for name, frontend in sorted(tvmc.frontends.registry.readable_formats().items())
    ]


def _version_of(package: str) -> str:
    """The version of the distribution that an import name comes from."""
    names = metadata.packages_distributions().get(package, [package])
    try:
        return metadata.version(names[0])
    except metadata.PackageNotFoundError:
        return "unknown version"


def _gpus() -> list[Finding]:
    """The NVIDIA GPUs that the driver shows, and whether there may be an AMD one."""
    findings = [Finding("gpu", str(device), OK, describe_device(device)) for device in cuda_devices()]
    if os.path.exists("/dev/kfd"):
        findings.append(Finding("gpu", "rocm", OK, f"/dev/kfd is there; {_NO_DRIVER}"))
    return findings or [
        Finding(
            "gpu", "none", MISSING, "no GPU driver was found; source code for GPUs can still be generated"
        )
    ]


def _self_test() -> tuple[str, str]:
    """Compile a scheduled computation, run it on threads and compare with NumPy."""
    length = 1000
    left = te.placeholder((length,), name="left")
    right = te.placeholder((length,), name="right")
    total = te.compute((length,), lambda i: left[i] * 2.0 + te.exp(right[i]), name="total")
    schedule = te.create_schedule(total.op)
    outer, inner = schedule[total].split(total.op.axis[0], factor=16)
    schedule[total].parallel(outer)
    schedule[total].vectorize(inner)
    function = tvm.build(schedule, [left, right, total], "llvm", name="self_test")
    generator = numpy.random.default_rng(0)
    first = generator.standard_normal(length, dtype="float32")
    second = generator.standard_normal(length, dtype="float32")
    result = tvm.nd.array(numpy.zeros(length, dtype="float32"))
    function(tvm.nd.array(first), tvm.nd.array(second), result)
    expected = first * 2.0 + numpy.exp(second)
    error = float(numpy.max(numpy.abs(result.numpy() - expected) / numpy.maximum(numpy.abs(expected), 1.0)))
    if not error < 1e-5:
        raise AssertionError(f"compiled code differs from NumPy by {error:.1e}")
    return "compile and run", f"agrees with NumPy to {error:.1e}"
