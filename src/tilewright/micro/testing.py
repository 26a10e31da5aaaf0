"""Questions that tests of models for small machines ask."""

from __future__ import annotations

from pathlib import Path

from tilewright.runtime.artefact import check_model_library, read_members


def mlf_extract_workspace_size_bytes(mlf_tar_path: str | Path) -> int:
    """The bytes that a model of a model library needs to work in, beside its inputs, outputs and parameters."""
    path = Path(mlf_tar_path)
    memory = check_model_library(read_members(path), path).get("memory", {})
    return int(memory.get("workspace_size_bytes", 0))
