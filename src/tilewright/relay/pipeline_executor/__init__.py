"""A model in stages, each with a device and a thread of its own: while one stage works on an input, the stages before
it work on the next ones."""

from tilewright.relay.pipeline_executor.config import PipelineConfig
from tilewright.relay.pipeline_executor.factory import (
    PipelineExecutorFactoryModule,
    build,
    pipeline_executor_enabled,
)
from tilewright.relay.pipeline_executor.module import PipelineModule

__all__ = [
    "PipelineConfig",
    "PipelineExecutorFactoryModule",
    "PipelineModule",
    "build",
    "pipeline_executor_enabled",
]
