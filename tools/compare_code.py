"""Compare the code that two source trees make of the same models, kernel by kernel.

    python tools/compare_code.py BEFORE/src AFTER/src model.onnx [model.onnx ...] [--target llvm] [--level 3]

A refactoring must not change the code. Each tree compiles each model in a process of its own, without the cache; the
optimised LLVM IR of every kernel is compared. Prints the kernels that differ, and writes both texts where
``--keep FOLDER`` says. The exit status is 1 if anything differs.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

_CHILD = """
import json, sys
import tilewright as tvm
from tilewright import relay
model, target, level, output = sys.argv[1:5]
module, params = relay.frontend.from_onnx(model)
with tvm.transform.PassContext(opt_level=int(level)):
    library = relay.build(module, target, params=params)
code = library.get_lib()
names = sorted(name for name in code.function_names if name != "default")
texts = {name: code.get_function_source(name, "ll") for name in names}
with open(output, "w") as file:
    json.dump({"graph": library.get_graph_json(), **texts}, file)
"""


def kernels_of(tree: Path, model: Path, target: str, level: int, output: Path) -> dict[str, str]:
    """The LLVM IR of each kernel that a tree makes of a model, by name, with the graph that calls them."""
    environment = {**os.environ, "PYTHONPATH": str(tree.resolve()), "TILEWRIGHT_NO_CACHE": "1"}
    command = [sys.executable, "-c", _CHILD, str(model), target, str(level), str(output)]
    subprocess.run(command, env=environment, check=True)
    found: dict[str, str] = json.loads(output.read_text())
    return found


def main() -> int:
    """Compare all models, and say what differs."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path)
    parser.add_argument("models", type=Path, nargs="+")
    parser.add_argument("--target", default="llvm")
    parser.add_argument("--level", type=int, default=3)
    parser.add_argument("--keep", type=Path, default=Path("build/compare_code"))
    arguments = parser.parse_args()
    arguments.keep.mkdir(parents=True, exist_ok=True)
    different = 0
    for model in arguments.models:
        texts = [
            kernels_of(
                tree, model, arguments.target, arguments.level, arguments.keep / f"{model.stem}.{side}.json"
            )
            for side, tree in (("before", arguments.before), ("after", arguments.after))
        ]
        before, after = texts
        changed = [name for name in before if name in after and before[name] != after[name]]
        gone, new = [sorted(one.keys() - other.keys()) for one, other in ((before, after), (after, before))]
        different += len(changed) + len(gone) + len(new)
        print(
            f"{model.stem}: {len(before) - 1} kernels, {len(changed)} changed, {len(gone)} gone, {len(new)} new"
        )
        for label, names in (("changed", changed), ("gone", gone), ("new", new)):
            for name in names:
                print(f"  {label}: {name}")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
