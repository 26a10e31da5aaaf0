"""Measure functions on every one of the 2**32 float32 numbers: ``python tests/codegen/llvm/math/sweep.py exp log
...``.

Takes one to three minutes a function on one core, so it is not part of the test suite. Prints the largest error
found in units in the last place, where it is, and the stated bound; exits with 1 if a bound is broken.
"""

from __future__ import annotations

import sys

import numpy as np
import scipy.special

from tilewright.codegen import build
from tilewright.codegen.llvm.math.library import FUNCTIONS
from tilewright.ir.expr import Call, Load, Ramp, Var
from tilewright.ir.module import IRModule
from tilewright.runtime.module import Module
from tilewright.target.target import Target
from tilewright.tir.buffer import decl_buffer
from tilewright.tir.function import PrimFunc
from tilewright.tir.stmt import For, ForKind, Store
from tilewright.tir.transform.lower_tvm_builtin import LowerTVMBuiltin
from tilewright.tir.transform.make_packed_api import MakePackedAPI

CHUNK = 1 << 22
LANES = 16
REFERENCES = {
    "sigmoid": scipy.special.expit, "erf": scipy.special.erf, "rsqrt": lambda x: 1 / np.sqrt(x),
    "exp10": lambda x: np.power(10.0, x), "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan,
    "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh,
}  # fmt: skip


def compile_function(name: str, target: str) -> Module:
    """y[i] = name(x[i]) over arrays of ``CHUNK`` numbers."""
    x, y = (decl_buffer((CHUNK,), "float32", label, data_alignment=4) for label in "xy")
    i = Var("i")
    index = Ramp(i * LANES, 1, LANES)
    kind = f"float32x{LANES}"
    store = Store(y.data, Call(kind, f"tir.{name}", [Load(kind, x.data, index)]), index)
    attrs = {"global_symbol": name, "tir.noalias": True, "target": Target(target)}
    function = PrimFunc([x, y], For(i, 0, CHUNK // LANES, ForKind.SERIAL, store), attrs=attrs)
    return build(LowerTVMBuiltin()(MakePackedAPI()(IRModule({name: function}))), target)


def sweep(name: str, target: str) -> bool:
    """Print the largest error; True if it is within the bound."""
    run, exact_of = compile_function(name, target)[name], REFERENCES.get(name) or getattr(np, name)
    worst, place, got = 0.0, 0.0, np.zeros(CHUNK, np.float32)
    for start in range(0, 1 << 32, CHUNK):
        x = np.arange(start, start + CHUNK, dtype=np.uint64).astype(np.uint32).view(np.float32)
        run(x, got)
        with np.errstate(all="ignore"):
            exact = exact_of(x.astype(np.float64))
            near = exact.astype(np.float32)
            unit = np.spacing(np.minimum(np.abs(near), np.finfo(np.float32).max))
            distance = np.abs(got.astype(np.float64) - exact) / unit
        same = (np.isnan(got) & np.isnan(exact)) | (np.isinf(near) & (got == near))
        distance[same] = 0
        distance[np.isnan(distance)] = np.inf
        largest = int(np.argmax(distance))
        if distance[largest] > worst:
            worst, place = float(distance[largest]), float(x[largest])
    bound = FUNCTIONS[name].single_ulp
    sys.stdout.write(f"{name:8s} {worst:.4f} ulp at {place!r}; stated {bound}\n")
    sys.stdout.flush()
    return worst <= bound


if __name__ == "__main__":
    names = sys.argv[1:] or [n for n, f in FUNCTIONS.items() if f.arguments == 1 and not f.result]
    kept = [sweep(name, "llvm") for name in names]
    sys.exit(0 if all(kept) else 1)
