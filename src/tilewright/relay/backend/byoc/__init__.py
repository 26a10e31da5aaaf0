"""Bring your own code generator: parts of a graph that others compile, in the one artefact."""

from tilewright.codegen.c.source_module import C_PRELUDE, CSourceModule
from tilewright.relay.backend.byoc.external import ExternalCode, compile_external
from tilewright.relay.backend.byoc.json_serializer import JSONSerializer, call_attributes, json_compiler
from tilewright.relay.backend.byoc.symbols import external_functions, external_symbol

__all__ = [
    "CSourceModule",
    "C_PRELUDE",
    "ExternalCode",
    "JSONSerializer",
    "call_attributes",
    "compile_external",
    "external_functions",
    "external_symbol",
    "json_compiler",
]
