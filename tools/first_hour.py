"""A newcomer's first hour, run as it is written: install, demo, compile, run, profile, deploy in C, open in a notebook.

    python tools/first_hour.py                        everything, in a fresh virtual environment
    python tools/first_hour.py --without compiler     as on a machine that has no C compiler
    python tools/first_hour.py --without home         as a user whose home cannot be written
    python tools/first_hour.py --only demo compile    some of the steps

Every step prints its command and how long it took; the exit code is 1 if one fails. Nothing is written outside of the
folder that it works in (``--folder``, by default one that is removed).
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
COMPILERS = ("cc", "gcc", "clang", "c99", "c89", "tcc", "zig")
NOBODY = 65534

NOTEBOOK = """
import json, sys
cells = [
    "import numpy as np, tilewright as tvm\\nfrom tilewright import relay\\nfrom tilewright.driver import tvmc\\n"
    "model = tvmc.load('model.onnx', shape_dict={'image': [1, 3, 32, 32]})\\nmodel",
    "library = relay.build(model.mod, 'llvm', params=model.params)\\nlibrary",
    "library.session().run({'image': np.zeros((1, 3, 32, 32), 'float32')})",
]
import nbformat
from nbclient import NotebookClient
book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
NotebookClient(book, timeout=300).execute()
outputs = [output for cell in book.cells for output in cell.outputs]
shown = [output for output in outputs if output.output_type == "execute_result"]
print([output for output in outputs if output.output_type == "stream"])
assert sum("text/html" in output.get("data", {}) for output in shown) == 2, shown
print("notebook:", len(shown), "outputs")
"""


def runs_as_root() -> bool:
    """True for the user whom no permission stops; without a home, the commands then run as nobody."""
    return hasattr(os, "geteuid") and os.geteuid() == 0


class StepError(Exception):
    """A step did not do what it should."""


@dataclass(frozen=True)
class Machine:
    """What the newcomer has: a folder, a virtual environment, whether a C compiler and a home that can be written."""

    folder: Path
    has_compiler: bool
    has_home: bool
    pip_options: tuple[str, ...] = ()
    base_python: str = sys.executable

    @property
    def python(self) -> Path:
        """The interpreter of the virtual environment."""
        return self.folder / "venv" / ("Scripts" if os.name == "nt" else "bin") / "python"

    def environment(self) -> dict[str, str]:
        """The variables of a shell: no cache and no path of ours."""
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("TILEWRIGHT_", "PYTHON", "XDG_")) and name not in ("HOME", "VIRTUAL_ENV")
        }
        path = f"{self.python.parent}{os.pathsep}{kept.get('PATH', '')}"
        if not self.has_compiler:
            path = f"{self.python.parent}{os.pathsep}{self._without_compilers()}"
        kept["PATH"] = path
        home = self.folder / "home"
        home.mkdir(exist_ok=True)
        if self.has_home:
            kept["HOME"] = str(home)
        elif not runs_as_root():
            home.chmod(0o555)
            kept["HOME"] = str(home)
        # Otherwise HOME is not set, and the commands run as a user who has none.
        return kept

    def _without_compilers(self) -> str:
        """A folder with links to every program but the compilers."""
        folder = self.folder / "programs"
        if not folder.exists():
            folder.mkdir()
            for place in os.environ.get("PATH", "").split(os.pathsep):
                for program in sorted(Path(place).iterdir()) if Path(place).is_dir() else ():
                    is_compiler = any(part in COMPILERS for part in program.name.split("-"))
                    if not is_compiler and not (folder / program.name).exists():
                        (folder / program.name).symlink_to(program)
        return str(folder)

    def run(self, *command: str, limit: int = 1800) -> str:
        """Run a command in the folder ``work``, as the newcomer; gives what it prints."""
        work = self.folder / "work"
        work.mkdir(exist_ok=True)
        as_nobody = not self.has_home and runs_as_root()
        if as_nobody:
            for path in (self.folder, work):
                path.chmod(0o777)
        ran = subprocess.run(
            command,
            cwd=work,
            env=self.environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=limit,
            check=False,
            **({"user": NOBODY, "group": NOBODY, "extra_groups": []} if as_nobody else {}),  # type: ignore[call-overload]
        )
        if ran.returncode != 0:
            raise StepError(f"exit code {ran.returncode}:\n{ran.stdout[-3000:]}")
        if "Traceback" in ran.stdout:
            raise StepError(f"it printed a traceback:\n{ran.stdout[-3000:]}")
        return str(ran.stdout)

    def tilewright(self, *arguments: str) -> str:
        """Run the command line."""
        return self.run(str(self.python.parent / "tilewright"), *arguments)


def install(machine: Machine) -> None:
    """python -m venv, pip install ."""
    if not machine.python.exists():
        subprocess.run([machine.base_python, "-m", "venv", str(machine.folder / "venv")], check=True)
    # Installing is done by whoever owns the environment; running it may be somebody else.
    owner = replace(machine, has_home=True)
    owner.run(str(machine.python), "-m", "pip", "install", "-q", *machine.pip_options, f"{ROOT}")


def demo(machine: Machine) -> None:
    """tilewright demo"""
    expect(machine.tilewright("demo"), "10 of 10 images are recognised", "agrees with the reference executor")


def doctor(machine: Machine) -> None:
    """tilewright doctor"""
    expect(machine.tilewright("doctor"), "everything required works")


def model(machine: Machine) -> None:
    """The Python of docs/first-model.md that writes model.onnx"""
    page = (ROOT / "docs" / "first-model.md").read_text(encoding="utf-8")
    code = page.partition("```python\n")[2].partition("```")[0]
    machine.run(str(machine.python), "-c", code)


def compile_model(machine: Machine) -> None:
    """tilewright compile model.onnx --input-shapes ... --validate -o model.tar"""
    shapes = ["--input-shapes", "image:[1,3,32,32]"]
    expect(
        machine.tilewright("compile", "model.onnx", *shapes, "--validate", "-o", "model.tar"),
        "agrees",
    )


def run_model(machine: Machine) -> None:
    """tilewright run model.tar --print-time --print-top 3"""
    expect(machine.tilewright("run", "model.tar", "--print-time", "--print-top", "3"), "the largest values")


def profile(machine: Machine) -> None:
    """tilewright profile model.onnx -o report.html"""
    machine.tilewright("profile", "model.onnx", "--fill-shapes", "image:[4,3,32,32]", "-o", "report.html")
    machine.tilewright("profile", "model.tar")


def deploy(machine: Machine) -> None:
    """The commands of examples/deploy/README.md for the model and for C"""
    if not machine.has_compiler:
        return
    page = (ROOT / "examples" / "deploy" / "README.md").read_text(encoding="utf-8")
    blocks = [part.partition("```")[0] for part in page.split("```sh\n")[1:3]]
    commands = "\n".join(blocks).replace("examples/deploy/", f"{ROOT}/examples/deploy/")
    expect(machine.run("sh", "-ec", commands), "prediction:", "largest difference:")


def notebook(machine: Machine) -> None:
    """A notebook that loads, compiles and runs the model"""
    owner = replace(machine, has_home=True)
    owner.run(
        *(str(machine.python), "-m", "pip", "install", "-q", *machine.pip_options),
        *("nbclient", "nbformat", "ipykernel"),
    )
    expect(machine.run(str(machine.python), "-c", NOTEBOOK), "notebook: 3 outputs")


STEPS: dict[str, Callable[[Machine], None]] = {
    "install": install,
    "demo": demo,
    "doctor": doctor,
    "model": model,
    "compile": compile_model,
    "run": run_model,
    "profile": profile,
    "deploy": deploy,
    "notebook": notebook,
}
"""In order: each may need what those before it made."""


def expect(printed: str, *texts: str) -> None:
    """An error unless a command printed all of these."""
    for text in texts:
        if text not in printed:
            raise StepError(f"it did not print {text!r}:\n{printed[-3000:]}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the steps; 1 if one fails."""
    parser = argparse.ArgumentParser(description="Run a newcomer's first hour in a fresh environment.")
    parser.add_argument("--without", action="append", choices=("compiler", "home"), default=[])
    parser.add_argument("--only", nargs="+", choices=list(STEPS), default=list(STEPS), metavar="STEP")
    parser.add_argument("--folder", metavar="FOLDER", help="where to work, kept; default: a temporary one")
    parser.add_argument(
        "--python", default=sys.executable, metavar="PROGRAM", help="what makes the environment"
    )
    parser.add_argument("--pip-option", action="append", default=[], metavar="TEXT", help="passed on to pip")
    parsed = parser.parse_args(arguments)
    folder = Path(parsed.folder or tempfile.mkdtemp(prefix="first-hour-")).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o755)
    machine = Machine(
        folder,
        "compiler" not in parsed.without,
        "home" not in parsed.without,
        tuple(parsed.pip_option),
        parsed.python,
    )
    failed = 0
    try:
        for name, step in STEPS.items():
            if name not in parsed.only:
                continue
            started = time.perf_counter()
            try:
                step(machine)
                verdict = "ok"
            except (StepError, subprocess.SubprocessError, OSError) as problem:
                verdict, failed = f"FAILED: {problem}", 1
            print(f"{name:<9} {time.perf_counter() - started:6.1f} s  {step.__doc__}  {verdict}", flush=True)
    finally:
        if parsed.folder is None:
            shutil.rmtree(folder, ignore_errors=True)
    return failed


if __name__ == "__main__":
    sys.exit(main())
