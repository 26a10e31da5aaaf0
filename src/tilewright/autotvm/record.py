"""Files of records: the best of each workload, and one file for each. ``task.records`` has the format."""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from tilewright.autotvm.measure.measure import MeasureInput, MeasureResult
from tilewright.autotvm.task.dispatcher import ApplyHistoryBest
from tilewright.autotvm.task.records import (
    AUTOTVM_LOG_VERSION,
    Record,
    decode,
    encode,
    load_from_file,
    measure_str_key,
)
from tilewright.search.outcomes import typical

logger = logging.getLogger("autotvm")


def split_workload(in_file: str | Path, clean: bool = True) -> list[str]:
    """Write the records of each workload to a file of their own, ``IN_FILE.000.wkl`` and so on, and return the names.
    With ``clean``, of equal configurations only the last is kept."""
    groups: dict[str, list[Record]] = {}
    for inp, res in load_from_file(in_file):
        groups.setdefault(measure_str_key(inp, False), []).append((inp, res))
    made = []
    for number, records in enumerate(groups.values()):
        kept: Sequence[Record] = records
        if clean:
            kept = list({measure_str_key(inp): (inp, res) for inp, res in records}.values())
        logger.info("workload %d: %d records, %d repeated", number, len(kept), len(records) - len(kept))
        name = f"{os.fspath(in_file)}.{number:03d}.wkl"
        _write(name, kept)
        made.append(name)
    return made


def pick_best(in_file: str | Path | IO[str], out_file: str | Path | IO[str]) -> None:
    """Write the fastest record of each workload and target to a file. It may be the file that is read."""
    best: dict[str, Record] = {}
    for inp, res in load_from_file(in_file):
        key = measure_str_key(inp, False)
        if res.error_no == 0 and (key not in best or typical(best[key][1].costs) > typical(res.costs)):
            best[key] = (inp, res)
    logger.info("%d workloads have a best record", len(best))
    _write(out_file, list(best.values()))


def _write(out_file: str | Path | IO[str], records: Sequence[Record]) -> None:
    text = "".join(f"{encode(inp, res)}\n" for inp, res in records)
    if isinstance(out_file, (str, Path)):
        # Written beside it and renamed: the file is whole at any time, also where it is the one that was read.
        beside = Path(f"{os.fspath(out_file)}.{os.getpid()}.part")
        beside.write_text(text)
        os.replace(beside, out_file)
    else:
        out_file.write(text)


__all__ = [
    "AUTOTVM_LOG_VERSION",
    "ApplyHistoryBest",
    "MeasureInput",
    "MeasureResult",
    "decode",
    "encode",
    "load_from_file",
    "measure_str_key",
    "pick_best",
    "split_workload",
]
