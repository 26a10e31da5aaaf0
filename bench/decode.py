"""Language models one token at a time, causal attention, and float16 models.

Run it:  python bench/decode.py [--threads 2] [--rounds 3]

- Products of one row with weights of 4 and 8 bits (``MatMulNBits``, groups of 32), 4096 by 4096, twelve in a row, so
  that no cache holds the weights; against ONNX Runtime. Gigabytes of weights, scales included, in a second, and the
  share of what a loop that only reads as much reads in a second.
- A step of a decoder with a full cache of 2048 tokens (``bench/models/decoder.py``), with the caches updated in place
  and with caches that are copied; against PyTorch. Gigabytes of weights and caches in a second, and the share as above.
- Attention of one token to a cache of keys and values that no cache holds, and causal attention of a whole sequence;
  against PyTorch's ``scaled_dot_product_attention``.
- Models in float16 against the same in float32.

Programs are compiled first. Each contender then runs in a process of its own, in turns; the median of the rounds
counts.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from models import decoder

SECONDS = 1.0
"""How long a contender runs in each round; the median of its runs counts."""
LAYERS, WIDTH, GROUP = 12, 4096, 32
ATTENTIONS = {
    "one token, 32 heads of 128, 8192 keys": (32, 32, 1, 8192, 128, False),
    "one token, 32 heads sharing 8, 16384 keys": (32, 8, 1, 16384, 128, False),
    "causal, 12 heads of 64, 512 tokens": (12, 12, 512, 512, 64, True),
    "causal, 12 heads of 64, 2048 tokens": (12, 12, 2048, 2048, 64, True),
}
"""Heads, heads of keys, queries, keys, channels, whether keys behind a query are hidden."""
MODELS = ("resnet50", "mobilenet", "transformer")
DECODERS = ("in place", "copied")


def quantized_products(bits: int) -> tuple[Any, int]:
    """An ONNX model of products in a row, and the bytes of its weights and scales."""
    from onnx import helper, numpy_helper

    random = np.random.default_rng(0)
    nodes, stored, size = [], [], 0
    for layer in range(LAYERS):
        weight = random.integers(0, 256, (WIDTH, WIDTH // GROUP, GROUP * bits // 8)).astype("uint8")
        scale = (random.random((WIDTH, WIDTH // GROUP)) + 0.5).astype("float32") * 2.0**-bits / 16
        size += weight.nbytes + scale.nbytes
        stored += [numpy_helper.from_array(weight, f"w{layer}"), numpy_helper.from_array(scale, f"s{layer}")]
        names = [f"x{layer}", f"w{layer}", f"s{layer}"]
        attributes = {"K": WIDTH, "N": WIDTH, "bits": bits, "block_size": GROUP}
        nodes.append(
            helper.make_node("MatMulNBits", names, [f"x{layer + 1}"], domain="com.microsoft", **attributes)
        )
    ends = [helper.make_tensor_value_info(f"x{place}", 1, [1, WIDTH]) for place in (0, LAYERS)]
    graph = helper.make_graph(nodes, "products", ends[:1], ends[1:], stored)
    imports = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=imports, ir_version=10), size


def module_of(case: str) -> tuple[Any, dict[str, Any]]:
    """The Relay module of a case, and its parameters."""
    import tilewright as tvm
    from tilewright import relay
    from tilewright.relay import testing
    from tilewright.relay.frontend.onnx import from_onnx
    from tilewright.relay.testing import transformer

    kind, name = case.split(":")
    if kind == "decoder":
        return decoder.module(), decoder.parameters()
    if kind == "product":
        return from_onnx(quantized_products(int(name))[0])
    if kind == "attention":
        heads, shared, queries, keys, size, causal = ATTENTIONS[name]
        shapes = [(1, heads, queries, size), (1, shared, keys, size), (1, shared, keys, size)]
        given = [relay.var(f"p{place}", shape=shape) for place, shape in enumerate(shapes)]
        made = relay.nn.contrib_attention(
            *given,
            heads=heads,
            scale=size**-0.5,
            layouts=("NHTC",) * 4,
            shared=heads // shared,
            diagonal=0 if causal else None,
        )
        return tvm.IRModule.from_expr(relay.Function(given, made)), {}
    model, dtype = name.split("/")
    if model == "resnet50":
        return testing.resnet.get_workload(batch_size=1, num_layers=50, dtype=dtype)
    if model == "mobilenet":
        return testing.mobilenet.get_workload(batch_size=1, dtype=dtype)
    return transformer.get_workload(dtype=dtype)


def library_file(folder: Path, case: str) -> Path:
    """Where the compiled program of a case is."""
    return folder / f"{''.join(letter if letter.isalnum() else '_' for letter in case)}.tar"


def compile_case(folder: Path, case: str, target: str) -> None:
    """Compile a case."""
    import tilewright as tvm
    from tilewright import relay

    module, params = module_of(case)
    in_place = decoder.caches() if case == "decoder:in place" else None
    with tvm.transform.PassContext(opt_level=3):
        built = relay.build(module, target, params=params, in_place=in_place)
    built.export_library(str(library_file(folder, case)))


def numbers(shape: Any, dtype: str = "float32") -> Any:
    """Random numbers."""
    return np.random.default_rng(1).standard_normal(tuple(shape)).astype(dtype)


def ours(folder: Path, case: str, threads: int) -> Callable[[], Any]:
    """A run of the compiled program."""
    import tilewright as tvm
    from tilewright.contrib import graph_executor

    loaded: Any = tvm.runtime.load_module(str(library_file(folder, case)))
    executor = graph_executor.GraphModule(loaded["default"](tvm.cpu(0)))
    shapes, dtypes = executor.get_input_info()
    for name, shape in shapes.items():
        if name == "position":
            executor.set_input(name, np.array([decoder.CAPACITY - 1]))
        elif not name.startswith(("p0_", "_param")):
            executor.set_input(name, numbers(shape, dtypes[name]))
    return lambda: executor.run()


def theirs(case: str, threads: int) -> Callable[[], Any]:
    """A run of the runtime to compare with."""
    kind, name = case.split(":")
    if kind == "product":
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        session = onnxruntime.InferenceSession(quantized_products(int(name))[0].SerializeToString(), options)
        data = {"x0": numbers((1, WIDTH))}
        return lambda: session.run(None, data)
    import torch

    torch.set_num_threads(threads)
    if kind == "decoder":
        return decoder.torch_step()
    heads, shared, queries, keys, size, causal = ATTENTIONS[name]
    query = torch.from_numpy(numbers((1, heads, queries, size)))
    key, value = (torch.from_numpy(numbers((1, shared, keys, size))) for _ in range(2))
    attend = torch.nn.functional.scaled_dot_product_attention
    with torch.inference_mode():
        return lambda: attend(query, key, value, is_causal=causal, enable_gqa=heads != shared)


def seconds(run: Callable[[], Any]) -> float:
    """The median time of a run."""
    run()
    found: list[float] = []
    end = time.perf_counter() + SECONDS
    while time.perf_counter() < end or len(found) < 3:
        start = time.perf_counter()
        run()
        found.append(time.perf_counter() - start)
    return statistics.median(found)


def measured(folder: Path, contender: str, case: str, threads: int) -> float:
    """Seconds of a contender in a process of its own; of ``read``, bytes a second."""
    command = [sys.executable, __file__, "--child", contender, "--case", case, "--folder", str(folder)]
    environment = {**os.environ, "TVM_NUM_THREADS": str(threads)}
    made = subprocess.run(
        [*command, "--threads", str(threads)], env=environment, check=True, capture_output=True, text=True
    )
    return float(made.stdout.split()[-1])


def child(folder: Path, contender: str, case: str, threads: int) -> float:
    """What a process of its own measures."""
    if contender == "read":
        from tilewright.codegen.llvm.limits import bandwidth

        return bandwidth(int(case) >> 20, threads, repeats=5)["read"]
    return seconds(ours(folder, case, threads) if contender == "ours" else theirs(case, threads))


def in_turns(folder: Path, pairs: list[tuple[str, str]], threads: int, rounds: int) -> list[float]:
    """The median of each (contender, case)."""
    found: list[list[float]] = [[] for _ in pairs]
    for _ in range(rounds):
        for place, (contender, case) in enumerate(pairs):
            found[place].append(measured(folder, contender, case, threads))
    return [statistics.median(one) for one in found]


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--folder", help="where compiled programs are, or are put; a temporary one by default"
    )
    parser.add_argument("--target", default="llvm", help="for example llvm -mcpu=core-avx2")
    parser.add_argument("--compile", action="store_true", help="only compile")
    parser.add_argument(
        "--only", choices=("product", "decoder", "attention", "model"), help="one of the tables"
    )
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--case", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    os.environ["TVM_NUM_THREADS"] = str(arguments.threads)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(arguments.folder or temporary)
        folder.mkdir(parents=True, exist_ok=True)
        if arguments.child:
            print(child(folder, arguments.child, arguments.case, arguments.threads))
            return
        cases = {
            "product": [f"product:{bits}" for bits in (4, 8)],
            "decoder": [f"decoder:{name}" for name in DECODERS],
            "attention": [f"attention:{name}" for name in ATTENTIONS],
            "model": [f"model:{name}/{dtype}" for name in MODELS for dtype in ("float32", "float16")],
        }
        wanted = {kind: each for kind, each in cases.items() if arguments.only in (None, kind)}
        for case in (case for each in wanted.values() for case in each):
            if not library_file(folder, case).exists():
                compile_case(folder, case, arguments.target)
        if not arguments.compile:
            _report(folder, list(wanted), arguments.threads, arguments.rounds)


def _report(folder: Path, kinds: list[str], threads: int, rounds: int) -> None:
    if "product" in kinds:
        print("| products of one row | GB/s | of what can be read | ONNX Runtime, GB/s | faster |")
        print("|---|---:|---:|---:|---:|")
        for bits in (4, 8):
            case, size = f"product:{bits}", quantized_products(bits)[1]
            pairs = [("ours", case), ("theirs", case), ("read", str(size))]
            own, other, limit = in_turns(folder, pairs, threads, rounds)
            speeds = f"{size / own / 1e9:.1f} | {size / own / limit:.0%} | {size / other / 1e9:.1f}"
            print(f"| int{bits} | {speeds} | {other / own:.1f} times |", flush=True)
        print()
    if "decoder" in kinds:
        print("| a token, cache of 2048 | ms | GB/s of weights and caches | of what can be read |")
        print("|---|---:|---:|---:|")
        size = decoder.size()
        contenders = [("ours", f"decoder:{name}") for name in DECODERS]
        contenders += [("theirs", "decoder:in place"), ("read", str(size))]
        *found, limit = in_turns(folder, contenders, threads, rounds)
        for label, own in zip(("caches in place", "caches copied", "PyTorch, in place"), found, strict=True):
            print(f"| {label} | {1e3 * own:.2f} | {size / own / 1e9:.1f} | {size / own / limit:.0%} |")
        print(flush=True)
    if "attention" in kinds:
        print("| attention | ms | PyTorch, ms | faster | GB/s of keys and values |")
        print("|---|---:|---:|---:|---:|")
        for name, (_, shared, _, keys, size, _) in ATTENTIONS.items():
            case = f"attention:{name}"
            own, other = in_turns(folder, [("ours", case), ("theirs", case)], threads, rounds)
            speed = 8 * shared * keys * size / own / 1e9
            print(
                f"| {name} | {1e3 * own:.2f} | {1e3 * other:.2f} | {other / own:.2f} times | {speed:.0f} |",
                flush=True,
            )
        print()
    if "model" in kinds:
        print("| model | float32, ms | float16, ms | float16 is faster |")
        print("|---|---:|---:|---:|")
        for name in MODELS:
            pairs = [("ours", f"model:{name}/{dtype}") for dtype in ("float32", "float16")]
            wide, half = in_turns(folder, pairs, threads, rounds)
            print(f"| {name} | {1e3 * wide:.2f} | {1e3 * half:.2f} | {wide / half:.2f} times |", flush=True)


if __name__ == "__main__":
    main()
