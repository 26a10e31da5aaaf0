"""The code generator "openblas": parts of a model that are matrix products."""

from __future__ import annotations

from tilewright.relay.backend.byoc.json_serializer import json_compiler
from tilewright.relay.op.contrib.openblas import BACKEND
from tilewright.runtime.external.openblas import OpenBLASRuntime
from tilewright.runtime.registry import register_func

compile_function = register_func(f"relay.ext.{BACKEND.name}")(json_compiler(OpenBLASRuntime))
