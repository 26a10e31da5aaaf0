"""Checks before LLVM intrinsics are called by name.

LLVM aborts the process when it meets an intrinsic that the target has no instruction for. Intrinsics of another
architecture are rejected here by name. The common ones of each architecture are listed with the features that they
need; any other is test-compiled once in a child process, which may crash safely.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Sequence

from tilewright.codegen.llvm.machine import Machine
from tilewright.support.errors import CodegenError
from tilewright.support.span import Span

_ARCHITECTURES = frozenset(
    (
        "x86",
        "aarch64",
        "arm",
        "riscv",
        "wasm",
        "hexagon",
        "nvvm",
        "amdgcn",
        "r600",
        "ppc",
        "s390",
        "mips",
        "bpf",
        "ve",
    )
    + ("loongarch", "spv", "xcore", "dx")
)

_PREFIXES = {"nvptx": "nvvm"}
"""What intrinsics of a family begin with, where it is not the family's name."""

_GENERIC = re.compile(
    r"llvm\.(fma|fmuladd|sqrt|fabs|floor|ceil|trunc|round|rint|nearbyint|roundeven|copysign|minnum|maxnum|minimum|maximum"
    r"|exp|exp2|log|log2|log10|sin|cos|pow|powi|abs|smin|smax|umin|umax|ctpop|ctlz|cttz|bswap|bitreverse|fshl|fshr"
    r"|[su](add|sub|shl)\.sat|prefetch|vector\.reduce\.\w+)(\..*)?"
)

_KNOWN: tuple[tuple[str, str, frozenset[str]], ...] = (
    (r"llvm\.x86\.avx512\.vpdp(busd|busds|wssd|wssds)\.512", "x86", frozenset({"avx512vnni"})),
    (r"llvm\.x86\.avx512\.vpdp(busd|busds|wssd|wssds)\.(128|256)", "x86", frozenset({"avx512vnni", "avx512vl"})),
    (r"llvm\.x86\.avx512\.pmadd(ubs\.w|w\.d)\.512", "x86", frozenset({"avx512bw"})),
    (r"llvm\.x86\.avx2\.pmadd(\.ub\.sw|\.wd)", "x86", frozenset({"avx2"})),
    (r"llvm\.aarch64\.neon\.[su]dot(\..*)?", "aarch64", frozenset({"dotprod"})),
    (r"llvm\.aarch64\.neon\.(usdot|[su]mmla|usmmla)(\..*)?", "aarch64", frozenset({"i8mm"})),
    (r"llvm\.aarch64\.neon\.([su]mull|[su]addlp|addp|sqr?dmulh|[su]rshl)(\..*)?", "aarch64", frozenset({"neon"})),
    (r"llvm\.arm\.neon\.(vmull[su]|vpadal[su]|vpaddl[su]|vqr?dmulh|vrshifts)(\..*)?", "arm", frozenset({"neon"})),
)  # fmt: skip

_TRIAL = """
import sys, llvmlite.binding as llvm
llvm.initialize_all_targets(); llvm.initialize_all_asmprinters()
triple, cpu, features, text = sys.stdin.read().split(chr(0))
module = llvm.parse_assembly(text)
module.verify()
target = llvm.Target.from_triple(triple)
target.create_target_machine(cpu=cpu, features=features, reloc="pic", codemodel="default").emit_assembly(module)
"""
_TRIAL_SECONDS = 60

_verdicts: dict[tuple[str, str, str, str], str] = {}


def check_intrinsic(
    machine: Machine, name: str, result: str, arguments: Sequence[tuple[str, str]], span: Span | None
) -> None:
    """Refuse an intrinsic that this machine cannot compile; ``arguments`` are pairs of type and operand."""
    prefix = name.split(".")[1]
    if prefix in _ARCHITECTURES and prefix != _PREFIXES.get(machine.family, machine.family):
        raise CodegenError(
            f"{name} is an instruction of {prefix}, which the target {machine.triple} is not", span=span
        )
    if _GENERIC.fullmatch(name):
        return
    for pattern, family, needed in _KNOWN:
        if family == machine.family and needed <= machine.features and re.fullmatch(pattern, name):
            return
    problem = _try_alone(machine, name, result, arguments)
    if problem:
        raise CodegenError(
            f"LLVM cannot compile {name} for {machine.triple} with {machine.cpu}: {problem}", span=span
        )


def _try_alone(machine: Machine, name: str, result: str, arguments: Sequence[tuple[str, str]]) -> str:
    """Why the call of an intrinsic does not compile, or nothing."""
    parameters = [f"{kind} %a{k}" for k, (kind, operand) in enumerate(arguments) if operand.startswith("%")]
    # Constants stay constants: some operands must be.
    passed = [
        f"{kind} %a{k}" if operand.startswith("%") else f"{kind} {operand}"
        for k, (kind, operand) in enumerate(arguments)
    ]
    call = f"call {result} @{name}({', '.join(passed)})"
    body = f"{call}\n  ret void" if result == "void" else f"%r = {call}\n  ret {result} %r"
    text = f"define {result} @trial({', '.join(parameters)}) {{\n  {body}\n}}\n"
    key = (machine.triple, machine.cpu, machine.attributes, text)
    if key not in _verdicts:
        try:
            done = subprocess.run(
                [sys.executable, "-c", _TRIAL],
                input=chr(0).join(key),
                capture_output=True,
                text=True,
                timeout=_TRIAL_SECONDS,
                check=False,
            )
            lines = [line for line in done.stderr.splitlines() if "error" in line.lower()]
            _verdicts[key] = "" if done.returncode == 0 else (lines or ["the compiler gave up"])[-1].strip()
        except (OSError, subprocess.TimeoutExpired) as problem:
            _verdicts[key] = f"it could not be tried: {problem}"
    return _verdicts[key]
