"""The C runtime on its own: each C program of ``csrc/``, plain and under the sanitizers the compiler has."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

import pytest

from tilewright.support.cbuild import SOURCES, runtime_sources

PROGRAMS = sorted(Path(__file__).with_name("csrc").glob("test_*.c"))
CUDA_PROGRAMS = sorted(Path(__file__).with_name("csrc").glob("cuda_*.c"))
MOCK_DRIVER = sorted(Path(__file__).with_name("device").glob("mock_cuda*.c"))
MUTATIONS = {"plain": 100_000, "address": 10_000, "thread": 500}
SANITIZERS = {
    "plain": ["-O2"],
    "address": ["-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"],
    "thread": ["-O1", "-g", "-fsanitize=thread"],
}
WARNINGS = ["-std=c11", "-Wall", "-Wextra", "-Werror"]

cc = shutil.which("cc")
pytestmark = pytest.mark.skipif(cc is None, reason="there is no C compiler here")


@pytest.fixture(autouse=True)
def unguarded(monkeypatch: pytest.MonkeyPatch) -> None:
    """The programs count allocations and look at the reuse of memory, which there is none of among guard pages."""
    monkeypatch.delenv("TILEWRIGHT_GUARD_PAGES", raising=False)


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
    run_program(program, sanitizer, runtime_objects, tmp_path)


@pytest.mark.skipif(sys.platform != "linux", reason="needs a linker that replaces functions (--wrap)")
def test_out_of_memory(sanitizer: str, runtime_objects: list[str], tmp_path: Path) -> None:
    """Whichever allocation fails, the caller gets an error code, and no memory is lost."""
    program = Path(__file__).with_name("csrc") / "out_of_memory.c"
    wrapped = ("malloc", "calloc", "realloc", "posix_memalign")
    options = [f"-Wl,--wrap={name}" for name in wrapped]
    run_program(program, sanitizer, runtime_objects, tmp_path, options)


@pytest.mark.skipif(sys.platform != "linux", reason="the simulated driver needs Linux")
@pytest.mark.parametrize("program", CUDA_PROGRAMS, ids=lambda path: path.stem)
def test_cuda(program: Path, sanitizer: str, runtime_objects: list[str], tmp_path: Path) -> None:
    """The CUDA device does all it should on a simulated driver, whichever of the driver's functions fails."""
    driver = tmp_path / "libmockcuda.so"
    flags = [*WARNINGS, *SANITIZERS[sanitizer], "-fPIC", "-shared", "-fvisibility=hidden", "-I", str(SOURCES)]
    subprocess.run([cc, *flags, *map(str, MOCK_DRIVER), "-o", str(driver), "-pthread"], check=True)
    run_program(
        program, sanitizer, runtime_objects, tmp_path, variables={"TILEWRIGHT_CUDA_DRIVER": str(driver)}
    )


@pytest.mark.parametrize(
    ("body", "report"),
    [
        ("char* p = malloc(8); free(p); return p[argc];", "heap-use-after-free"),
        ("int x = 2147483647; return x + argc > 0;", "signed integer overflow"),
        ("void* volatile p = malloc(64 + argc); p = NULL; return p != NULL;", "LeakSanitizer"),
    ],
)
def test_sanitizers_report(body: str, report: str, tmp_path: Path) -> None:
    """The sanitizers that the programs run under see a defect when there is one."""
    source = tmp_path / "defect.c"
    source.write_text(f"#include <stdlib.h>\nint main(int argc, char** argv) {{ (void)argv; {body} }}\n")
    command = [cc, *SANITIZERS["address"], "-w", str(source), "-o", str(tmp_path / "defect")]
    if subprocess.run(command, capture_output=True, check=False).returncode != 0:
        pytest.skip("this compiler has no sanitizers")
    done = subprocess.run([tmp_path / "defect"], capture_output=True, text=True, check=False)
    assert done.returncode != 0 and report in done.stderr


def test_thread_sanitizer_reports(tmp_path: Path) -> None:
    """Two threads that write one variable are seen."""
    source = tmp_path / "race.c"
    source.write_text(
        "#include <pthread.h>\nint shared;\n"
        "static void* run(void* x) { for (int i = 0; i < 100000; ++i) ++shared; return x; }\n"
        "int main(void) { pthread_t t; pthread_create(&t, 0, run, 0); run(0); return pthread_join(t, 0); }\n"
    )
    command = [cc, *SANITIZERS["thread"], str(source), "-o", str(tmp_path / "race"), "-pthread"]
    if subprocess.run(command, capture_output=True, check=False).returncode != 0:
        pytest.skip("this compiler has no thread sanitizer")
    done = subprocess.run([tmp_path / "race"], capture_output=True, text=True, check=False)
    assert done.returncode != 0 and ("data race" in done.stderr or "FATAL" in done.stderr)


def run_program(
    program: Path,
    sanitizer: str,
    runtime_objects: list[str],
    folder: Path,
    options: Sequence[str] = (),
    variables: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Build and run a program with the runtime; it must succeed and print nothing to its error stream."""
    binary = str(folder / program.stem)
    include = ["-I", str(SOURCES), "-DTILEWRIGHT_STATIC", "-D_GNU_SOURCE"]
    flags = [*WARNINGS, *SANITIZERS[sanitizer], *include]
    libraries = ["-pthread", "-ldl", "-lm", "-rdynamic", *options]
    subprocess.run([cc, *flags, str(program), *runtime_objects, "-o", binary, *libraries], check=True)
    environment = {**os.environ, "ASAN_OPTIONS": "allocator_may_return_null=1", **variables}
    run = [binary, str(MUTATIONS[sanitizer]), sanitizer]
    done = subprocess.run(run, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    assert done.stderr == ""
