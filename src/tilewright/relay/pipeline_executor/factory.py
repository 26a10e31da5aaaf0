"""Building the stages of a pipeline, and storing what was built."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tilewright.contrib.graph_executor import GraphModule
from tilewright.ir.module import IRModule
from tilewright.relay.build_module import build as build_stage
from tilewright.relay.pipeline_executor.config import PipelineConfig
from tilewright.runtime.device import Device, cpu
from tilewright.support.cbuild import write_bytes
from tilewright.support.errors import TilewrightError

CONFIG_NAME = "pipeline.json"


def pipeline_executor_enabled() -> bool:
    """True: the pipeline executor is part of every installation."""
    return True


def build(
    pipe_configs: PipelineConfig | Mapping[IRModule, Mapping[str, Any]],
) -> PipelineExecutorFactoryModule:
    """Build every stage of a configuration, or of what its ``get_config`` gives.

    Inputs of stages that nothing is connected to are inputs of the pipeline, of the same name.
    """
    is_config = isinstance(pipe_configs, PipelineConfig)
    described = pipe_configs.get_config() if isinstance(pipe_configs, PipelineConfig) else pipe_configs
    connections = pipe_configs.input_connections() if isinstance(pipe_configs, PipelineConfig) else {}
    if not described:
        raise TilewrightError("a pipeline has at least one stage")
    libraries: dict[int, Any] = {}
    entries: dict[int, dict[str, Any]] = {}
    for module, entry in described.items():
        if not isinstance(module, IRModule) or "pipeline" not in entry:
            raise TilewrightError(
                "a configuration goes from modules to what PipelineConfig.get_config says of them"
            )
        number = int(entry["pipeline"]["mod_idx"])
        compile_stage = entry.get("build") or build_stage
        libraries[number] = compile_stage(
            module,
            entry.get("target") or "llvm",
            entry.get("target_host"),
            params=entry.get("params"),
            mod_name=entry.get("mod_name") or "default",
        )
        device: Device = entry.get("dev") or cpu(0)
        entries[number] = {
            "mod_idx": number,
            "mod_name": entry.get("mod_name") or "default",
            "dev": [device.device_type, device.device_id],
            "output": entry["pipeline"]["output"],
        }
    order = sorted(libraries)
    if order != list(range(len(order))):
        raise TilewrightError(f"the stages are numbered from 0, not {', '.join(map(str, order))}")
    config = {"stages": [entries[number] for number in order], "inputs": connections if is_config else {}}
    return PipelineExecutorFactoryModule([libraries[number] for number in order], config)


class PipelineExecutorFactoryModule:
    """The built stages of a pipeline, and how they are connected."""

    def __init__(self, pipeline_mods: Sequence[Any], mods_config: Mapping[str, Any]) -> None:
        self.pipeline_mods = list(pipeline_mods)
        self.mods_config = dict(mods_config)

    def graph_executor_create(
        self, pipeline_mods: Sequence[Any], mod_config: Mapping[str, Any]
    ) -> tuple[list[GraphModule], str]:
        """An executor for each stage on its device, and the connections as text."""
        executors = []
        for library, stage in zip(pipeline_mods, mod_config["stages"], strict=True):
            device = Device(*stage["dev"])
            executors.append(GraphModule(library[stage["mod_name"]](device)))
        return executors, json.dumps(mod_config)

    def export_library(self, directory_path: str | Path) -> str:
        """Store every stage and the connections in a folder; the path of the file that ``PipelineModule.load_library``
        takes."""
        folder = Path(directory_path)
        if not folder.is_dir():
            raise TilewrightError(f"{folder} is not a folder: make it first")
        stored = dict(self.mods_config)
        stored["stages"] = []
        for number, (library, stage) in enumerate(
            zip(self.pipeline_mods, self.mods_config["stages"], strict=True)
        ):
            name = f"stage{number}.so"
            library.export_library(str(folder / name))
            stored["stages"].append({**stage, "library": name})
        path = folder / CONFIG_NAME
        write_bytes(path, json.dumps(stored, indent=1).encode())
        return str(path)
