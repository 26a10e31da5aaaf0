"""What a file of PyTorch's is, by the names of its members."""

import zipfile
from pathlib import Path

import pytest

from tilewright.relay.frontend.format_errors import FormatError
from tilewright.relay.frontend.torch.format import kind_of


def archive(path: Path, *members: str) -> str:
    """An archive with empty members."""
    with zipfile.ZipFile(path, "w") as made:
        for member in members:
            made.writestr(member, "")
    return str(path)


def test_the_code_of_a_script_may_be_in_a_folder_of_models(tmp_path: Path) -> None:
    """As that of torchvision's networks is; an exported program has its graph in a folder of that name."""
    script = archive(
        tmp_path / "net.pth",
        "net/data.pkl",
        "net/constants.pkl",
        "net/code/__torch__/torchvision/models/resnet.py",
    )
    exported = archive(
        tmp_path / "net.pt2", "net/models/model.json", "net/archive_format", "net/data/weights/w"
    )
    assert (kind_of(script), kind_of(exported)) == ("torchscript", "exported")
    with pytest.raises(FormatError, match="without a program"):
        kind_of(archive(tmp_path / "weights.pth", "weights/data.pkl", "weights/data/0"))
    (tmp_path / "old.pth").write_bytes(b"old")
    with pytest.raises(FormatError, match="checkpoint"):
        kind_of(str(tmp_path / "old.pth"))
