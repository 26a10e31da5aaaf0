"""The C runtime on its own: each C program of ``csrc/``, plain and under the sanitizers the compiler has."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tilewright.support.cbuild import SOURCES, runtime_sources

PROGRAMS = sorted(Path(__file__).with_name("csrc").glob("test_*.c"))
MUTATIONS = {"plain": 100_000, "address": 10_000, "thread": 500}
SANITIZERS = {
    "plain": ["-O2"],
    "address": ["-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"],
    "thread": ["-O1", "-g", "-fsanitize=thread"],
}
WARNINGS = ["-std=c11", "-Wall", "-Wextra", "-Werror"]

cc = shutil.which("cc")
pytestmark = pytest.mark.skipif(cc is None, reason="there is no C compiler here")


@pytest.fixture(scope="session", params=SANITIZERS)
def sanitizer(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    """One kind of build; skips kinds the compiler or the machine cannot do."""
    folder = tmp_path_factory.mktemp("probe")
    (folder / "probe.c").write_text("int main(void) { return 0; }")
    command = [cc, *SANITIZERS[request.param], "probe.c", "-o", "probe"]
    built = subprocess.run(command, cwd=folder, capture_output=True, check=False)
    if (
        built.returncode != 0
        or subprocess.run(["./probe"], cwd=folder, capture_output=True, check=False).returncode != 0
    ):
        pytest.skip(f"this machine cannot run {request.param} builds")
    return str(request.param)


@pytest.fixture(scope="session")
def runtime_objects(sanitizer: str, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The runtime compiled in that way, once for all programs."""
    folder = tmp_path_factory.mktemp("runtime")
    command = [
        cc,
        *WARNINGS,
        *SANITIZERS[sanitizer],
        "-DTILEWRIGHT_STATIC",
        "-c",
        *map(str, runtime_sources()),
    ]
    subprocess.run(command, cwd=folder, check=True)
    return [str(path) for path in sorted(folder.glob("*.o"))]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.stem)
def test_program(program: Path, sanitizer: str, runtime_objects: list[str], tmp_path: Path) -> None:
    """The program's checks hold, and the sanitizer has nothing to say."""
    binary = str(tmp_path / program.stem)
    include = ["-I", str(SOURCES), "-DTILEWRIGHT_STATIC", "-D_GNU_SOURCE"]
    flags = [*WARNINGS, *SANITIZERS[sanitizer], *include]
    subprocess.run(
        [cc, *flags, str(program), *runtime_objects, "-o", binary, "-pthread", "-ldl", "-lm"], check=True
    )
    environment = {**os.environ, "ASAN_OPTIONS": "allocator_may_return_null=1"}
    run = [binary, str(MUTATIONS[sanitizer]), sanitizer]
    done = subprocess.run(run, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    assert done.stderr == ""
