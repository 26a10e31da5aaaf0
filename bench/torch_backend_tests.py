"""PyTorch's tests of TorchDynamo's backends, with this backend in the place of those that they name.

Run it:  python bench/torch_backend_tests.py PYTORCH/test/dynamo/test_backends.py [more files] [-k part_of_a_name]

The files are in PyTorch's repository, not in its package. Whatever compiles with "eager", "aot_eager", "ts" or
"inductor" in them, by name or by default, is compiled by this backend; "tvm" is PyTorch's own backend of that name,
over this package. Prints the failures and counts.
"""

from __future__ import annotations

import argparse
import functools
import importlib.util
import sys
import unittest
from pathlib import Path
from typing import Any

import torch
import torch._dynamo.backends.registry as registry

import tilewright.as_tvm
from tilewright.driver.torch_backend import tilewright

REPLACED = frozenset(
    {"eager", "eager_noexcept", "aot_eager", "aot_eager_decomp_partition", "ts", "aot_ts", "inductor"}
)


def replace_backends() -> None:
    """From here on the names of PyTorch's backends stand for this one."""
    compile, lookup = torch.compile, registry.lookup_backend

    @functools.wraps(compile)
    def compiled(*args: Any, backend: Any = "inductor", **options: Any) -> Any:
        chosen = tilewright if isinstance(backend, str) and backend in REPLACED else backend
        return compile(*args, backend=chosen, **options)

    @functools.wraps(lookup)
    def found(name: Any) -> Any:
        return tilewright if isinstance(name, str) and name in REPLACED else lookup(name)

    torch.compile = compiled
    for module in list(sys.modules.values()):
        if getattr(module, "lookup_backend", None) is lookup:
            module.lookup_backend = found  # type: ignore[attr-defined]


def tests_of(path: Path, part: str) -> unittest.TestSuite:
    """The tests of a file whose names contain something."""
    description = importlib.util.spec_from_file_location(path.stem, path)
    assert description is not None and description.loader is not None
    module = importlib.util.module_from_spec(description)
    sys.modules[path.stem] = module
    description.loader.exec_module(module)
    loader = unittest.TestLoader()
    loader.testNamePatterns = [f"*{part}*"]
    return loader.loadTestsFromModule(module)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("-k", default="", help="a part of the tests' names")
    options = parser.parse_args()
    sys.argv = sys.argv[:1]
    suite = unittest.TestSuite(tests_of(path, options.k) for path in options.files)
    replace_backends()
    result = unittest.TextTestRunner(verbosity=2).run(suite)
    wrong = len(result.failures) + len(result.errors)
    print(
        f"{result.testsRun - wrong - len(result.skipped)} passed, {wrong} failed, {len(result.skipped)} skipped"
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
