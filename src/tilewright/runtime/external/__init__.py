"""Modules of other code generators: the JSON form of a part of a model, and what runs it."""

from tilewright.runtime.external.const_loader import ConstLoader
from tilewright.runtime.external.json_graph import JSONGraph, JSONNode
from tilewright.runtime.external.json_runtime import JSONRuntime, register_json_runtime

__all__ = ["ConstLoader", "JSONGraph", "JSONNode", "JSONRuntime", "register_json_runtime"]
