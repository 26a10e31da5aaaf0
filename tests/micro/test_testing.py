"""Questions that tests of models for small machines ask."""

from pathlib import Path

from tilewright.micro import ModelLibrary, export_model_library_format
from tilewright.micro.testing import mlf_extract_workspace_size_bytes


def test_the_workspace_of_a_library(tmp_path: Path) -> None:
    """Of memory that a library needs, the part that it works in; nothing where it says none."""
    file = export_model_library_format(
        ModelLibrary("net", "c", "aot", memory={"workspace_size_bytes": 640, "io_size_bytes": 8}),
        tmp_path / "net.tar",
    )
    assert mlf_extract_workspace_size_bytes(file) == 640
    assert (
        mlf_extract_workspace_size_bytes(
            export_model_library_format(ModelLibrary("ops", "c", "none"), tmp_path / "ops.tar")
        )
        == 0
    )
