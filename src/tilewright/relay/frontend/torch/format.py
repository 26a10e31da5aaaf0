"""PyTorch's files as a format of models. What a file is follows from the names of its members; nothing is unpickled
to find out."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from typing import Any, Final

from tilewright.relay.frontend.format_errors import FormatError
from tilewright.relay.frontend.registry import Frontend, Imported
from tilewright.relay.frontend.torch.exported import from_exported_program
from tilewright.relay.frontend.torch.package import torch_package
from tilewright.relay.frontend.torch.script.archive import load_script

_ZIP: Final = b"PK\x03\x04"
_HOW: Final = (
    "save the model itself: torch.export.save(torch.export.export(model, (example,)), 'model.pt2'), or "
    "torch.jit.trace(model, example).save('model.pt')"
)


def is_zip(head: bytes) -> bool:
    """True if a file begins like an archive, which both forms are."""
    return head.startswith(_ZIP)


def kind_of(path: str) -> str:
    """ "exported" or "torchscript"; an error that says what to do for anything else."""
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.namelist()
    except (OSError, zipfile.BadZipFile) as error:
        raise FormatError(
            f"{path} is not a saved PyTorch program ({error}). If it is a checkpoint, {_HOW}"
        ) from error
    last = {name.rpartition("/")[2] for name in members}
    if "constants.pkl" in last and any("/code/" in f"/{name}" for name in members):
        # Asked first: the code of a model from torchvision is in a folder "models", as exported programs are.
        return "torchscript"
    if "serialized_exported_program.json" in last or any("/models/" in f"/{name}" for name in members):
        return "exported"
    raise FormatError(
        f"{path} holds pickled tensors or objects without a program, and pickles are not loaded: {_HOW}"
    )


def load(path: str, shape: Mapping[str, Any] | None = None, **options: Any) -> Imported:
    """Read a file; the options are those of ``relay.frontend.from_exported_program``, or of ``from_pytorch``."""
    if kind_of(path) == "exported":
        return from_exported_program(torch_package().export.load(path), shape, **options)
    return load_script(path, shape, **options)


FRONTEND: Final = Frontend("pytorch", ("pt2", "pt", "pth", "zip"), load, is_zip)
