"""The comment that says how fast a task's constructed schedule was; see ``untuned``."""

from __future__ import annotations

import json
from typing import Any, Final

UNTUNED: Final = "# untuned "


def untuned_note(task: Any, seconds: float) -> str:
    """The comment for a task."""
    return UNTUNED + json.dumps([task.workload_key, task.target.kind.name, seconds])
