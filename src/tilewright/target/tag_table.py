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


def _add_quadro(arch: str, names: str) -> None:
    _add_nvidia(arch, " ".join(f"quadro-{name}" for name in names.split()))


def _add_geforce(arch: str, series: str, names: str, registers_per_block: int = 65536) -> None:
    start = f"geforce-{series}-" if series else "geforce-"
    _add_nvidia(arch, " ".join(start + name for name in names.split()), registers_per_block)


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
_add_nvidia("sm_52", "geforce-gtx-950 geforce-gtx-980m geforce-gtx-970m geforce-gtx-965m quadro-m5500m")
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
_add_nvidia("sm_20", "tesla-c2075 tesla-c2070 tesla-c2050 quadro-plex-7000", registers_per_block=32768)
_add_nvidia("sm_21", "nvidia-nvs-315 nvidia-nvs-310 nvs-5400m nvs-5200m nvs-4200m", registers_per_block=32768)
_add_geforce("sm_20", "gtx", "590 580 570 480 470 465 480m", registers_per_block=32768)
_add_geforce("sm_21", "gts", "450", registers_per_block=32768)
_add_geforce(
    "sm_21",
    "gtx",
    "560-ti 550-ti 460 675m 670m 580m 570m 560m 485m 470m 460m",
    registers_per_block=32768,
)
_add_geforce(
    "sm_21",
    "gt",
    "730-ddr3,128bit 640-gddr3 630 620 610 520 440 430 720m 635m 630m 625m 620m 555m 550m 540m 525m 520mx 520m "
    "445m 435m 420m 415m",
    registers_per_block=32768,
)
_add_geforce("sm_21", "", "820m 800m 710m 705m 610m 410m", registers_per_block=32768)
_add_nvidia("sm_30", "tesla-k10 nvidia-nvs-510")
_add_quadro("sm_30", "k5000 k4200 k4000 k2000 k2000d k600 k420 410")
_add_quadro("sm_30", "k6000m k5200m k5100m k4200m k4100m k3100m k2200m k2100m k1100m k500m")
_add_geforce("sm_30", "gtx", "770 760 690 680 670 660-ti 660 650-ti-boost 650-ti 650 880m 870m 860m-sm-30")
_add_geforce("sm_30", "gtx", "780m 770m 765m 760m 680mx 680m 675mx 670mx 660m")
_add_geforce("sm_30", "gt", "740 755m 750m 745m 740m 735m 730m 650m 645m 640m 640m-le")
_add_geforce("sm_35", "gtx", "titan-z titan-black")
_add_geforce("sm_35", "gt", "730 720 705 640-gddr5")
_add_geforce("sm_35", "", "920m")
_add_quadro("sm_35", "k610m k510m")
_add_nvidia("sm_50", "nvidia-nvs-810")
_add_quadro("sm_50", "m5000m m4000m m3000m m1200 m1000m m600m m520 m500m k620m")
_add_geforce("sm_50", "gtx", "860m-sm-50 850m")
_add_geforce("sm_50", "", "840m")
_add_quadro("sm_52", "m2200 m620")
_add_geforce("sm_52", "", "910m")
_add_nvidia("sm_53", "tegra-x1", registers_per_block=32768)
_add_nvidia("sm_61", "p620 p520")
_add_quadro("sm_61", "p5200 p4200 p3200 p3000 p500")
_add_nvidia("sm_70", "nvidia-v100")
_add_nvidia("sm_75", "rtx-5000 rtx-4000 rtx-3000 t2000 t1000")
_add_nvidia("sm_86", "nvidia-a10g")


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
    ("3a-plus", "cortex-a53", "bcm2837"),
    ("3b-plus", "cortex-a53", "bcm2837"),
    ("zero-2w", "cortex-a53", "bcm2837"),
    ("4b", "cortex-a72", "bcm2711"),
    ("400", "cortex-a72", "bcm2711"),
    ("cm4", "cortex-a72", "bcm2711"),
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
_add_cpu("qualcomm/snapdragon-835", "cortex-a73", 4, **_ARM_ANDROID)
_add_cpu("qualcomm/snapdragon-865", "cortex-a77", 4, **_ARM_ANDROID)
_add_cpu("qualcomm/snapdragon-8-gen-2", "cortex-x3", 1, **_ARM_ANDROID)
_add_cpu("google/pixel-7", "cortex-x1", 2, **_ARM_ANDROID)
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
for _size, _cores, _cpu in (
    ("large", 1, "skylake-avx512"),
    ("xlarge", 2, "skylake-avx512"),
    ("2xlarge", 4, "skylake-avx512"),
    ("4xlarge", 8, "skylake-avx512"),
    ("9xlarge", 18, "skylake-avx512"),
    ("12xlarge", 24, "cascadelake"),
    ("18xlarge", 36, "skylake-avx512"),
    ("24xlarge", 48, "cascadelake"),
):
    _add_cpu(f"aws/cpu/c5.{_size}", _cpu, _cores, **_X86_LINUX)
_add_cpu("amd/zen2", "znver2", 8, **_X86_LINUX)
_add_cpu("amd/zen3", "znver3", 8, **_X86_LINUX)
_add_cpu("amd/zen4", "znver4", 8, **_X86_LINUX)
_add_cpu("amd/zen5", "znver5", 8, **_X86_LINUX)
