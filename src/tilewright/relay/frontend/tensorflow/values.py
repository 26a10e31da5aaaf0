"""What an output of a node may stand for at import, other than a tensor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tilewright.relay.frontend.common.sizes import Size


@dataclass(frozen=True)
class PendingList:
    """A list of tensors (TensorArray, TensorList) to which nothing has been written: how many there are, and what is
    known of each. From the first element on it is one tensor, in which they are stacked."""

    count: Size
    dtype: str
    shape: tuple[int | None, ...] | None
    grows: bool = False
    """Whether writing behind the last element makes the list longer."""

    def known_shape(self) -> Sequence[int] | None:
        """The shape of an element, where all of it is known."""
        if self.shape is None or any(size is None for size in self.shape):
            return None
        return [size for size in self.shape if size is not None]
