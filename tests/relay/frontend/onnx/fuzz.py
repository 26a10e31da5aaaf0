"""Damaged ONNX files: each is read, or refused with an error of this project; never a crash, a hang, or memory
without end.

    python tests/relay/frontend/onnx/fuzz.py --minutes 60 --seed 1

Files are small models of many operators. A case changes bytes of one, cuts it, doubles a part of it, joins it with
another, or changes numbers of the parsed model (dimensions, axes, types, attributes, names of inputs), which gets
deeper into the importer. What fails is written to a folder with the seed of the case.
"""

from __future__ import annotations

import argparse
import random
import resource
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import onnx
from onnx.backend.test.case.node import collect_testcases

from tilewright.relay.frontend.onnx import from_onnx
from tilewright.support.errors import InternalError, TilewrightError

LIMIT_SECONDS = 20
"""A file that takes more of the processor's time counts as a hang."""
LIMIT_BYTES = 128 << 20
"""A file, small as it is, that takes more memory than any before it by so much counts as a failure."""


@dataclass
class Record:
    """What a run saw."""

    cases: int = 0
    read: int = 0
    grown: int = 0
    errors: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)


class Hang(BaseException):
    """A case took too long. Not an Exception: nobody is to catch it on the way."""


def seeds(limit: int = 400) -> list[bytes]:
    """The bytes of small models of as many operators as there are."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cases = collect_testcases()
    found: dict[str, bytes] = {}
    for case in cases:
        content = case.model.SerializeToString()
        operators = ",".join(sorted({node.op_type for node in case.model.graph.node}))
        if len(content) < 20_000 and len(content) < len(found.get(operators, b"x" * 20_000)):
            found[operators] = content
    return [found[key] for key in sorted(found)][:limit]


def damaged(generator: random.Random, pool: list[bytes]) -> bytes:
    """One damaged file."""
    content = bytearray(generator.choice(pool))
    if generator.random() < 0.5:
        return _changed_model(generator, bytes(content))
    for _ in range(generator.choice((1, 1, 2, 4, 16))):
        way = generator.randrange(6)
        at = generator.randrange(len(content) or 1)
        if way == 0 and content:
            content[at] = generator.randrange(256)
        elif way == 1 and content:
            content[at] ^= 1 << generator.randrange(8)
        elif way == 2:
            del content[at : at + generator.choice((1, 2, 8, 64))]
        elif way == 3:
            content[at:at] = content[at : at + generator.choice((1, 4, 32, 256))]
        elif way == 4:
            content[at : at + 8] = generator.choice((b"\xff" * 9 + b"\x01", b"\x00" * 8, b"\x80" * 8))
        else:
            content[at:] = generator.choice(pool)[at:]
    return bytes(content)


NUMBERS = (0, 1, -1, 2, 3, 7, -7, 255, 1 << 15, -(1 << 31), (1 << 31) - 1, 1 << 40, (1 << 63) - 1, -(1 << 63))


def _changed_model(generator: random.Random, content: bytes) -> bytes:
    """A model that parses, with some of its numbers and names changed."""
    model = onnx.ModelProto.FromString(content)
    for _ in range(generator.choice((1, 1, 2, 5))):
        _CHANGES[generator.randrange(len(_CHANGES))](generator, model)
    return bytes(model.SerializeToString())


def _change_attribute(generator: random.Random, model: Any) -> None:
    attributes = [one for node in model.graph.node for one in node.attribute]
    if not attributes:
        return
    chosen = generator.choice(attributes)
    if chosen.type == onnx.AttributeProto.INT:
        chosen.i = generator.choice(NUMBERS)
    elif chosen.type == onnx.AttributeProto.FLOAT:
        chosen.f = generator.choice((0.0, -1.0, float("nan"), float("inf"), 1e30, 0.5))
    elif chosen.type == onnx.AttributeProto.INTS:
        way = generator.randrange(3)
        if way == 0 and chosen.ints:
            chosen.ints[generator.randrange(len(chosen.ints))] = generator.choice(NUMBERS)
        elif way == 1:
            chosen.ints.append(generator.choice(NUMBERS))
        else:
            del chosen.ints[generator.randrange(len(chosen.ints) + 1) :]
    elif chosen.type == onnx.AttributeProto.STRING:
        chosen.s = generator.choice((b"", b"SAME_UPPER", b"linear", b"\xff\xfe", b"x" * 100))
    else:
        chosen.type = generator.randrange(14)


def _change_shape(generator: random.Random, model: Any) -> None:
    dims = [one for info in model.graph.input for one in info.type.tensor_type.shape.dim]
    dims += list(model.graph.initializer)
    if not dims:
        return
    chosen = generator.choice(dims)
    if isinstance(chosen, onnx.TensorProto):
        chosen.dims[:] = [generator.choice(NUMBERS) for _ in range(generator.randrange(4))]
    elif generator.random() < 0.3:
        chosen.dim_param = "n"
    else:
        chosen.dim_value = generator.choice(NUMBERS)


def _change_type(generator: random.Random, model: Any) -> None:
    if model.graph.input:
        generator.choice(model.graph.input).type.tensor_type.elem_type = generator.randrange(30)


def _change_rank(generator: random.Random, model: Any) -> None:
    if model.graph.input:
        shape = generator.choice(model.graph.input).type.tensor_type.shape
        if generator.random() < 0.5 and shape.dim:
            del shape.dim[generator.randrange(len(shape.dim))]
        else:
            shape.dim.add(dim_value=generator.choice((1, 2, 5)))


def _change_name(generator: random.Random, model: Any) -> None:
    nodes = [node for node in model.graph.node if node.input]
    if nodes:
        node = generator.choice(nodes)
        names = [
            "",
            "nothing",
            *(name for other in model.graph.node for name in (*other.input, *other.output)),
        ]
        node.input[generator.randrange(len(node.input))] = generator.choice(names)


def _change_operator(generator: random.Random, model: Any) -> None:
    if model.graph.node:
        node = generator.choice(model.graph.node)
        way = generator.randrange(4)
        if way == 0:
            node.op_type = generator.choice(
                ("Conv", "Resize", "Loop", "LSTM", "Reshape", "Concat", "Attention", "No")
            )
        elif way == 1 and node.input:
            del node.input[generator.randrange(len(node.input))]
        elif way == 2:
            node.input.append(generator.choice(list(node.input) or [""]))
        else:
            node.output.append("more")


def _change_opset(generator: random.Random, model: Any) -> None:
    if model.opset_import:
        generator.choice(model.opset_import).version = generator.choice(
            (0, 1, 7, 9, 11, 13, 18, 25, 1000, -1)
        )


_CHANGES = (
    _change_attribute,
    _change_attribute,
    _change_shape,
    _change_type,
    _change_rank,
    _change_name,
    _change_operator,
    _change_opset,
)


def _alarm(*_: object) -> None:
    raise Hang


def run(cases: int, seconds: float, seed: int, folder: Path | None = None, verbose: bool = False) -> Record:
    """Read damaged files until there were so many, or time is up."""
    record, pool = Record(), seeds()
    before = signal.signal(signal.SIGPROF, _alarm)
    end = time.monotonic() + seconds
    try:
        # What is loaded on first use is not a growth.
        for content in pool[:40]:
            _read(content, record)
        record.read = record.cases = 0
        record.errors.clear()
        memory = peak = _peak_bytes()
        for number in range(cases):
            if time.monotonic() > end:
                break
            content = damaged(random.Random(seed * 1_000_003 + number), pool)
            complaint = _read(content, record)
            before_case, peak = peak, _peak_bytes()
            if not complaint and peak - before_case > LIMIT_BYTES:
                complaint = f"{(peak - before_case) >> 20} MiB more than before"
            if complaint:
                record.failures.append(f"seed {seed}, case {number}: {complaint}")
                if folder is not None:
                    (folder / f"{seed}-{number}.onnx").write_bytes(content)
                if verbose:
                    print(record.failures[-1], flush=True)
            if verbose and number % 2000 == 1999:
                grown = (peak - memory) >> 20
                print(
                    f"{number + 1} cases, {record.read} read, {len(record.failures)} failures, {grown} MiB",
                    flush=True,
                )
        record.grown = peak - memory
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
    return record


def _peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _read(content: bytes, record: Record) -> str:
    """What is wrong with how a file was read; nothing where it was read, or refused as it should be."""
    record.cases += 1
    signal.setitimer(signal.ITIMER_PROF, LIMIT_SECONDS)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            from_onnx(content)
        record.read += 1
    except InternalError as error:
        return f"an internal error: {_where(error)}"
    except TilewrightError as error:
        record.errors[type(error).__name__] += 1
    except Hang:
        return f"no answer after {LIMIT_SECONDS} seconds of work"
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        return _where(error)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return ""


def _where(error: BaseException) -> str:
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "tilewright" in frame.filename]
    last = f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else "?"
    return f"{type(error).__name__} at {last}: {' '.join(str(error).split())[:200]}"


def main() -> int:
    """Run by hand, for as long as asked."""
    parser = argparse.ArgumentParser(description="Read damaged ONNX files.")
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    chosen = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="tilewright-fuzz-"))
    record = run(sys.maxsize, chosen.minutes * 60, chosen.seed, folder, verbose=True)
    print(f"seed {chosen.seed}: {record.cases} cases, {record.read} read, {dict(record.errors)}")
    print(f"{len(record.failures)} failures in {folder}; the process grew by {record.grown >> 20} MiB")
    return 1 if record.failures else 0


if __name__ == "__main__":
    sys.exit(main())
