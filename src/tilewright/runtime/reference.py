"""What owns a reference to something of the C runtime.

A copy that Python makes field by field, by ``copy`` or by ``pickle``, would own the same reference and release it
again.
"""

from __future__ import annotations

from typing import Any

from tilewright.runtime.failure import failure


class HoldsReference:
    """Base of owners that cannot be copied; one that can says how in ``__reduce__``."""

    __slots__ = ()

    def __reduce__(self) -> Any:
        raise failure(
            "TypeError",
            f"a {type(self).__name__} belongs to the runtime of this process: it cannot be copied or pickled",
        )
