"""Names for well-known devices, and the target description of each.

The NVIDIA names give the compute capability and the per-block limits of its generation. The others give CPU names that
LLVM knows. ``TAGS`` also receives the tags that users register.
"""

from __future__ import annotations

from typing import Any, Final

TAGS: Final[dict[str, dict[str, Any]]] = {}


def _add_nvidia(arch: str, names: str, registers_per_block: int = 65536) -> None:
    """Tags ``nvidia/<name>`` for GPUs of one compute capability."""
    for name in names.split():
        TAGS[f"nvidia/{name}"] = {
            "kind": "cuda",
            "arch": arch,
            "shared_memory_per_block": 49152,
            "registers_per_block": registers_per_block,
            "max_threads_per_block": 1024,
            "thread_warp_size": 32,
        }


_add_nvidia(
    "sm_35",
    "tesla-k40 tesla-k20 geforce-gtx-titan geforce-gtx-780-ti geforce-gtx-780 quadro-k6000 quadro-k5200",
)
_add_nvidia("sm_37", "tesla-k80")
_add_nvidia(
    "sm_50", "geforce-gtx-750-ti geforce-gtx-750 quadro-k2200 quadro-k1200 quadro-k620 nvs-810 quadro-m2000m"
)
_add_nvidia("sm_50", "geforce-gtx-960m geforce-gtx-950m geforce-940m geforce-930m geforce-850m geforce-830m")
_add_nvidia(
    "sm_52", "tesla-m60 tesla-m40 quadro-m6000-24gb quadro-m6000 quadro-m5000 quadro-m4000 quadro-m2000"
)
_add_nvidia("sm_52", "geforce-gtx-titan-x geforce-gtx-980-ti geforce-gtx-980 geforce-gtx-970 geforce-gtx-960")
_add_nvidia(
    "sm_52", "geforce-gtx-950 geforce-gtx-980m geforce-gtx-970m geforce-gtx-965m quadro-m5500m quadro-m3000m"
)
_add_nvidia("sm_53", "jetson-tx1 jetson-nano", registers_per_block=32768)
_add_nvidia("sm_60", "tesla-p100 quadro-gp100 dgx-1")
_add_nvidia(
    "sm_61",
    "tesla-p40 tesla-p4 quadro-p6000 quadro-p5000 quadro-p4000 quadro-p2200 quadro-p2000 quadro-p1000",
)
_add_nvidia("sm_61", "quadro-p620 quadro-p600 quadro-p400 nvidia-titan-xp nvidia-titan-x geforce-gtx-1080-ti")
_add_nvidia(
    "sm_61", "geforce-gtx-1080 geforce-gtx-1070-ti geforce-gtx-1070 geforce-gtx-1060 geforce-gtx-1050-ti"
)
_add_nvidia("sm_61", "geforce-gtx-1050 geforce-gt-1030 geforce-mx150 geforce-mx250 geforce-mx350")
_add_nvidia("sm_62", "jetson-tx2", registers_per_block=32768)
_add_nvidia("sm_70", "tesla-v100 nvidia-tesla-v100 quadro-gv100 nvidia-titan-v dgx-2")
_add_nvidia("sm_72", "jetson-agx-xavier jetson-xavier-nx")
_add_nvidia(
    "sm_75", "tesla-t4 nvidia-t4 quadro-rtx-8000 quadro-rtx-6000 quadro-rtx-5000 quadro-rtx-4000 quadro-t2000"
)
_add_nvidia("sm_75", "quadro-t1000 nvidia-t1000 nvidia-t600 nvidia-t400 nvidia-titan-rtx geforce-rtx-2080-ti")
_add_nvidia("sm_75", "geforce-rtx-2080-super geforce-rtx-2080 geforce-rtx-2070-super geforce-rtx-2070")
_add_nvidia("sm_75", "geforce-rtx-2060-super geforce-rtx-2060 geforce-gtx-1660-ti geforce-gtx-1660-super")
_add_nvidia("sm_75", "geforce-gtx-1660 geforce-gtx-1650-super geforce-gtx-1650 geforce-mx450")
_add_nvidia("sm_80", "nvidia-a100 a100 nvidia-a30 dgx-a100")
_add_nvidia(
    "sm_86", "nvidia-a40 nvidia-a10 nvidia-a16 nvidia-a2 rtx-a6000 rtx-a5000 rtx-a4000 rtx-a3000 rtx-a2000"
)
_add_nvidia(
    "sm_86", "geforce-rtx-3090-ti geforce-rtx-3090 geforce-rtx-3080-ti geforce-rtx-3080 geforce-rtx-3070-ti"
)
_add_nvidia(
    "sm_86", "geforce-rtx-3070 geforce-rtx-3060-ti geforce-rtx-3060 geforce-rtx-3050-ti geforce-rtx-3050"
)
_add_nvidia("sm_87", "jetson-agx-orin-64gb jetson-agx-orin-32gb jetson-orin-nx jetson-orin-nano")
_add_nvidia("sm_89", "geforce-rtx-4090 geforce-rtx-4080-super geforce-rtx-4080 geforce-rtx-4070-ti-super")
_add_nvidia(
    "sm_89",
    "geforce-rtx-4070-ti geforce-rtx-4070-super geforce-rtx-4070 geforce-rtx-4060-ti geforce-rtx-4060",
)
_add_nvidia(
    "sm_89", "geforce-rtx-4050 nvidia-l40s nvidia-l40 nvidia-l4 rtx-6000-ada rtx-5000-ada rtx-4000-ada"
)
_add_nvidia("sm_90", "nvidia-h100 h100 nvidia-h200 h200 nvidia-gh200 dgx-h100")
_add_nvidia("sm_100", "nvidia-b100 nvidia-b200 nvidia-gb200")
_add_nvidia(
    "sm_120", "geforce-rtx-5090 geforce-rtx-5080 geforce-rtx-5070-ti geforce-rtx-5070 geforce-rtx-5060-ti"
)


def _add_cpu(name: str, mcpu: str, cores: int, **attributes: Any) -> None:
    """One tag for a CPU that LLVM knows as ``mcpu``."""
    TAGS[name] = {"kind": "llvm", "mcpu": mcpu, "num-cores": cores, **attributes}


_ARM_LINUX: Final = {"device": "arm_cpu", "keys": ["arm_cpu", "cpu"], "mtriple": "aarch64-linux-gnu"}
_X86_LINUX: Final = {"mtriple": "x86_64-linux-gnu"}

_ARM_32_LINUX: Final = {**_ARM_LINUX, "mtriple": "armv7a-linux-gnueabihf"}
_ARM_ANDROID: Final = {**_ARM_LINUX, "mtriple": "aarch64-linux-android"}
_RISCV_LINUX: Final = {"mtriple": "riscv64-linux-gnu"}

for _board, _cpu, _chip in (
    ("3b", "cortex-a53", "bcm2837"),
    ("zero-2w", "cortex-a53", "bcm2837"),
    ("4b", "cortex-a72", "bcm2711"),
    ("5", "cortex-a76", "bcm2712"),
):
    # Without a suffix, what the 64-bit system on the board runs.
    for _suffix in ("", "-aarch64"):
        _add_cpu(f"raspberry-pi/{_board}{_suffix}", _cpu, 4, model=_chip, **_ARM_LINUX)
_add_cpu("raspberry-pi/2b", "cortex-a7", 4, model="bcm2836", **_ARM_32_LINUX)
_add_cpu("raspberry-pi/3b-armv7", "cortex-a53", 4, model="bcm2837", **_ARM_32_LINUX)
_add_cpu("raspberry-pi/4b-armv7", "cortex-a72", 4, model="bcm2711", **_ARM_32_LINUX)
_add_cpu("rockchip/rk3399", "cortex-a72", 2, model="rk3399", **_ARM_LINUX)
_add_cpu("rockchip/rk3588", "cortex-a76", 4, model="rk3588", **_ARM_LINUX)
_add_cpu("nxp/imx8m-plus", "cortex-a53", 4, model="imx8mp", **_ARM_LINUX)
_add_cpu("nvidia/jetson-nano-cpu", "cortex-a57", 4, **_ARM_LINUX)
_add_cpu("nvidia/jetson-orin-cpu", "cortex-a78ae", 8, **_ARM_LINUX)
_add_cpu("google/pixel-6", "cortex-x1", 2, **_ARM_ANDROID)
_add_cpu("google/pixel-8", "cortex-x3", 1, **_ARM_ANDROID)
_add_cpu("qualcomm/snapdragon-855", "cortex-a76", 4, **_ARM_ANDROID)
_add_cpu("qualcomm/snapdragon-888", "cortex-x1", 1, **_ARM_ANDROID)
_add_cpu("qualcomm/snapdragon-8-gen-1", "cortex-x2", 1, **_ARM_ANDROID)
_add_cpu("qualcomm/snapdragon-8-gen-3", "cortex-x4", 1, **_ARM_ANDROID)
_add_cpu("starfive/visionfive-2", "sifive-u74", 4, **_RISCV_LINUX)
_add_cpu("sifive/unmatched", "sifive-u74", 4, **_RISCV_LINUX)
_add_cpu("banana-pi/bpi-f3", "spacemit-x60", 8, **_RISCV_LINUX)
_add_cpu("ampere/altra", "neoverse-n1", 80, **_ARM_LINUX)
_add_cpu("azure/cobalt-100", "neoverse-n2", 96, **_ARM_LINUX)
_add_cpu("google/axion", "neoverse-v2", 72, **_ARM_LINUX)
_add_cpu("nvidia/grace-cpu", "grace", 72, **_ARM_LINUX)
_add_cpu("arm/neoverse-n1", "neoverse-n1", 16, **_ARM_LINUX)
_add_cpu("arm/neoverse-v1", "neoverse-v1", 16, **_ARM_LINUX)
_add_cpu("arm/neoverse-n2", "neoverse-n2", 16, **_ARM_LINUX)
_add_cpu("arm/neoverse-v2", "neoverse-v2", 16, **_ARM_LINUX)
_add_cpu("aws/graviton2", "neoverse-n1", 64, **_ARM_LINUX)
_add_cpu("aws/graviton3", "neoverse-v1", 64, **_ARM_LINUX)
_add_cpu("aws/graviton4", "neoverse-v2", 96, **_ARM_LINUX)
_add_cpu("apple/m1", "apple-m1", 4, **{**_ARM_LINUX, "mtriple": "arm64-apple-macos"})
_add_cpu("apple/m2", "apple-m2", 4, **{**_ARM_LINUX, "mtriple": "arm64-apple-macos"})
_add_cpu("apple/m3", "apple-m3", 4, **{**_ARM_LINUX, "mtriple": "arm64-apple-macos"})
_add_cpu("apple/m4", "apple-m4", 4, **{**_ARM_LINUX, "mtriple": "arm64-apple-macos"})
_add_cpu("intel/haswell", "haswell", 4, **_X86_LINUX)
_add_cpu("intel/skylake", "skylake", 4, **_X86_LINUX)
_add_cpu("intel/skylake-avx512", "skylake-avx512", 16, **_X86_LINUX)
_add_cpu("intel/cascadelake", "cascadelake", 16, **_X86_LINUX)
_add_cpu("intel/icelake-server", "icelake-server", 32, **_X86_LINUX)
_add_cpu("intel/sapphirerapids", "sapphirerapids", 48, **_X86_LINUX)
_add_cpu("aws/c5", "cascadelake", 16, **_X86_LINUX)
_add_cpu("aws/c6i", "icelake-server", 32, **_X86_LINUX)
_add_cpu("aws/c7i", "sapphirerapids", 48, **_X86_LINUX)
_add_cpu("amd/zen2", "znver2", 8, **_X86_LINUX)
_add_cpu("amd/zen3", "znver3", 8, **_X86_LINUX)
_add_cpu("amd/zen4", "znver4", 8, **_X86_LINUX)
_add_cpu("amd/zen5", "znver5", 8, **_X86_LINUX)
