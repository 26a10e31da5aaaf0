"""The runtime of parts that oneDNN computes."""

from __future__ import annotations

from collections.abc import Sequence
from ctypes import c_void_p

from tilewright.runtime.external.json_runtime import JSONRuntime, register_json_runtime
from tilewright.runtime.external.onednn.library import library
from tilewright.runtime.external.onednn.nodes import MAKERS
from tilewright.runtime.external.onednn.program import Program, Tensor
from tilewright.runtime.failure import failure
from tilewright.runtime.ndarray import NDArray


@register_json_runtime
class OneDNNRuntime(JSONRuntime):
    """A part of a model as oneDNN's primitives, made before the first run."""

    backend = "onednn"

    def prepare(self) -> None:
        """Make the primitives, and pack the weights."""
        program = Program(library())
        graph = self.graph
        last_use = {entry: number for number, node in enumerate(graph.nodes) for entry in node.inputs}
        last_use |= {entry: len(graph.nodes) for entry in graph.outputs}
        made: list[Tensor] = []
        self._inputs: list[Tensor] = []
        for number, node in enumerate(graph.nodes):
            if node.op == "input":
                made.append(program.given(node.shapes[0], program.plain(node.shapes[0])))
                self._inputs.append(made[-1])
            elif node.op == "const":
                made.append(program.constant(self.constants[node.name].numpy()))
            else:
                try:
                    make = MAKERS[str(node.attrs["primitive"])]
                    made.append(make(program, node, [made[entry[0]] for entry in node.inputs]))
                except (KeyError, IndexError, TypeError) as error:
                    raise failure(
                        "ValueError", f"onednn: node {number} ({node.name}) is wrong: {error!r}"
                    ) from error
                program.end_node(made[-1])
                for entry in dict.fromkeys(node.inputs):
                    if last_use[entry] == number:
                        self._release(program, made, entry[0], last_use)
        self._outputs = [self._output(program, made[entry[0]]) for entry in graph.outputs]
        self._program = program

    @staticmethod
    def _release(
        program: Program, made: list[Tensor], number: int, last_use: dict[tuple[int, int], int]
    ) -> None:
        """Free the memory of a tensor, unless a view of it is read later."""
        memory = made[number].memory.value
        viewed = any(
            other.memory.value == memory and last_use.get((at, 0), -1) > last_use[(number, 0)]
            for at, other in enumerate(made)
        )
        if not viewed:
            for other in made:
                if other.memory.value == memory:
                    program.release(other)

    @staticmethod
    def _output(program: Program, source: Tensor) -> Tensor:
        """Memory of the caller's, filled from a tensor in the end."""
        result = program.given(source.dims, program.plain(source.dims))
        program.reorder(source, result)
        return result

    def compute(self, inputs: Sequence[NDArray], outputs: Sequence[NDArray]) -> None:
        """Run on the caller's memory."""
        dnnl = self._program.dnnl
        for tensor, array in zip([*self._inputs, *self._outputs], [*inputs, *outputs], strict=True):
            dnnl.call("memory_set_data_handle", tensor.memory, c_void_p(array.memory_range().start))
        self._program.run()
