"""ONNX Runtime as the runtime of parts of a model: each is an ONNX model, run by a session of its own."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from typing import Any

import numpy as np

from tilewright.runtime.external.json_runtime import JSONRuntime, register_json_runtime
from tilewright.runtime.failure import failure
from tilewright.runtime.ndarray import NDArray
from tilewright.runtime.threads import num_threads

MODEL = "model"
"""The name of the constant that is the ONNX model's bytes."""


def is_available() -> bool:
    """True if the package is installed."""
    return importlib.util.find_spec("onnxruntime") is not None


@register_json_runtime
class ONNXRuntime(JSONRuntime):
    """A part of a model that ONNX Runtime computes."""

    backend = "onnxruntime"

    def prepare(self) -> None:
        """Make the session."""
        try:
            import onnxruntime
        except ImportError as missing:
            raise failure(
                "OSError", "ONNX Runtime was not found: pip install 'tilewright[onnxruntime]' installs it"
            ) from missing
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = num_threads()
        # Its threads would wait actively for the next part, and take the cores from the code in between.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        options.log_severity_level = 3
        content = self.constants[MODEL].numpy().tobytes()
        self._session: Any = onnxruntime.InferenceSession(content, options, ["CPUExecutionProvider"])
        self._inputs = [one.name for one in self._session.get_inputs()]
        self._outputs = [one.name for one in self._session.get_outputs()]

    def compute(self, inputs: Sequence[NDArray], outputs: Sequence[NDArray]) -> None:
        """Run on the caller's memory: results are written where they belong."""
        binding = self._session.io_binding()
        for name, value in zip(self._inputs, inputs, strict=True):
            self._bind(binding.bind_input, name, value)
        for name, value in zip(self._outputs, outputs, strict=True):
            self._bind(binding.bind_output, name, value)
        self._session.run_with_iobinding(binding)

    @staticmethod
    def _bind(bind: Any, name: str, value: NDArray) -> None:
        address = value.memory_range().start
        bind(name, "cpu", 0, np.dtype(str(value.dtype)), list(value.shape), address)
