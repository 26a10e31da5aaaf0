"""The machine description: this machine, and those that a target names."""

import re
import subprocess
import sys

import llvmlite.binding as llvm
import pytest

from tilewright.support.errors import TargetError
from tilewright.target import Target, describe_cpu, llvm_machine_options
from tilewright.target.cpu import family_of_triple, llvm_abi
from tilewright.target.cpu_models import MODELS
from tilewright.target.host import host_llvm
from tilewright.target.llvm_names import LLVM_NAMES


def test_llvm_alone_is_this_machine():
    """Triple, processor and features are those that LLVM finds on the host."""
    triple, cpu, features = llvm_machine_options("llvm")
    assert (triple, cpu) == (llvm.get_process_triple(), llvm.get_host_cpu_name())
    assert features == llvm.get_host_cpu_features().flatten()
    description = describe_cpu("llvm")
    present = {name for name, has in llvm.get_host_cpu_features().items() if has}
    assert present <= description.features
    assert description.l1d_bytes >= 8 << 10
    assert description.l2_bytes >= description.l1d_bytes
    assert description.cores >= 1
    assert describe_cpu("llvm -mcpu=native") == description


def test_attributes_alone_change_this_machine():
    """``-mattr`` without a processor is applied to the host's features, in LLVM's string too."""
    _, cpu, features = llvm_machine_options("llvm -mattr=-avx512f,+foo")
    assert cpu == host_llvm()[1]
    assert features.endswith("-avx512f,+foo")
    description = describe_cpu("llvm -mattr=-avx512f,+foo")
    assert "foo" in description.features
    assert not any(name.startswith("avx512") for name in description.features)


@pytest.mark.parametrize(
    ("target", "vector_bits", "registers", "fma", "l1d", "l2"),
    [
        ("llvm -mcpu=x86-64", 128, 16, False, 32, 256),
        ("llvm -mcpu=sandybridge", 256, 16, False, 32, 256),
        ("llvm -mcpu=skylake", 256, 16, True, 32, 256),
        ("llvm -mcpu=skylake-avx512", 512, 32, True, 32, 1024),
        ("llvm -mcpu=cascadelake", 512, 32, True, 32, 1024),
        ("llvm -mcpu=icelake-server", 512, 32, True, 48, 1280),
        ("llvm -mcpu=sapphirerapids", 512, 32, True, 48, 2048),
        ("llvm -mcpu=znver2", 256, 16, True, 32, 512),
        ("llvm -mcpu=znver4", 512, 32, True, 32, 1024),
        ("llvm -mcpu=skylake-avx512 -mattr=-avx512f", 256, 16, True, 32, 1024),
        ("llvm -mcpu=x86-64 -mattr=+avx512f", 512, 32, True, 32, 256),
        ("llvm -mcpu=skylake -mattr=-avx", 128, 16, False, 32, 256),
        ("llvm -mtriple=i686-linux-gnu", 32, 8, False, 32, 256),
        ("llvm -mtriple=i686-linux-gnu -mcpu=haswell", 256, 8, True, 32, 256),
        ("llvm -mcpu=cortex-a53", 128, 32, True, 32, 128),
        ("llvm -mcpu=neoverse-n1", 128, 32, True, 64, 1024),
        ("llvm -mcpu=apple-m1", 128, 32, True, 128, 3072),
        ("llvm -mtriple=armv7l-linux-gnueabihf", 128, 16, False, 16, 128),
        ("llvm -mtriple=armv7a-linux-gnueabihf -mcpu=cortex-a7", 128, 16, True, 32, 128),
        ("llvm -mtriple=thumbv7em-none-eabihf -mcpu=cortex-m4", 32, 16, True, 0, 0),
        ("llvm -mcpu=rv64gc", 32, 16, True, 32, 128),
        ("llvm -mcpu=rv64gcv", 128, 32, True, 32, 512),
        ("llvm -mcpu=sifive-x280", 512, 32, True, 32, 512),
        ("llvm -mtriple=wasm32-unknown-unknown", 32, 16, False, 32, 256),
        ("llvm -mtriple=wasm32-unknown-unknown -mattr=+simd128", 128, 16, False, 32, 256),
    ],
)
def test_named_machines(target, vector_bits, registers, fma, l1d, l2):
    """Vector unit, multiply-add and caches (in KiB) of machines that a target names."""
    found = describe_cpu(Target(target))
    assert (found.vector_bits, found.vector_registers, found.has_fma) == (vector_bits, registers, fma)
    assert (found.l1d_bytes >> 10, found.l2_bytes >> 10) == (l1d, l2)
    assert (found.fma_units > 0) == fma


def test_lanes():
    """A vector holds its bits' worth of elements, and never none."""
    assert describe_cpu("llvm -mcpu=skylake").lanes(32) == 8
    assert describe_cpu("llvm -mcpu=skylake").lanes(8) == 32
    assert describe_cpu("llvm -mcpu=rv64gc").lanes(64) == 1


@pytest.mark.parametrize(
    ("target", "triple", "cpu", "features"),
    [
        ("llvm -mtriple=aarch64-linux-gnu", "aarch64-unknown-linux-gnu", "generic", ""),
        ("llvm -mtriple=x86_64-pc-windows-msvc", "x86_64-pc-windows-msvc", "x86-64", ""),
        ("llvm -mcpu=cortex-a72 -mattr=+crc", "aarch64-unknown-linux-gnu", "cortex-a72", "+crc"),
        ("llvm -mcpu=rv64gc", "riscv64-unknown-linux-gnu", "generic-rv64", "+a,+c,+d,+f,+m"),
        ("llvm -mtriple=riscv32-unknown-elf", "riscv32-unknown-unknown-elf", "generic-rv32", ""),
        ("llvm -mtriple=wasm32-unknown-unknown", "wasm32-unknown-unknown", "generic", ""),
        (
            "llvm -mtriple=riscv64-linux-gnu -mcpu=sifive-u54",
            "riscv64-unknown-linux-gnu",
            "sifive-u54",
            "+a,+c,+d,+f,+m",
        ),
        ("llvm -mtriple=i686-linux-gnu", "i686-unknown-linux-gnu", "generic", ""),
        ("llvm -mtriple=i686-linux-gnu -mcpu=haswell", "i686-unknown-linux-gnu", "haswell", ""),
        ("nvptx -mcpu=sm_80", "nvptx64-nvidia-cuda", "sm_80", ""),
        ("rocm -mcpu=gfx906", "amdgcn-amd-amdhsa", "gfx906", ""),
        ("hexagon", "hexagon-unknown-unknown", "hexagonv66", ""),
        ("cuda --host='llvm -mcpu=cortex-a53'", "aarch64-unknown-linux-gnu", "cortex-a53", ""),
    ],
)
def test_machine_options(target, triple, cpu, features):
    """What LLVM is told for targets other than this machine; a device's target means its host."""
    assert llvm_machine_options(Target(target)) == (triple, cpu, features)


def test_device_without_a_host_means_this_machine():
    """The host code of a device target runs here unless it says otherwise."""
    assert describe_cpu("cuda") == describe_cpu("llvm")


def test_number_of_cores_can_be_given():
    """``-num-cores`` overrides what is known."""
    assert describe_cpu("llvm -num-cores=7").cores == 7
    assert describe_cpu("aws/graviton3").cores == 64


def test_abi():
    """RISC-V's ABI follows its floating-point registers, or the option."""
    assert llvm_abi("llvm -mcpu=rv64gc") == "lp64d"
    assert llvm_abi("llvm -mtriple=riscv32-unknown-elf -mcpu=sifive-e76") == "ilp32f"
    assert llvm_abi("llvm -mtriple=riscv64-unknown-elf") == "lp64"
    assert llvm_abi("llvm -mcpu=rv64gc -mabi=lp64") == "lp64"
    assert llvm_abi("llvm -mcpu=skylake") == ""


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("llvm -mcpu=skylke", "did you mean 'skylake'"),
        ("llvm -mtriple=x86_64-linux-gnu -mcpu=cortex-a72", "not a CPU of x86_64-linux-gnu"),
        ("llvm -mtriple=pdp11-dec-unix", "no CPU family"),
        ("llvm -mattr=avx2", r"starts with \+ or -"),
        ("llvm -mcpu=native -mtriple=aarch64-linux-gnu", "means this machine"),
    ],
)
def test_wrong_machine_is_refused(target, message):
    """A machine that LLVM would silently replace by the plainest one is an error."""
    with pytest.raises(TargetError, match=message):
        describe_cpu(Target(target))
    with pytest.raises(TargetError, match=message):
        llvm_machine_options(Target(target))


def test_families_of_triples():
    """The first word of a triple decides the family."""
    triples = "x86_64-linux-gnu i686-pc-windows arm64-apple-macos armv7a-linux thumbv7m-none riscv32-elf wasm32-wasi"
    families = ["x86", "x86", "aarch64", "arm", "arm", "riscv", "wasm"]
    assert [family_of_triple(triple) for triple in triples.split()] == families


@pytest.mark.parametrize(
    ("family", "triple"),
    [
        ("x86", "x86_64-linux-gnu"),
        ("aarch64", "aarch64-linux-gnu"),
        ("arm", "armv7a-linux-gnueabihf"),
        ("riscv", "riscv64-linux-gnu"),
        ("wasm", "wasm32-unknown-unknown"),
        ("hexagon", "hexagon"),
    ],
)
def test_llvm_knows_every_name(family, triple):
    """The list of names is LLVM's own, and every modelled processor is on it, or is one of our two RISC-V profiles."""
    program = (
        "import sys, llvmlite.binding as llvm; llvm.initialize_all_targets(); llvm.initialize_all_asmprinters();"
        "llvm.Target.from_triple(sys.argv[1]).create_target_machine(cpu='help')"
    )
    # LLVM leaves the process after printing help for some families, so the exit code says nothing.
    told = subprocess.run(
        [sys.executable, "-c", program, triple], capture_output=True, text=True, check=False
    ).stderr
    section = told.partition("Available features")[0]
    names = set(re.findall(r"^\s+(\S+)\s+-", section, re.MULTILINE))
    assert names
    if llvm.llvm_version_info[0] == 22:
        assert names == LLVM_NAMES[family]
    assert MODELS.get(family, {}).keys() - LLVM_NAMES[family] <= {"rv64gc", "rv64gcv"}


def assembly_of_fma(target, lanes):
    """What LLVM makes of one multiply-add of ``lanes`` floats for the target."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    triple, cpu, features = llvm_machine_options(Target(target))
    vector = f"<{lanes} x float>"
    module = llvm.parse_assembly(f"""
        declare {vector} @llvm.fma.v{lanes}f32({vector}, {vector}, {vector})
        define void @f(ptr %p) {{
          %a = load {vector}, ptr %p
          %b = call {vector} @llvm.fma.v{lanes}f32({vector} %a, {vector} %a, {vector} %a)
          store {vector} %b, ptr %p
          ret void
        }}
    """)
    machine = llvm.Target.from_triple(triple).create_target_machine(
        cpu=cpu, features=features, abiname=llvm_abi(target) or ""
    )
    return machine.emit_assembly(module)


FMA_IN_ASSEMBLY = {
    ("x86", 512): r"vfmadd\w+\s.*zmm",
    ("x86", 256): r"vfmadd\w+\s.*ymm",
    ("aarch64", 128): r"fmla\s+v\d+\.4s",
    ("arm", 128): r"vfma\.f32\s+q",
    ("riscv", 512): r"vfm\w+\.vv",
    ("riscv", 256): r"vfm\w+\.vv",
    ("riscv", 128): r"vfm\w+\.vv",
}


@pytest.mark.parametrize(
    ("family", "cpu"),
    [(family, cpu) for family in ("x86", "aarch64", "arm", "riscv") for cpu in sorted(MODELS[family])],
)
def test_llvm_agrees_about_the_vector_unit(family, cpu):
    """LLVM does one vector multiply-add in one instruction exactly where the description says it can."""
    triple = {"x86": "x86_64-linux-gnu", "aarch64": "aarch64-linux-gnu", "arm": "armv7a-linux-gnueabihf"}.get(
        family, "riscv64-linux-gnu"
    )
    if cpu.startswith(("cortex-m", "sifive-e", "generic-rv32")):
        triple = "thumbv8.1m.main-none-eabihf" if family == "arm" else "riscv32-unknown-elf"
    target = f"llvm -mtriple={triple} -mcpu={cpu}"
    description = describe_cpu(target)
    text = assembly_of_fma(target, max(description.lanes(32), 2))
    pattern = FMA_IN_ASSEMBLY.get((family, description.vector_bits), r"vfmadd|fmla|vfma\.f32\s+q|vfm\w+\.vv")
    has_vector_fma = re.search(pattern, text) is not None
    assert has_vector_fma == (description.has_fma and description.vector_bits > 32)
