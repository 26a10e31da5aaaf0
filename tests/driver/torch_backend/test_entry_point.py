"""PyTorch finds the backend by the name in the package's metadata, with nothing imported."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

pytest.importorskip("torch")
ROOT = Path(__file__).resolve().parents[3]

PROGRAM = """
import torch
assert "tilewright" in torch._dynamo.list_backends()
with torch.no_grad():
    found = torch.compile(lambda x: x * 2 + 1, backend="tilewright")(torch.arange(3.0))
assert found.tolist() == [1, 3, 5]
"""


def test_the_backend_is_found_by_its_name(tmp_path: Path) -> None:
    """The entry point as pyproject.toml declares it, in the metadata of an installed package."""
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]
    metadata = tmp_path / "backend_under_test-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: backend-under-test\nVersion: 1.0\n")
    lines = [f"{name} = {value}" for name, value in declared["torch_dynamo_backends"].items()]
    (metadata / "entry_points.txt").write_text("[torch_dynamo_backends]\n" + "\n".join(lines) + "\n")
    path = os.pathsep.join([str(tmp_path), str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    subprocess.run(
        [sys.executable, "-c", PROGRAM], env={**os.environ, "PYTHONPATH": path}, check=True, timeout=120
    )
