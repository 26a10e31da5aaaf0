"""The contents of a model or a package."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

from tilewright.driver.tvmc.errors import TVMCException
from tilewright.driver.tvmc.frontends import load_model
from tilewright.driver.tvmc.model import TVMCPackage
from tilewright.driver.tvmc.tensors import module_inputs, module_outputs
from tilewright.ir.op import Op
from tilewright.relay.analysis import get_total_mac_number, post_order_visit
from tilewright.relay.expr import Call
from tilewright.relay.frontend.common import Unsupported
from tilewright.relay.frontend.registry import find_frontend, guess_frontend
from tilewright.runtime.vm import Executable
from tilewright.support.errors import TilewrightError

NOTHING_TO_RUN = "__nop"
"""The graph's function name for a pure reshape."""


def unsupported_operators(path: str, model_format: str | None = None) -> list[Unsupported]:
    """The operators of a model that cannot be imported, with the nodes that use them."""
    if not Path(path).is_file():
        raise TVMCException(f"there is no model {path}")
    frontend = find_frontend(model_format) if model_format else guess_frontend(path)
    if frontend.list_unsupported is None:
        raise TVMCException(
            f"the frontend {frontend.name!r} cannot list what it does not support: import the model, and read the error"
        )
    return list(frontend.list_unsupported(path))


def inspect_model(
    path: str, model_format: str | None = None, shapes: dict[str, Any] | None = None
) -> dict[str, Any]:
    """Inputs, outputs, operators and parameters of a model, as they are after import."""
    model = load_model(path, model_format, shapes)
    main = model.mod["main"]
    operators: Counter[str] = Counter()

    def count(expr: Any) -> None:
        if isinstance(expr, Call):
            operators[expr.op.name if isinstance(expr.op, Op) else "call"] += 1

    post_order_visit(main, count)
    sizes = [value.numpy() for value in model.params.values()]
    found: dict[str, Any] = {
        "file": path,
        "kind": "model",
        "bytes": Path(path).stat().st_size,
        "inputs": [one.as_json() for one in module_inputs(model.mod, model.params)],
        "outputs": [one.as_json() for one in module_outputs(model.mod)],
        "operators": dict(operators.most_common()),
        "parameters": {
            "tensors": len(sizes),
            "elements": int(sum(one.size for one in sizes)),
            "bytes": int(sum(one.nbytes for one in sizes)),
        },
    }
    try:
        found["multiply_accumulates"] = int(get_total_mac_number(main))
    except (TilewrightError, TypeError, ValueError):
        found["multiply_accumulates"] = None  # sizes that are not known have no number
    return found


def inspect_package(path: str) -> dict[str, Any]:
    """Executor, target, inputs, outputs, kernels, parameters and memory of a package."""
    package = TVMCPackage(path)
    content = package.content
    kernels: Counter[str] = Counter()
    if content.graph is not None:
        for node in json.loads(content.graph)["nodes"]:
            name = node.get("attrs", {}).get("func_name", NOTHING_TO_RUN)
            if name != NOTHING_TO_RUN:
                kernels[name] += 1
    constants = [value.numpy().nbytes for value in content.params.values()]
    if content.executor == "vm":
        program = Executable(package.load_library()).program
        kernels.update(one.name for one in program.kernels)
        constants = [value.numpy().nbytes for value in program.constants]
    return {
        "file": path,
        "kind": "package",
        "bytes": Path(path).stat().st_size,
        "format": content.kind,
        "executor": content.executor,
        "target": content.target,
        "name": content.name,
        "inputs": [one.as_json() for one in content.inputs],
        "outputs": [one.as_json() for one in content.outputs],
        "kernels": dict(kernels.most_common()),
        "parameters": {"tensors": len(constants), "bytes": int(sum(constants))},
        "workspace_bytes": content.workspace_bytes,
        "library": content.library_name,
        "library_bytes": len(content.library) or Path(path).stat().st_size,
    }
