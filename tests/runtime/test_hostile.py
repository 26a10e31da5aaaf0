"""Artefacts that were damaged or made to harm: a hundred thousand changed ones give an error or the same model.

A real model is exported as a tar with its manifest, as a model library with metadata, graph and parameters, and as a
shared library. Each round changes one of them in up to four places, cuts it, or repeats a part of it, and reads it
as a program would. Machine code is never run here: what carries it must be refused or be what was exported.
"""

from __future__ import annotations

import copy
import json
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilewright as tvm
from tilewright import micro, te
from tilewright.runtime import save_param_dict
from tilewright.runtime.artefact import Archive, check_checksum
from tilewright.runtime.elf import check_elf
from tilewright.runtime.graph_executor import GraphExecutor
from tilewright.runtime.module import Module, SourceModule
from tilewright.runtime.params import load_param_dict
from tilewright.support.errors import TilewrightError

LONGEST = 120
"""Seconds that any of these tests may take on a slow machine; they take a few."""

GRAPH: dict[str, Any] = {
    "nodes": [
        {"op": "null", "name": "x", "inputs": []},
        {"op": "null", "name": "w", "inputs": []},
        {
            "op": "tvm_op",
            "name": "y",
            "attrs": {"func_name": "scale", "num_outputs": "1", "flatten_data": "0"},
            "inputs": [[0, 0, 0], [1, 0, 0]],
        },
        {
            "op": "tvm_op",
            "name": "z",
            "attrs": {"func_name": "scale", "num_outputs": "1", "flatten_data": "1"},
            "inputs": [[2, 0, 0], [1, 0, 0]],
        },
    ],
    "arg_nodes": [0, 1],
    "heads": [[3, 0, 0]],
    "node_row_ptr": [0, 1, 2, 3, 4],
    "attrs": {
        "shape": ["list_shape", [[4]] * 4],
        "dltype": ["list_str", ["float32"] * 4],
        "storage_id": ["list_int", [0, 1, 2, 3]],
    },
}
PARAMS = {"w": np.arange(4, dtype="float32"), "other": np.ones((2, 3), "int8")}


@dataclass
class Model:
    """A model for the graph executor."""

    lib: Module
    libmod_name: str = "net"

    def get_graph_json(self) -> str:
        return json.dumps(GRAPH)

    def get_params(self) -> dict[str, Any]:
        return PARAMS

    def get_lib(self) -> Module:
        return self.lib


@pytest.fixture(scope="module")
def lib() -> Module:
    """The model's code."""
    x, w = te.placeholder((4,), name="x"), te.placeholder((4,), name="w")
    y = te.compute((4,), lambda i: x[i] * w[i], name="y")
    return tvm.build(tvm.lower(te.create_schedule(y.op), [x, w, y], name="scale"), target="llvm")


class Mutator:
    """Changed forms of one content, always the same ones."""

    def __init__(self, content: bytes, likely: bytes, seed: int) -> None:
        self.content, self.likely = content, likely
        self.random = np.random.default_rng(seed)

    def many(self, count: int) -> Any:
        """That many changed contents."""
        size = len(self.content)
        kinds = self.random.integers(0, 16, count)
        places = self.random.integers(0, size, (count, 4)).tolist()
        values = self.random.integers(0, 256, (count, 4)).tolist()
        amounts = self.random.integers(1, 5, count).tolist()
        for kind, where, what, amount in zip(kinds.tolist(), places, values, amounts, strict=True):
            changed = bytearray(self.content)
            if kind == 0:
                del changed[where[0] :]
            elif kind == 1:
                first, last = sorted(where[:2])
                changed[first:first] = changed[first:last]
            elif kind == 2:
                first, last = sorted(where[:2])
                del changed[first : min(last, first + 64)]
            else:
                for place, value in zip(where[:amount], what, strict=False):
                    usual = kind > 8
                    changed[place] = self.likely[value % len(self.likely)] if usual else value
            yield bytes(changed)


def attack(mutator: Mutator, count: int, read: Callable[[bytes], object]) -> int:
    """Read every changed form; how many were refused. Anything but a result or a Tilewright error ends the test."""
    started, refused = time.monotonic(), 0
    for changed in mutator.many(count):
        try:
            read(changed)
        except TilewrightError:
            refused += 1
    assert time.monotonic() - started < LONGEST
    return refused


def _placed() -> dict[str, Any]:
    """The graph with places: the last tensor is the second half of the storage that it shares with the one before."""
    made = copy.deepcopy(GRAPH)
    made["attrs"] |= {
        "storage_id": ["list_int", [0, 1, 2, 2]],
        "storage_offset": ["list_int", [0, 0, 0]],
        "tensor_offset": ["list_int", [0, 0, 0, 16]],
    }
    return made


@pytest.mark.parametrize("graph", [GRAPH, _placed()], ids=["plain", "with places"])
def test_graphs(graph: dict[str, Any], lib: Module) -> None:
    """20,000 changed graphs of each kind: an error, or an executor that runs, or whose kernels refuse their
    arguments."""
    text = json.dumps(graph).encode()
    ran = 0

    def read(changed: bytes) -> None:
        nonlocal ran
        executor = GraphExecutor(changed.decode("latin-1"), lib)
        # Inputs get their memory when the graph runs; sizes that fit no machine are for another test.
        extents = re.findall(rb"\d{4,}", changed)
        if executor.arena_bytes < 1 << 20 and not extents:
            executor.run()
            ran += 1

    refused = attack(Mutator(text, b'0123456789,[]{}"-.eux\\', 1), 20_000, read)
    assert 10_000 < refused < 20_000 and ran > 500


def test_parameters(lib: Module) -> None:
    """40,000 changed parameter blocks, half read by Python and half by C: arrays or an error."""
    executor = GraphExecutor(json.dumps(GRAPH), lib)
    block = save_param_dict(PARAMS)
    by_python = attack(Mutator(block, b"\x00\x01\x02\x04\x08\x20\x7f\xff", 2), 20_000, load_param_dict)
    by_c = attack(Mutator(block, b"\x00\x01\x02\x04\x08\x20\x7f\xff", 3), 20_000, executor.load_params)
    assert 10_000 < by_python < 20_000 and 10_000 < by_c < 20_000


@pytest.mark.parametrize("form", ["archive", "model library"])
def test_archives(form: str, lib: Module, tmp_path: Path) -> None:
    """9,000 changed archives of each form: an error, or the code that was exported, byte for byte."""
    path = tmp_path / "model.tar"
    if form == "archive":
        root = tvm.runtime.loading.ObjectModule([lib.object_code() or b""], "model")
        root._function_names = ("scale",)
        root.import_module(SourceModule("source", type_key="opencl", format="cl", function_names=["k"]))
        root.export_library(str(path))
    else:
        micro.export_model_library_format(Model(lib), path)
    original = Archive.read(path)
    content = path.read_bytes().rstrip(b"\0") + bytes(1024)

    def read(changed: bytes) -> None:
        path.write_bytes(changed)
        loaded = Archive.read(path)
        assert loaded.objects == original.objects and loaded.imports == original.imports

    refused = attack(Mutator(content, b'0123456789./:{}[]"\x00', 4), 9_000, read)
    assert refused > 4_000


def test_shared_libraries(lib: Module, tmp_path: Path) -> None:
    """2,000 changed libraries: refused for their checksum or their head, before the system's loader sees them."""
    path = tmp_path / "model.so"
    lib.export_library(str(path))
    content = path.read_bytes()

    def read(changed: bytes) -> None:
        check_checksum(changed, "it")
        check_elf(changed, "it")
        # What passes has lost the mark of the checksum, and is a file that was never signed.
        assert changed == content or changed[-50:-32] != content[-50:-32]

    refused = attack(Mutator(content, b"\x00\xff", 5), 2_000, read)
    assert refused > 1_700
