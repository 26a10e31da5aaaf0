"""Bring your own code generator: parts of a graph that others compile, in the one artefact."""

from tilewright.codegen.c.source_module import C_PRELUDE, CSourceModule
from tilewright.relay.backend.byoc.choose import choose_fastest, take_all
from tilewright.relay.backend.byoc.json_serializer import JSONSerializer, call_attributes, json_compiler
from tilewright.relay.backend.byoc.partition import partition_for, put_back
from tilewright.relay.backend.byoc.report import Part, Partition
from tilewright.relay.backend.external.code import ExternalCode, compile_external
from tilewright.relay.backend.external.symbols import external_functions, external_symbol

__all__ = [
    "CSourceModule",
    "C_PRELUDE",
    "ExternalCode",
    "JSONSerializer",
    "Part",
    "Partition",
    "call_attributes",
    "choose_fastest",
    "compile_external",
    "external_functions",
    "external_symbol",
    "json_compiler",
    "partition_for",
    "put_back",
    "take_all",
]
