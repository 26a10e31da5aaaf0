"""How well the estimate of a product's time on tensor cores chooses its tiles.

    python bench/gpu_tilings.py [--tilings 28] [--output tilings.json]

Each product is built with the tilings of the least estimated times, one for each shape of a tile, and measured in a
CUDA graph. The table has the chosen tiling beside the best, and PyTorch's time (cuBLAS); the JSON file has all of them,
which is what the constants in schedule/gpu/tensor_core/tiling.py come from.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import tempfile
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from gpu_products import graph_time, kernel_time, torch_side

PRODUCTS = (
    *((size, size, size) for size in (512, 1024, 2048, 4096)),
    *((128, 768, 768), (128, 3072, 768), (128, 768, 3072), (128, 2304, 768)),
    *((4096, 768, 768), (4096, 3072, 768), (4096, 768, 3072), (4096, 2304, 768)),
    *(
        (197, 768, 768),
        (197, 3072, 768),
        (6304, 768, 768),
        (6304, 3072, 768),
        (6304, 768, 3072),
        (6304, 2304, 768),
    ),
    *((3136, 256, 64), (784, 512, 128), (196, 1024, 256), (49, 2048, 512), (49, 512, 2048)),
    *((25088, 128, 512), (6272, 1024, 256), (6272, 256, 1024), (1568, 2048, 512), (1568, 512, 2048)),
)
"""Rows, columns and depth: squares, the layers of BERT and ViT, and the 1 x 1 convolutions of ResNet-50."""


def tilings(shape: tuple[int, int, int], count: int) -> list[tuple[tuple[int, ...], float]]:
    """The sizes of the tilings to try, with their estimated cycles, the best first. Those whose blocks share the depth
    are not among them: they need memory, which cannot be had while a graph is captured."""
    import tilewright as tvm
    from tilewright import te
    from tilewright.schedule.gpu.tensor_core import tiling as model
    from tilewright.schedule.gpu.tensor_core.factors import find_product
    from tilewright.target.gpu import describe_gpu
    from tilewright.te.schedule.auto_inline import auto_inline_injective

    _, output = expression(shape)
    schedule = te.create_schedule(output.op)
    auto_inline_injective(schedule)
    found = [
        find_product(one.op) for one in schedule.normalize().stages if getattr(one.op, "reduce_axis", ())
    ]
    product = found[0]
    assert product is not None
    gpu = describe_gpu(tvm.target.Target("cuda"))
    possible = model.ranked_tilings(product, gpu)[: model.TUNED_TILINGS]
    ranked = [one for one in possible if one.splits == 1][:count]
    return [(one.sizes, model.estimated_cycles(one, product, gpu)) for one in ranked]


def expression(shape: tuple[int, int, int]) -> tuple[list[Any], Any]:
    """A dense layer of float16."""
    from tilewright import te, topi

    rows, columns, depth = shape
    inputs = [te.placeholder(one, "float16") for one in ((rows, depth), (columns, depth))]
    return inputs, topi.nn.dense(*inputs, None, "float16")


def build(case: tuple[tuple[int, int, int], tuple[int, ...], str]) -> str | None:
    """Compile one tiling of a product in a process of its own; the library's path."""
    import tilewright as tvm
    from tilewright.schedule import schedule
    from tilewright.schedule.decisions import Decisions

    shape, sizes, folder = case
    target = tvm.target.Target("cuda")
    inputs, output = expression(shape)
    with target, Decisions({"tensor_core_tile": sizes}):
        made = schedule([output], target)
    path = str(Path(folder) / f"{'x'.join(map(str, shape))}_{'_'.join(map(str, sizes))}.so")
    tvm.build(made, [*inputs, output], target, name="kernel").export_library(path)
    return path


def shape_of(text: str) -> tuple[int, int, int]:
    """Rows, columns and depth of a product that is written as 1024x1024x1024."""
    rows, columns, depth = map(int, text.split("x"))
    return rows, columns, depth


def main() -> None:
    """Build all, measure one by one, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tilings", type=int, default=28, help="how many to try for each product")
    parser.add_argument(
        "--products", help="rows, columns and depth of some, such as 1024x1024x1024,128x768x768"
    )
    parser.add_argument("--output", type=Path, help="a JSON file for all times")
    options = parser.parse_args()
    products = PRODUCTS
    if options.products:
        products = tuple([shape_of(one) for one in options.products.split(",")])
    measured, losses, ratios = [], [], []
    with tempfile.TemporaryDirectory() as folder, ProcessPoolExecutor(os.cpu_count()) as pool:
        tried = dict(
            zip(products, pool.map(tilings, products, [options.tilings] * len(products)), strict=True)
        )
        cases = [(shape, sizes, folder) for shape, all_sizes in tried.items() for sizes, _ in all_sizes]
        paths = dict(zip([case[:2] for case in cases], pool.map(build, cases), strict=True))
        print("| product | chosen | us | best | us | PyTorch us | ratio |\n|---|---|---|---|---|---|---|")
        for shape, all_sizes in tried.items():
            inputs, run, _ = torch_side("product", shape)
            expected = run()
            theirs = graph_time(run)
            rows = []
            for sizes, cycles in all_sizes:
                try:
                    time = kernel_time(paths[shape, sizes], inputs, expected)
                except SystemExit as problem:
                    print(sizes, problem)
                    continue
                rows.append({"shape": shape, "sizes": sizes, "cycles": cycles, "us": time, "torch": theirs})
            measured += rows
            if not rows:
                continue
            chosen, best = rows[0], min(rows, key=lambda row: row["us"])
            losses.append(chosen["us"] / best["us"])
            ratios.append(theirs / chosen["us"])
            sizes = "x".join(map(str, shape))
            print(
                f"| {sizes} | {chosen['sizes']} | {chosen['us']:.2f} | {best['sizes']} | {best['us']:.2f} "
                f"| {theirs:.2f} | {ratios[-1]:.2f} |",
                flush=True,
            )
    for name, values in (("chosen over best", losses), ("cuBLAS over chosen", ratios)):
        print(f"{name}: geometric mean {math.exp(sum(map(math.log, values)) / len(values)):.3f}")
    if options.output:
        options.output.write_text(json.dumps(measured) + "\n")


if __name__ == "__main__":
    main()
