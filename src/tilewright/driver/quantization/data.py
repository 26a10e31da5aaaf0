"""A user's data as samples of a model: from an ``.npz`` or ``.npy`` file, or from a folder of such files or images."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from tilewright.driver.quantization.arrays import UNREADABLE, Array, StoredArray, stored_arrays
from tilewright.driver.tvmc.errors import TVMCException
from tilewright.driver.tvmc.images import SUFFIXES, ImageOptions, read_images
from tilewright.driver.tvmc.tensors import TensorInfo
from tilewright.support.suggestions import did_you_mean

ARRAYS = (".npz", ".npy")


@dataclass
class Samples:
    """Samples of a model's inputs, read from disk each time that they are gone through."""

    path: Path
    inputs: Sequence[TensorInfo]
    images: ImageOptions = field(default_factory=ImageOptions)
    ignored: str | None = None
    """The labels, which the model does not read."""
    limit: int | None = None

    def __post_init__(self) -> None:
        """Find the files, and look whether they fit the model."""
        if not self.path.exists():
            raise TVMCException(f"there is no data at {self.path}: name a folder, an .npz or an .npy file")
        known = (*ARRAYS, *SUFFIXES)
        if self.path.is_dir():
            self.files = sorted(one for one in self.path.iterdir() if one.suffix.lower() in known)
        else:
            self.files = [self.path] if self.path.suffix.lower() in known else []
        if not self.files:
            raise TVMCException(f"{self.path} has no data: there is no {', '.join(known)} file")
        if self.limit is not None and self.limit < 1:
            raise TVMCException(f"--samples takes a number of at least 1, not {self.limit}")
        arrays = [one for one in self.files if one.suffix.lower() in ARRAYS]
        self.stored = [(one, self._of_inputs(one)) for one in arrays]
        self.pictures = [one for one in self.files if one.suffix.lower() in SUFFIXES]
        if self.pictures and len(self.inputs) != 1:
            raise TVMCException(
                f"{self.path} has images, and the model has {len(self.inputs)} inputs: store samples as .npz, by name"
            )

    def _of_inputs(self, path: Path) -> dict[str, StoredArray]:
        """The arrays of a file by the inputs that they are for."""
        found = stored_arrays(path)
        if self.ignored:
            found.pop(self.ignored, None)
        names = [one.name for one in self.inputs]
        if len(names) == 1 and len(found) == 1:
            # One array can only be for the one input.
            found = {names[0]: next(iter(found.values()))}
        for name in found:
            if name not in names:
                raise TVMCException(
                    f"{path} has an array {name!r}, and the model no such input: it has {', '.join(names)}"
                    f"{did_you_mean(name, names)}"
                )
        missing = [name for name in names if name not in found]
        if missing:
            raise TVMCException(f"{path} lacks the input {', '.join(missing)}: store it under this name")
        for one in self.inputs:
            self._rows_of(one, found[one.name])
        return found

    @staticmethod
    def _rows_of(wanted: TensorInfo, given: StoredArray) -> int:
        """How many rows of the array make one sample; an error if its shape does not fit the input."""
        shape = tuple(wanted.shape)
        if given.shape[1:] == shape[1:] and len(given.shape) == len(shape) and shape:
            rows = int(shape[0] or 1)
            if len(given) >= rows:
                return rows
        elif given.shape[1:] == shape:
            return 1
        raise TVMCException(
            f"{given.path} has {given.member or wanted.name} of shape {list(given.shape)}, and the model wants "
            f"{wanted.text()}: store samples along the first axis"
        )

    def __iter__(self) -> Iterator[dict[str, Array]]:
        """The samples, one after the other."""
        return islice(self._all(), self.limit)

    def _all(self) -> Iterator[dict[str, Array]]:
        for path, arrays in self.stored:
            readers = [arrays[one.name].rows(self._rows_of(one, arrays[one.name])) for one in self.inputs]
            try:
                for number, rows in enumerate(zip(*readers, strict=False)):
                    yield {
                        one.name: _checked(one, row, f"sample {number} of {path}")
                        for one, row in zip(self.inputs, rows, strict=True)
                    }
            except UNREADABLE as problem:
                raise TVMCException(f"{path} cannot be read: {problem}") from problem
        if self.pictures:
            batch = int(self.inputs[0].shape[0] or 1)
            for start in range(0, len(self.pictures) - batch + 1, batch):
                chosen = self.pictures[start : start + batch]
                yield {self.inputs[0].name: read_images(chosen, self.inputs[0], self.images)}

    @property
    def count(self) -> int:
        """How many samples there are."""
        total = 0
        for _, arrays in self.stored:
            total += min(len(arrays[one.name]) // self._rows_of(one, arrays[one.name]) for one in self.inputs)
        if self.pictures:
            total += len(self.pictures) // int(self.inputs[0].shape[0] or 1)
        return total if self.limit is None else min(total, self.limit)


def _checked(wanted: TensorInfo, row: Array, where: str) -> Array:
    """The values of an input, finite and of its type."""
    if row.dtype.kind in "fc" and not np.isfinite(row).all():
        what = "NaN" if np.isnan(row).any() else "infinite values"
        raise TVMCException(
            f"{where} has {what} in the input {wanted.name}: scales cannot be measured with them"
        )
    if row.dtype.kind in "fc" and wanted.array_dtype.kind in "iub":
        raise TVMCException(f"{where} has {row.dtype} for the input {wanted.text()}: store whole numbers")
    return np.ascontiguousarray(
        row.reshape([int(one or 1) for one in wanted.shape]).astype(wanted.array_dtype)
    )


def read_labels(given: str, data: Path) -> tuple[np.ndarray[Any, Any], str | None]:
    """The classes of samples, and the array's name where they are in the data's file.

    ``given`` is a file (.npy, or a text with one number a line), or the name of an array in the ``.npz`` of the data.
    """
    path = Path(given)
    name: str | None = None
    labels: np.ndarray[Any, Any]
    try:
        if data.is_file() and data.suffix.lower() == ".npz" and not path.is_file():
            with np.load(data, allow_pickle=False) as arrays:
                if given not in arrays.files:
                    hint = did_you_mean(given, arrays.files)
                    raise TVMCException(
                        f"there is no file {given}, and {data} has no array of this name{hint}"
                    )
                labels, name = arrays[given], given
        elif not path.is_file():
            raise TVMCException(f"there is no file {given} with labels")
        elif path.suffix.lower() == ".npy":
            labels = np.load(path, allow_pickle=False)
        else:
            labels = np.loadtxt(path, dtype=np.int64, delimiter=",", ndmin=1)
    except UNREADABLE as problem:
        raise TVMCException(f"the labels in {given} cannot be read: {problem}") from problem
    if labels.ndim != 1 or labels.dtype.kind not in "iu":
        raise TVMCException(
            f"labels are the numbers of classes, one for each sample, not {labels.dtype} of shape {list(labels.shape)}"
        )
    return labels, name
