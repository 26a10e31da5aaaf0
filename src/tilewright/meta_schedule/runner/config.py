"""Settings of runners: how to measure, and how to reach another machine."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

from tilewright.support.errors import TilewrightError


class EvaluatorConfig(NamedTuple):
    """How often a candidate runs: ``repeat`` measurements, each the mean of ``number`` runs or of as many as take
    ``min_repeat_ms``; with ``enable_cpu_cache_flush`` the caches are emptied before each."""

    number: int = 3
    repeat: int = 1
    min_repeat_ms: int = 100
    enable_cpu_cache_flush: bool = False

    @staticmethod
    def _normalized(config: EvaluatorConfig | None) -> EvaluatorConfig:
        return EvaluatorConfig() if config is None else EvaluatorConfig(*config)


class RPCConfig(NamedTuple):
    """Where the tracker is and which devices to ask it for. What is not given is read from the environment:
    ``TVM_TRACKER_HOST``, ``TVM_TRACKER_PORT`` and ``TVM_TRACKER_KEY``."""

    tracker_host: str | None = None
    tracker_port: int | str | None = None
    tracker_key: str | None = None
    session_priority: int = 1
    session_timeout_sec: int = 10

    @staticmethod
    def _normalized(config: RPCConfig | None) -> RPCConfig:
        given = RPCConfig() if config is None else config

        def setting(value: Any, variable: str) -> Any:
            found = os.environ.get(variable) if value is None else value
            if found is None:
                raise TilewrightError(f"RPCConfig needs the tracker's address: set {variable}")
            return found

        return given._replace(
            tracker_host=str(setting(given.tracker_host, "TVM_TRACKER_HOST")),
            tracker_port=int(setting(given.tracker_port, "TVM_TRACKER_PORT")),
            tracker_key=str(setting(given.tracker_key, "TVM_TRACKER_KEY")),
        )
