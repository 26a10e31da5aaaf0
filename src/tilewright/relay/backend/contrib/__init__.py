"""Code generators for parts of a program, registered as ``relay.ext.<name>``."""

from tilewright.relay.backend.contrib import ccompiler, onednn, onnxruntime, openblas
