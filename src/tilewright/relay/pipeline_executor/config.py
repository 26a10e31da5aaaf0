"""How the stages of a pipeline are connected, and what each is built for.

``config[module]["output"][0].connect(config[other]["input"]["x"])`` connects two stages; ``config["input"]["x"]`` and
``config["output"]["0"]`` are those of the pipeline as a whole. A stage's ``target``, ``dev``, ``params``, ``mod_name``,
``target_host`` and ``build_func`` say how it is built.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilewright.ir.module import IRModule
from tilewright.ir.type import TupleType
from tilewright.relay.function import Function
from tilewright.relay.infer import infer_module
from tilewright.support.errors import TilewrightError


class Binding:
    """One end of a connection: an input or output of a stage, or of the pipeline (``stage`` is None)."""

    def __init__(self, config: PipelineConfig, stage: Stage | None, direction: str, name: str | int) -> None:
        self.config = config
        self.stage = stage
        self.direction = direction
        self.name = name
        self.targets: list[Binding] = []
        self.source: Binding | None = None

    def __repr__(self) -> str:
        owner = "the pipeline" if self.stage is None else f"stage {self.config.stages.index(self.stage)}"
        return f"{self.direction} {self.name} of {owner}"

    def connect(self, binding: Binding) -> None:
        """Let the values of this end go to another."""
        if not isinstance(binding, Binding) or binding.config is not self.config:
            raise TilewrightError(
                f"{self} can be connected to an end of the same configuration, not {binding!r}"
            )
        if (self.stage is None) != (self.direction == "input"):
            raise TilewrightError(
                f"{self} gives no values: connect outputs of stages and inputs of the pipeline"
            )
        if (binding.stage is None) != (binding.direction == "output"):
            raise TilewrightError(
                f"{binding} takes no values: connect to inputs of stages and outputs of the pipeline"
            )
        if self.stage is None and binding.stage is None:
            raise TilewrightError(f"{self} and {binding} have no stage between them")
        if binding.source is not None:
            raise TilewrightError(f"{binding} is connected to {binding.source} already")
        if self.stage is not None and self.stage is binding.stage:
            raise TilewrightError(f"{self} and {binding} are of one stage: it would wait for itself")
        self.targets.append(binding)
        binding.source = self
        try:
            self.config.dag_topology_sort()
        except TilewrightError:
            self.targets.pop()
            binding.source = None
            raise


class _Ends:
    """Inputs or outputs by name, made when they are first asked for."""

    def __init__(self, make: Callable[[Any], Binding]) -> None:
        self.make = make
        self.made: dict[Any, Binding] = {}

    def __getitem__(self, name: Any) -> Binding:
        if name not in self.made:
            self.made[name] = self.make(name)
        return self.made[name]


class Stage:
    """A stage: a module, its ends, and how it is built."""

    def __init__(self, config: PipelineConfig, module: IRModule) -> None:
        main = infer_module(module)["main"]
        assert isinstance(main, Function)
        result = main.checked_type.ret_type
        self.module = module
        self.target: Any = None
        self.target_host: Any = None
        self.dev: Any = None
        self.params: Any = None
        self.mod_name = "default"
        self.build_func: Any = None
        self.input_names = [parameter.name_hint for parameter in main.params]
        self.num_outputs = len(result.fields) if isinstance(result, TupleType) else 1

        def make_input(name: Any) -> Binding:
            if name not in self.input_names:
                raise TilewrightError(
                    f"the stage has no input {name!r}; its inputs are {', '.join(self.input_names)}"
                )
            return Binding(config, self, "input", name)

        def make_output(index: Any) -> Binding:
            if not isinstance(index, int) or not 0 <= index < self.num_outputs:
                raise TilewrightError(f"the stage has no output {index!r}; it has {self.num_outputs}")
            return Binding(config, self, "output", index)

        self.ends = {"input": _Ends(make_input), "output": _Ends(make_output)}

    def __getitem__(self, key: str) -> _Ends:
        if key not in self.ends:
            raise TilewrightError(f"a stage has 'input' and 'output', not {key!r}")
        return self.ends[key]

    def needed(self) -> list[Stage]:
        """The stages whose outputs it takes."""
        sources = [one.source for one in self.ends["input"].made.values()]
        return [one.stage for one in sources if one is not None and one.stage is not None]


class PipelineConfig:
    """Stages by their modules, and how they are connected."""

    def __init__(self) -> None:
        self.by_module: dict[IRModule, Stage] = {}
        self._ends = {
            "input": _Ends(lambda name: Binding(self, None, "input", str(name))),
            "output": _Ends(self._make_output),
        }

    def _make_output(self, index: Any) -> Binding:
        if not str(index).isdigit():
            raise TilewrightError(f"the outputs of a pipeline are numbered, and {index!r} is not a number")
        return Binding(self, None, "output", int(index))

    @property
    def stages(self) -> list[Stage]:
        """The stages in the order in which they were named."""
        return list(self.by_module.values())

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, str):
            if key not in self._ends:
                raise TilewrightError(f"a pipeline has 'input', 'output' and modules, not {key!r}")
            return self._ends[key]
        if not isinstance(key, IRModule):
            raise TilewrightError(f"a stage is found by its module, not by a {type(key).__name__}")
        if key not in self.by_module:
            self.by_module[key] = Stage(self, key)
        return self.by_module[key]

    def pipe_input(self, name: str) -> Binding:
        """An input of the pipeline."""
        return self._ends["input"][name]

    def pipe_output(self, idx: Any) -> Binding:
        """An output of the pipeline."""
        return self._ends["output"][str(idx)]

    def dag_topology_sort(self) -> list[IRModule]:
        """The modules, each after those whose outputs it takes; a cycle is an error."""
        done: list[Stage] = []
        waiting = self.stages
        while waiting:
            ready = [stage for stage in waiting if all(one in done for one in stage.needed())]
            if not ready:
                raise TilewrightError("the connections of the pipeline form a cycle")
            done.append(ready[0])
            waiting.remove(ready[0])
        return [stage.module for stage in done]

    def get_mod_idx(self, mod: IRModule) -> int:
        """The number of a stage, in the order of ``dag_topology_sort``."""
        return self.dag_topology_sort().index(mod)

    def input_connections(self) -> dict[str, list[tuple[int, str]]]:
        """Where each input of the pipeline goes: numbers of stages, and names of their inputs."""
        found = {}
        for name, end in self._ends["input"].made.items():
            places = [(one.stage, str(one.name)) for one in end.targets]
            found[str(name)] = [
                (self.get_mod_idx(stage.module), place) for stage, place in places if stage is not None
            ]
        return found

    def get_config(self) -> dict[IRModule, dict[str, Any]]:
        """For each module: its number, where its outputs go, and how it is built."""
        numbers = {module: number for number, module in enumerate(self.dag_topology_sort())}
        for name, end in self._ends["output"].made.items():
            if end.source is None:
                raise TilewrightError(f"output {name} of the pipeline is not connected to a stage")
        made = {}
        for module in numbers:
            stage = self.by_module[module]
            outputs = []
            for index, end in sorted(stage.ends["output"].made.items()):
                places = [
                    {"global_output_index": int(one.name)}
                    if one.stage is None
                    else {"mod_idx": numbers[one.stage.module], "input_name": one.name}
                    for one in end.targets
                ]
                outputs.append({"output_idx": index, "dependencies": places})
            made[module] = {
                "pipeline": {"mod_idx": numbers[module], "output": outputs},
                "target_host": stage.target_host,
                "mod_name": stage.mod_name,
                "build": stage.build_func,
                "params": stage.params,
                "target": stage.target,
                "dev": stage.dev,
            }
        return made
