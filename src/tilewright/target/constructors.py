"""Functions that make a target for a family of devices, with extra options as a string or a list of strings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias

from tilewright.support.errors import TargetError
from tilewright.target.kind import nearest
from tilewright.target.target import Target

Options: TypeAlias = str | Sequence[str] | None

_ARM_MODELS: Final = {
    "pixel2": "-model=snapdragon835 -mtriple=arm64-linux-android -mattr=+neon",
    "mate10": "-model=kirin970 -mtriple=arm64-linux-android -mattr=+neon",
    "mate10pro": "-model=kirin970 -mtriple=arm64-linux-android -mattr=+neon",
    "p20": "-model=kirin970 -mtriple=arm64-linux-android -mattr=+neon",
    "p20pro": "-model=kirin970 -mtriple=arm64-linux-android -mattr=+neon",
    "rasp3b": "-model=bcm2837 -mtriple=armv7l-linux-gnueabihf -mattr=+neon",
    "rasp4b": "-model=bcm2711 -mtriple=armv8l-linux-gnueabihf -mattr=+neon -mcpu=cortex-a72",
    "rasp4b64": "-model=bcm2711 -mtriple=aarch64-linux-gnu -mattr=+neon -mcpu=cortex-a72",
    "rk3399": "-model=rk3399 -mtriple=aarch64-linux-gnu -mattr=+neon",
    "pynq": "-model=pynq -mtriple=armv7a-linux-eabi -mattr=+neon",
    "ultra96": "-model=ultra96 -mtriple=aarch64-linux-gnu -mattr=+neon",
    "beagleai": "-model=beagleai -mtriple=armv7a-linux-gnueabihf -mattr=+neon,+vfp4,+thumb2 -mcpu=cortex-a15",
    "stm32mp1": "-model=stm32mp1 -mtriple=armv7a-linux-gnueabihf -mattr=+neon,+vfp4,+thumb2 -mcpu=cortex-a7",
    "thunderx": "-model=thunderx -mtriple=aarch64-linux-gnu -mattr=+neon,+crc,+lse -mcpu=thunderxt88",
}

_RISCV_MODELS: Final = {
    name: f"-model={name} -mtriple={triple} -mcpu={cpu} -mabi={abi}"
    for name, triple, cpu, abi in (
        ("sifive-e31", "riscv32-unknown-elf", "sifive-e31", "ilp32"),
        ("sifive-e76", "riscv32-unknown-elf", "sifive-e76", "ilp32"),
        ("sifive-u54", "riscv64-unknown-linux-gnu", "sifive-u54", "lp64d"),
        ("sifive-u74", "riscv64-unknown-linux-gnu", "sifive-u74", "lp64d"),
    )
}

# Flags for the C compiler of each board.
_MICRO_MODELS: Final = {
    "host": "",
    "atsamd51": "-mcpu=cortex-m4",
    "cxd5602gg": "-mcpu=cortex-m4",
    "esp32": "",
    "imxrt10xx": "-mcpu=cortex-m7",
    "mps2_an521": "-mcpu=cortex-m33",
    "mps3_an547": "-mcpu=cortex-m55",
    "nrf52840": "-mcpu=cortex-m4+nodsp",
    "nrf5340dk": "-mcpu=cortex-m33",
    "sam3x8e": "-mcpu=cortex-m3",
    "stm32f746xx": "-mcpu=cortex-m7 -march=armv7e-m",
    "stm32h7xx": "-mcpu=cortex-m7",
    "stm32l4r5zi": "-mcpu=cortex-m4",
    "stm32u5xx": "-mcpu=cortex-m33",
    "zynq_mp_r5": "-mcpu=cortex-r5",
}


_HEXAGON_NAMES: Final = ("v60", "v62", "v65", "v66", "v67", "v67t", "v68", "v69", "v71", "v73", "v75", "v79")


def _make(words: Sequence[str], options: Options) -> Target:
    extra = [options] if isinstance(options, str) else list(options or [])
    return Target(" ".join([*words, *extra]))


def cuda(model: str = "unknown", options: Options = None, *, arch: str | None = None) -> Target:
    """An NVIDIA GPU; ``arch`` is its architecture, such as "sm_80"."""
    return _make(["cuda", f"-model={model}", *([f"-arch={arch}"] if arch else [])], options)


def rocm(model: str = "unknown", options: Options = None) -> Target:
    """An AMD GPU."""
    return _make(["rocm", f"-model={model}"], options)


def mali(model: str = "unknown", options: Options = None) -> Target:
    """An ARM Mali GPU of the Midgard generation, through OpenCL."""
    return _make(["opencl", "-device=mali", f"-model={model}"], options)


def bifrost(model: str = "unknown", options: Options = None) -> Target:
    """An ARM Mali GPU of the Bifrost generation, through OpenCL."""
    return _make(["opencl", "-device=bifrost", f"-model={model}"], options)


def intel_graphics(model: str = "unknown", options: Options = None) -> Target:
    """An Intel integrated GPU, through OpenCL."""
    return _make(["opencl", "-device=intel_graphics", f"-model={model}", "-thread_warp_size=16"], options)


def arm_cpu(model: str = "unknown", options: Options = None) -> Target:
    """An ARM CPU; a known board or phone brings its triple and attributes, another name is taken as it is."""
    return _make(["llvm", "-device=arm_cpu", _ARM_MODELS.get(model, f"-model={model}")], options)


def rasp(options: Options = None) -> Target:
    """A Raspberry Pi 3; ``arm_cpu("rasp3b")`` says the same."""
    return arm_cpu("rasp3b", options)


def vta(model: str = "unknown", options: Options = None) -> Target:
    """A VTA accelerator."""
    return _make(["ext_dev", "-keys=vta,cpu", "-device=vta", f"-model={model}"], options)


def riscv_cpu(model: str = "sifive-u54", options: Options = None) -> Target:
    """A RISC-V CPU; a known core brings its triple, CPU and ABI."""
    return _make(
        ["llvm", "-keys=arm_cpu,cpu", "-device=arm_cpu", _RISCV_MODELS.get(model, f"-model={model}")], options
    )


def micro(model: str = "unknown", options: Options = None) -> Target:
    """A microcontroller, through C; only known models are taken, as their compiler flags are needed."""
    if model not in _MICRO_MODELS:
        raise TargetError(
            f"{model!r} is not a known microcontroller{nearest(model, _MICRO_MODELS)}; "
            f"the known ones are {', '.join(_MICRO_MODELS)}"
        )
    words = [
        "c",
        "-keys=micro_dev,cpu" if model != "host" else "-keys=cpu",
        _MICRO_MODELS[model],
        f"-model={model}",
    ]
    return _make([word for word in words if word], options)


def hexagon(
    cpu_ver: str = "v66", *, hvx: int = 128, llvm_options: Options = None, link_params: bool = False
) -> Target:
    """A Hexagon CPU of one generation, with vectors of ``hvx`` bytes (0: no vector unit, 64 or 128)."""
    if cpu_ver not in _HEXAGON_NAMES:
        raise TargetError(
            f"{cpu_ver!r} is not a Hexagon generation{nearest(cpu_ver, _HEXAGON_NAMES)}; "
            f"they are {', '.join(_HEXAGON_NAMES)}"
        )
    if hvx not in (0, 64, 128):
        raise TargetError(f"the Hexagon vector unit is of 0, 64 or 128 bytes, not {hvx}")
    attributes = [f"+hvx{cpu_ver}", f"+hvx-length{hvx}b"] if hvx else ["-hvx"]
    extra = [llvm_options] if isinstance(llvm_options, str) else list(llvm_options or [])
    config = {
        "kind": "hexagon",
        "mtriple": "hexagon",
        "mcpu": f"hexagon{cpu_ver}",
        "mattr": attributes,
        "link-params": link_params,
        **({"llvm-options": extra} if extra else {}),
    }
    return Target(config)
