"""Helpers for tests of TensorFlow models. TensorFlow is imported when one of them is called."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any, Final

from tilewright.relay.frontend.tensorflow.package import tensorflow_package
from tilewright.runtime.ndarray import NDArray

_CLASS: Final = re.compile(r'target_class:\s*(\d+)\s+target_class_string:\s*"([^"]+)"')
"""A class of a label map, and the name of its synset."""


def convert_to_list(x: Any) -> list[Any]:
    """A list, or a list of one."""
    return x if isinstance(x, list) else [x]


def ProcessGraphDefParam(graph_def: Any) -> Any:
    """A graph; the bytes of one are parsed."""
    proto = tensorflow_package().compat.v1.GraphDef
    if isinstance(graph_def, proto):
        return graph_def
    parsed = proto()
    parsed.CopyFrom(graph_def)
    return parsed


def AddShapesToGraphDef(session: Any, out_node: Any) -> Any:
    """The frozen graph of a session, with the shapes of all outputs of nodes."""
    graph_def = session.graph.as_graph_def(add_shapes=True)
    freeze = tensorflow_package().compat.v1.graph_util.convert_variables_to_constants
    return freeze(session, graph_def, convert_to_list(out_node))


def vmobj_to_list(o: Any) -> list[Any]:
    """The tensors of a result of the virtual machine, whatever they are nested in, as arrays."""
    if isinstance(o, NDArray):
        return [o.numpy()]
    return [one for part in o for one in vmobj_to_list(part)]


class NodeLookup:
    """The words for the classes of a model of ImageNet, from the files that come with TensorFlow's Inception.

    One maps classes to names of synsets (``target_class``, ``target_class_string``), the other these to words, a line
    each, behind a tab.
    """

    def __init__(
        self,
        label_lookup_path: str | os.PathLike[str],
        uid_lookup_path: str | os.PathLike[str],
    ) -> None:
        self.node_lookup = self.load(label_lookup_path, uid_lookup_path)

    def load(
        self, label_lookup_path: str | os.PathLike[str], uid_lookup_path: str | os.PathLike[str]
    ) -> dict[int, str]:
        """The words by class."""
        lines = Path(uid_lookup_path).read_text(encoding="utf-8").splitlines()
        pairs = (line.split("\t", 1) for line in lines if "\t" in line)
        words = {name.strip(): word.strip() for name, word in pairs}
        labels = Path(label_lookup_path).read_text(encoding="utf-8")
        return {int(number): words[name] for number, name in _CLASS.findall(labels) if name in words}

    def id_to_string(self, node_id: int) -> str:
        """The words for a class; nothing for one that has none."""
        return self.node_lookup.get(node_id, "")
