"""``TILEWRIGHT_DUMP=folder``: every stage of every unit as a file, numbered in the order in which it was made.

    folder/graph/1-prepare/NNN_Pass.txt the model after each graph pass that changed it
    folder/<unit>/0-relay.txt           the fused function
    folder/<unit>/passes/NNN_Pass.txt   the loops after each pass that changed them
    folder/<unit>/1-lowered.llvm.py     the loops after lowering
    folder/<unit>/2-host.llvm.py        what the code generator got
    folder/<unit>/3-host.llvm.unoptimized.ll, ….optimized.ll, ….s

Whoever makes the loops adds what comes before them, with ``dump_text`` and ``dump_passes``.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from contextlib import contextmanager

from tilewright.ir.instrument import DumpIR
from tilewright.ir.transform import PassContext
from tilewright.support.cbuild import write_bytes
from tilewright.support.errors import TilewrightError
from tilewright.support.options import dump_folder

_LONGEST_NAME = 120


def dump_text(unit: str, stage: str, text: str) -> None:
    """Write one stage of a unit, if stages are wanted."""
    folder = dump_folder()
    if folder is None:
        return
    place = folder / _file_name(unit)
    try:
        place.mkdir(parents=True, exist_ok=True)
        write_bytes(place / stage, text.encode())
    except OSError as problem:
        raise TilewrightError(f"TILEWRIGHT_DUMP: {place / stage} cannot be written: {problem}") from None


@contextmanager
def dump_passes(place: str) -> Iterator[None]:
    """Inside, write the program after every pass that changes it, if stages are wanted. ``place`` is a subfolder."""
    folder = dump_folder()
    if folder is None:
        yield
        return
    context = PassContext.current()
    instrument = DumpIR(folder.joinpath(*(_file_name(part) for part in place.split("/"))))
    context.instruments.append(instrument)
    try:
        yield
    finally:
        context.instruments.remove(instrument)


def _file_name(unit: str) -> str:
    """A name that any file system takes; long names are cut, and stay different."""
    plain = re.sub(r"[^A-Za-z0-9_.-]", "_", unit)
    if len(plain) <= _LONGEST_NAME:
        return plain
    return f"{plain[:_LONGEST_NAME]}_{hashlib.sha256(unit.encode()).hexdigest()[:8]}"
