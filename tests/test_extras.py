"""Dependencies and extras install what is used, and nothing else."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

IMPORT_NAMES = {
    "pillow": "PIL",
    "apache-tvm-ffi": "tvm_ffi",
    "silero-vad": "silero_vad",
    "rapidocr-onnxruntime": "rapidocr_onnxruntime",
    "nvidia-cuda-nvcc": "nvidia",
    "xgboost-cpu": "xgboost",
    "scipy-openblas32": "scipy_openblas32",
}
"""Of packages that are imported under another name."""

PROGRAMS = {"ruff", "mypy", "import-linter", "pytest-xdist", "pytest", "pnnx"}
"""They are run, not imported."""

FOLDERS = {"": ["src"], "bench": ["bench"], "test": ["tests", "tools", "examples"], "gpu-test": ["tests"]}
"""Where the packages of an extra are used; those of the others serve the package itself."""


def requirements():
    """(extra, package) for every requirement; the extra is empty for what is always installed."""
    groups = {"": PROJECT["dependencies"], **PROJECT["optional-dependencies"]}
    found = {
        (extra, re.match(r"[\w.-]+", line)[0].lower()) for extra, lines in groups.items() for line in lines
    }
    return sorted(found)


@pytest.mark.parametrize(("extra", "package"), requirements(), ids=lambda part: part or "always")
def test_every_package_is_used(extra, package):
    """It is imported, or looked for by name, in the files that its extra is for; programs are named somewhere."""
    if package in PROGRAMS:
        documents = [
            ROOT / "README.md",
            ROOT / "CONTRIBUTING.md",
            ROOT / "pyproject.toml",
            *ROOT.glob("bench/*.py"),
        ]
        assert any(package.partition("-")[0] in page.read_text(encoding="utf-8") for page in documents)
        return
    name = re.escape(IMPORT_NAMES.get(package, package))
    used = re.compile(rf"^\s*(import|from) {name}\b|[\"']{name}[\"'./]", re.MULTILINE | re.IGNORECASE)
    folders = FOLDERS.get(extra, ["src"])
    files = [file for folder in folders for file in (ROOT / folder).rglob("*.py") if file != Path(__file__)]
    assert any(used.search(file.read_text(encoding="utf-8")) for file in files), (
        f"{package} is used nowhere in {folders}"
    )


def test_every_extra_that_is_named_exists():
    """Messages and documents that say ``pip install tilewright[extra]`` name one that there is."""
    pages = [ROOT / "README.md", *ROOT.glob("docs/**/*.md"), *ROOT.glob("src/**/*.py")]
    named = {
        extra
        for page in pages
        for listed in re.findall(r"tilewright\[([a-z,]+)\]", page.read_text(encoding="utf-8"))
        for extra in listed.split(",")
    }
    assert named and named <= PROJECT["optional-dependencies"].keys()
