"""Runs the model's functions on PyTorch tensors, without Tilewright.   python torch_main.py FOLDER

It needs ``torch`` and ``apache-tvm-ffi``. An exported library uses the calling convention of the latter and contains
its own copy of the runtime, so each of its functions can be called like any function on tensors; nothing is copied.
"""

from __future__ import annotations

import struct
import sys
from math import prod
from pathlib import Path

import torch
import tvm_ffi

TOLERANCE = 1e-5


def read_tensor(content: bytes, shape: tuple[int, ...], offset: int = 0) -> torch.Tensor:
    """A float32 tensor of raw bytes."""
    flat = torch.frombuffer(bytearray(content), dtype=torch.float32, count=prod(shape), offset=offset)
    return flat.reshape(shape)


def read_params(content: bytes) -> dict[str, torch.Tensor]:
    """Reads what ``save_param_dict`` wrote: all names, then all tensors, each with a header that has its shape."""
    _, _, count = struct.unpack_from("<QQQ", content)
    at = 24
    names = []
    for _ in range(count):
        (length,) = struct.unpack_from("<Q", content, at)
        names.append(content[at + 8 : at + 8 + length].decode())
        at += 8 + length
    at += 8  # the number of tensors
    tensors = {}
    for name in names:
        (ndim,) = struct.unpack_from("<i", content, at + 24)  # after two marks and the device
        shape = struct.unpack_from(f"<{ndim}q", content, at + 32)
        at += 32 + 8 * ndim + 8
        tensors[name] = read_tensor(content, shape, at)
        at += 4 * prod(shape)
    return tensors


def main(folder: Path) -> int:
    """0 if the model says what is expected."""
    functions = tvm_ffi.load_module(str(folder / "model.so"))
    params = read_params((folder / "params.bin").read_bytes())
    x = read_tensor((folder / "input.bin").read_bytes(), (4, 64))
    hidden, logits, output = torch.empty(4, 32), torch.empty(4, 10), torch.empty(4, 10)
    functions.dense_relu(x, params["w1"], params["b1"], hidden)
    functions.dense(hidden, params["w2"], params["b2"], logits)
    functions.softmax(logits, output)
    expected = read_tensor((folder / "expected.bin").read_bytes(), (4, 10))
    difference = (output - expected).abs().max().item()
    print("prediction:", *output.argmax(1).tolist())
    print(f"largest difference: {difference:.2e}")
    return 0 if difference <= TOLERANCE else 1


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
