"""A small model that has everything a plan must know: scratch memory, views, several outputs, one of them an input."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import tilewright as tvm
from tilewright import te

Array = Any


@dataclass(frozen=True)
class Model:
    """A graph with its kernels, and what NumPy says of it."""

    graph: str
    kernels: list[tvm.IRModule]
    weight: Array
    value: Array

    def reference(self) -> list[Array]:
        """The five outputs."""
        dense = self.value @ self.weight
        powers = np.exp(dense - dense.max(axis=1, keepdims=True))
        soft = powers / powers.sum(axis=1, keepdims=True)
        flat = soft.reshape(512)
        total = soft + self.value
        return [flat[:256] + flat[256:], flat[:256] - flat[256:], total, self.value, total]


def _dense() -> tvm.IRModule:
    x, w = te.placeholder((8, 64), name="x"), te.placeholder((64, 64), name="w")
    k = te.reduce_axis((0, 64), "k")
    y = te.compute((8, 64), lambda i, j: te.sum(x[i, k] * w[k, j], axis=k), name="y")
    schedule = te.create_schedule(y.op)
    schedule[y].parallel(y.op.axis[0])
    return tvm.lower(schedule, [x, w, y], name="dense")


def _softmax() -> tvm.IRModule:
    x = te.placeholder((8, 64), name="x")
    k, m = te.reduce_axis((0, 64), "k"), te.reduce_axis((0, 64), "m")
    largest = te.compute((8,), lambda i: te.max(x[i, m], axis=m), name="largest")
    powers = te.compute((8, 64), lambda i, j: te.exp(x[i, j] - largest[i]), name="powers")
    total = te.compute((8,), lambda i: te.sum(powers[i, k], axis=k), name="total")
    y = te.compute((8, 64), lambda i, j: powers[i, j] / total[i], name="y")
    return tvm.lower(te.create_schedule(y.op), [x, y], name="softmax")


def _halves() -> tvm.IRModule:
    x = te.placeholder((512,), name="x")
    total, difference = te.compute((256,), lambda i: (x[i] + x[i + 256], x[i] - x[i + 256]), name="halves")
    return tvm.lower(te.create_schedule(total.op), [x, total, difference], name="halves")


def _add() -> tvm.IRModule:
    a, b = te.placeholder((512,), name="a"), te.placeholder((512,), name="b")
    c = te.compute((512,), lambda i: a[i] + b[i], name="c")
    schedule = te.create_schedule(c.op)
    schedule[c].vectorize(schedule[c].split(c.op.axis[0], 8)[1])
    return tvm.lower(schedule, [a, b, c], name="add")


def _call(name: str, function: str, inputs: list[list[int]], **attributes: str) -> dict[str, Any]:
    attributes = {"func_name": function, "num_outputs": "1", "flatten_data": "0", **attributes}
    return {"op": "tvm_op", "name": name, "attrs": attributes, "inputs": inputs}


@pytest.fixture(scope="session")
def model() -> Model:
    """The model."""
    graph = {
        "nodes": [
            {"op": "null", "name": "x", "inputs": []},
            {"op": "null", "name": "w", "inputs": []},
            _call("dense", "dense", [[0, 0, 0], [1, 0, 0]]),
            _call("softmax", "softmax", [[2, 0, 0]]),
            _call("reshape", "__nop", [[3, 0, 0]]),
            _call("halves", "halves", [[4, 0, 0]], num_outputs="2"),
            _call("residual", "add", [[3, 0, 0], [0, 0, 0]], flatten_data="1"),
        ],
        "arg_nodes": [0, 1],
        "heads": [[5, 0, 0], [5, 1, 0], [6, 0, 0], [0, 0, 0], [6, 0, 0]],
        "node_row_ptr": [0, 1, 2, 3, 4, 5, 7, 8],
        "attrs": {
            "shape": ["list_shape", [[8, 64], [64, 64], [8, 64], [8, 64], [512], [256], [256], [8, 64]]],
            "dltype": ["list_str", ["float32"] * 8],
            "storage_id": ["list_int", [0, 1, 2, 3, 3, 4, 5, 6]],
        },
    }
    random = np.random.default_rng(3)
    return Model(
        json.dumps(graph),
        [_dense(), _softmax(), _halves(), _add()],
        random.normal(size=(64, 64)).astype("float32") / 8,
        random.normal(size=(8, 64)).astype("float32"),
    )
