"""The machine description that schedules and the code generator use.

``"llvm"`` without options is this machine with every feature of its CPU. ``-mcpu``, ``-mtriple`` and ``-mattr`` select
another: a CPU without a triple implies its family's triple, a triple without a CPU means the baseline CPU of that
family, and attributes without either change this machine's features.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final

from tilewright.support.errors import TargetError
from tilewright.support.triple import Triple
from tilewright.target.cpu_features import apply_attributes, checked_attribute, close, fma_in, vector_unit
from tilewright.target.cpu_models import MODELS, RISCV, CPUModel
from tilewright.target.host import host_caches, host_cores, host_family_triple, host_features, host_llvm
from tilewright.target.kind import nearest
from tilewright.target.llvm_names import LLVM_NAMES
from tilewright.target.measured import MeasuredCPU, kept_measurement
from tilewright.target.target import Target, TargetLike

_FAMILY_PREFIXES: Final = (
    ("x86_64", "x86"),
    ("amd64", "x86"),
    ("i386", "x86"),
    ("i486", "x86"),
    ("i586", "x86"),
    ("i686", "x86"),
    ("aarch64", "aarch64"),
    ("arm64", "aarch64"),
    ("arm", "arm"),
    ("thumb", "arm"),
    ("riscv", "riscv"),
    ("wasm", "wasm"),
    ("hexagon", "hexagon"),
)

# Used where a CPU of another family than this machine's is named without a triple.
_DEFAULT_TRIPLES: Final = {
    "x86": "x86_64-unknown-linux-gnu",
    "aarch64": "aarch64-unknown-linux-gnu",
    "arm": "armv7a-unknown-linux-gnueabihf",
    "riscv": "riscv64-unknown-linux-gnu",
    "wasm": "wasm32-unknown-unknown",
    "hexagon": "hexagon-unknown-unknown-elf",
}

# LLVM avoids multiply-accumulates on the 32-bit cores where one that waits for another is slow, and for most of them
# orders instructions without a look at the registers. Micro-kernels have accumulators enough that none waits, and need
# every register.
_NEON_TUNING: Final = ("-slowfpvmlx", "-vmlx-hazards", "-expand-fp-mlx", "+use-misched")


@dataclass(frozen=True)
class CPUDescription:
    """The properties of a CPU that schedules rely on.

    ``family`` is one of x86, aarch64, arm, riscv, wasm and hexagon. ``vector_bits`` is the widest vector that code
    should use, ``vector_registers`` how many of them there are. A machine without vectors has one register lane of
    32 bits. ``fma_units`` multiply-adds of full width start each cycle and take ``fma_latency`` cycles. Sizes are of
    what one core sees, in bytes, 0 where there is none. ``cores`` is how many a program may use.

    The rest are costs: those of a typical server, or of this machine where ``tilewright doctor --measure`` measured it.
    ``l2_bytes_per_cycle`` is the rate at which a loop of multiply-adds streams from L2, ``memory_bytes_per_cycle`` what
    a core gets from beyond L2 while it computes, ``l3_bytes_per_cycle`` what it gets of that where L3 has it. Below
    ``parallel_work`` operations, a loop is not worth a parallel region, which costs about a microsecond.
    """

    family: str
    triple: str
    name: str
    features: frozenset[str]
    vector_bits: int
    vector_registers: int
    has_fma: bool
    fma_units: int
    fma_latency: int
    l1d_bytes: int
    l2_bytes: int
    l3_bytes: int
    cache_line_bytes: int
    cores: int
    l2_bytes_per_cycle: float = 16.0
    memory_bytes_per_cycle: float = 6.0
    l3_bytes_per_cycle: float = 12.0
    parallel_work: int = 65_536

    def __str__(self) -> str:
        """Every property, sorted, so that cache keys are the same in every process: a set prints in hash order."""
        return repr({**vars(self), "features": sorted(self.features)})

    def lanes(self, bits: int) -> int:
        """Elements of this many bits that one vector holds; 1 where there are no vectors."""
        return max(1, self.vector_bits // bits)

    @property
    def folds_loads(self) -> bool:
        """True if an arithmetic instruction may read one of its operands from memory."""
        return self.family == "x86"

    @property
    def holds_broadcasts(self) -> bool:
        """True if a factor that all lanes share has to be loaded into a vector register of its own."""
        return not self.folds_loads and not self.multiplies_by_element and self.family != "riscv"

    @property
    def multiplies_by_element(self) -> bool:
        """True if a multiply-add takes one of its factors from any element of a vector register."""
        return "neon" in self.features and self.family in ("aarch64", "arm")

    @property
    def loads_scalars_together(self) -> bool:
        """True if the loads of neighbouring factors must be written as one vector load for a multiply-add by element to
        be used: on 32-bit ARM, LLVM prefers a broadcasting load for each."""
        return self.multiplies_by_element and self.family == "arm"

    @property
    def multiplies_halves(self) -> bool:
        """True if a multiply-add takes float16 factors for a float32 sum, so that they need not be widened."""
        return self.family == "aarch64" and "fp16fml" in self.features

    @property
    def groups_registers(self) -> bool:
        """True if one instruction works on a group of neighbouring vector registers."""
        return self.family == "riscv"

    @property
    def has_vector_offsets(self) -> bool:
        """True if a vector load adds a constant to its address; else each place needs an instruction, or a register."""
        return self.family not in ("arm", "riscv")

    @property
    def has_prefetch(self) -> bool:
        """True if there is an instruction that prefetches."""
        return self.family != "wasm" and (self.family != "riscv" or "zicbop" in self.features)


@dataclass(frozen=True)
class _Machine:
    """A resolved target: which CPU LLVM generates code for, and whether it is this machine's."""

    family: str
    triple: str
    cpu: str
    attributes: tuple[str, ...]
    is_host: bool


def describe_cpu(target: TargetLike) -> CPUDescription:
    """The description of the CPU that ``target`` (of kind llvm, c, hexagon, or its host) runs on."""
    return _describe(_cpu_target(target), kept_measurement())


@lru_cache(maxsize=128)
def _describe(target: Target, measured: MeasuredCPU | None) -> CPUDescription:
    machine = _resolve(target, need_llvm=False)
    family, cpu = machine.family, machine.cpu
    model = MODELS.get(family, {}).get(cpu) or _plainest(family)
    if machine.is_host:
        base = host_features()
    elif _is_32_bit_x86(machine.triple) and cpu == "generic":
        base = frozenset()
    else:
        base = model.features | _features_of_triple(machine.triple, family)
    features = apply_attributes(family, close(family, base), machine.attributes)
    caches = host_caches() if machine.is_host else {}
    vector_bits, registers = vector_unit(family, features)
    has_fma = fma_in(family, features)
    described = CPUDescription(
        family=family,
        triple=machine.triple,
        name=cpu,
        features=features,
        vector_bits=vector_bits,
        vector_registers=min(registers, 8) if _is_32_bit_x86(machine.triple) else registers,
        has_fma=has_fma,
        fma_units=max(1, model.fma_units) if has_fma else 0,
        fma_latency=model.fma_latency,
        l1d_bytes=caches.get("l1d", model.l1d_bytes),
        l2_bytes=caches.get("l2", model.l2_bytes),
        l3_bytes=caches.get("l3", model.l3_bytes),
        cache_line_bytes=caches.get("line", 64),
        cores=int(target.attrs.get("num-cores", 0)) or (host_cores() if machine.is_host else model.cores),
    )
    # Measured with all features: what narrower vectors reach is another matter.
    if measured is None or not machine.is_host or measured.vector_bits != vector_bits:
        return described
    return _with_costs(described, measured, is_known=cpu != "generic" and cpu in MODELS.get(family, {}))


def _with_costs(described: CPUDescription, measured: MeasuredCPU, is_known: bool) -> CPUDescription:
    """The description with measured costs; a CPU that is known keeps its units, which no measurement rounds wrong."""
    if described.has_fma and not is_known:
        described = replace(described, fma_units=measured.fma_units, fma_latency=measured.fma_latency_cycles)
    return replace(
        described,
        l2_bytes_per_cycle=measured.l2_bytes_per_cycle,
        memory_bytes_per_cycle=measured.memory_bytes_per_cycle,
        l3_bytes_per_cycle=measured.l3_bytes_per_cycle,
        parallel_work=measured.parallel_work,
    )


def llvm_machine_options(target: TargetLike) -> tuple[str, str, str]:
    """The triple, CPU and feature string that LLVM uses for ``target``."""
    made = Target(target)
    if made.kind.name == "nvptx":
        return str(made.attrs.get("mtriple", "nvptx64-nvidia-cuda")), made.mcpu or "sm_70", ""
    if made.kind.name == "rocm":
        return str(made.attrs.get("mtriple", "amdgcn-amd-amdhsa")), made.mcpu or "gfx900", ""
    machine = _resolve(_cpu_target(made), need_llvm=True)
    if machine.is_host:
        triple, cpu, features = host_llvm()
        return triple, cpu, ",".join([features, *machine.attributes] if features else machine.attributes)
    named = [f"+{feature}" for feature in sorted(_features_to_name(machine))]
    tuned = _NEON_TUNING if machine.family == "arm" and describe_cpu(target).multiplies_by_element else ()
    attributes = ",".join([*named, *tuned, *machine.attributes])
    return Triple.parse(machine.triple).llvm, _llvm_name(machine), attributes


def _llvm_name(machine: _Machine) -> str:
    """LLVM's name of the CPU; each family names its baseline differently."""
    if machine.cpu in LLVM_NAMES[machine.family] and machine.cpu != "generic":
        return machine.cpu
    if machine.family == "riscv":
        return "generic-rv32" if machine.triple.startswith("riscv32") else "generic-rv64"
    return "x86-64" if machine.family == "x86" and not _is_32_bit_x86(machine.triple) else "generic"


def _features_to_name(machine: _Machine) -> frozenset[str]:
    """Features that the description relies on and LLVM does not derive from the CPU's name or the triple."""
    if machine.family != "riscv":
        return frozenset()
    # The profiles rv64gc and rv64gcv are not CPUs to LLVM, and the features that Linux requires must be requested.
    profile = RISCV[machine.cpu].features if machine.cpu not in LLVM_NAMES["riscv"] else frozenset()
    return profile | _features_of_triple(machine.triple, "riscv")


def llvm_abi(target: TargetLike) -> str:
    """The name of the ABI that code for ``target`` keeps: ``-mabi``, RISC-V's by its registers, else empty."""
    made = _cpu_target(target)
    if "mabi" in made.attrs:
        return str(made.attrs["mabi"])
    description = describe_cpu(made)
    if description.family != "riscv":
        return ""
    integers = "ilp32" if description.triple.startswith("riscv32") else "lp64"
    return integers + ("d" if "d" in description.features else "f" if "f" in description.features else "")


def family_of_triple(triple: str) -> str:
    """The family of CPUs of an LLVM triple; an unknown one raises ``TargetError``."""
    for prefix, family in _FAMILY_PREFIXES:
        if triple.startswith(prefix):
            return family
    raise TargetError(
        f"-mtriple={triple}: no CPU family is known for {triple.partition('-')[0]!r}; "
        f"known are {', '.join(_DEFAULT_TRIPLES.values())} and the like"
    )


def _cpu_target(target: TargetLike) -> Target:
    """The target itself, or its host where it is for a device."""
    made = target if isinstance(target, Target) else Target(target)
    if made.kind.name in ("llvm", "c", "hexagon", "stackvm", "hybrid"):
        return made
    if made.host is not None:
        return _cpu_target(made.host)
    return Target("llvm")


def _resolve(target: Target, *, need_llvm: bool) -> _Machine:
    """Which machine the target names. Without LLVM, this machine is described as far as the system tells."""
    triple = str(target.attrs.get("mtriple", ""))
    cpu = target.mcpu
    attributes = tuple(checked_attribute(attribute) for attribute in target.mattr or ())
    if target.kind.name == "hexagon":
        triple = triple or "hexagon"
        cpu = cpu or "hexagonv66"
    if target.kind.name == "c" and cpu:
        # The word goes to the C compiler, whose names have suffixes that LLVM's lack: cortex-m4+nodsp.
        cpu = cpu.partition("+")[0]
    if not triple and cpu in ("", "native", "host"):
        host_triple, host_cpu = _host_names(need_llvm=need_llvm)
        return _Machine(family_of_triple(host_triple), host_triple, host_cpu, attributes, is_host=True)
    if cpu in ("native", "host"):
        raise TargetError(f"-mcpu={cpu} means this machine, so it cannot be combined with -mtriple={triple}")
    if not triple:
        host_triple, _ = _host_names(need_llvm=need_llvm)
        host_family = family_of_triple(host_triple)
        family = host_family if _knows(host_family, cpu) else _family_of_cpu(cpu)
        triple = host_triple if family == host_family else _DEFAULT_TRIPLES[family]
    family = family_of_triple(triple)
    if cpu and not _knows(family, cpu):
        known = LLVM_NAMES[family] | MODELS.get(family, {}).keys()
        raise TargetError(f"-mcpu={cpu} is not a CPU of {triple}{nearest(cpu, known)}")
    return _Machine(family, triple, cpu or "generic", attributes, is_host=False)


def _host_names(*, need_llvm: bool) -> tuple[str, str]:
    """This machine's triple and CPU name; a guess without LLVM, or where it is not needed."""
    try:
        triple, cpu, _ = host_llvm()
    except TargetError:
        if need_llvm:
            raise
        return host_family_triple(), "generic"
    return triple, cpu


def _knows(family: str, cpu: str) -> bool:
    return cpu in LLVM_NAMES[family] or cpu in MODELS.get(family, {})


def _family_of_cpu(cpu: str) -> str:
    """The family that a CPU belongs to; AArch64 comes before ARM, whose names it shares."""
    for family in _DEFAULT_TRIPLES:
        if _knows(family, cpu):
            return family
    known = frozenset[str]().union(*LLVM_NAMES.values(), *MODELS.values())
    raise TargetError(f"-mcpu={cpu} is not a CPU that LLVM knows{nearest(cpu, known)}")


def _plainest(family: str) -> CPUModel:
    return MODELS[family]["generic"] if family in MODELS else CPUModel(frozenset())


def _is_32_bit_x86(triple: str) -> bool:
    return re.match(r"i\d86", triple) is not None


def _features_of_triple(triple: str, family: str) -> frozenset[str]:
    """The features of the architecture version in a triple, if no CPU is given."""
    if family == "arm" and re.match(r"(arm|thumb)v[89](\.\d+)?(a|l|r)?(-|$)", triple):
        return frozenset({"neon", "fp-armv8", "vfp4", "vfp3"})
    if family == "arm" and re.match(r"(arm|thumb)v7(a|l|s|k|ve|hf)?(-|$)", triple):
        return frozenset({"neon", "vfp3"})
    if family == "riscv" and triple.startswith("riscv64") and "linux" in triple:
        return frozenset("mafdc")
    return frozenset()
