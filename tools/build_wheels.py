"""Builds the wheels of every platform on one machine, and checks them.

    python tools/build_wheels.py                      all five, into dist/
    python tools/build_wheels.py linux-x86_64 -o out  one of them

The C runtime is compiled by ``zig cc`` (``pip install ziglang setuptools``). Each wheel is opened again: its tags, its
files, and whether the library in it needs no newer system than the tags say. On a machine of the same kind, install it
and run ``tilewright demo`` to see the rest.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from check_wheel import WheelError, check_wheel
from wheel_platforms import PLATFORMS, Platform

ROOT = Path(__file__).resolve().parent.parent
BUILD = "import sys, tilewright_build; print(tilewright_build.build_wheel(sys.argv[1]))"


def build_wheel(platform: Platform, folder: Path) -> Path:
    """Build the wheel of one platform into a folder; gives its path."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT / "tools"),
        "TILEWRIGHT_WHEEL_PLATFORM": platform.name,
    }
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as fresh:
        ran = subprocess.run(
            [sys.executable, "-c", BUILD, fresh],
            cwd=ROOT,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        if ran.returncode != 0:
            raise WheelError(f"the wheel for {platform.name} could not be built:\n{ran.stdout}")
        made = next(Path(fresh).glob("*.whl"))
        return made.replace(folder / made.name)


def main(arguments: Sequence[str] | None = None) -> int:
    """Build and check; 1 if a wheel could not be built or is wrong."""
    parser = argparse.ArgumentParser(description="Build the wheels of every platform, and check them.")
    parser.add_argument(
        "platform", nargs="*", metavar="PLATFORM", help=f"of {', '.join(PLATFORMS)}; default: all"
    )
    parser.add_argument("-o", "--output", default="dist", metavar="FOLDER", help="default: dist")
    parsed = parser.parse_args(arguments)
    unknown = [name for name in parsed.platform if name not in PLATFORMS]
    if unknown:
        parser.error(f"there is no platform {', '.join(unknown)}; they are {', '.join(PLATFORMS)}")
    for name in parsed.platform or PLATFORMS:
        try:
            path = build_wheel(PLATFORMS[name], Path(parsed.output))
            facts = check_wheel(path, PLATFORMS[name])
        except WheelError as problem:
            print(f"{name}: {problem}", file=sys.stderr)
            return 1
        print(f"{path.name}: {path.stat().st_size / 1e6:.1f} MB; {facts}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
