"""The parameters of a sketch search, by TVM's names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from tilewright.support.errors import TilewrightError

DEFAULT_PARAMS: Final[dict[str, Any]] = {
    "eps_greedy": 0.05,
    "retry_search_one_round_on_empty": 1,
    "sample_init_min_population": 50,
    "sample_init_use_measured_ratio": 0.2,
    "evolutionary_search_population": 512,
    "evolutionary_search_num_iters": 4,
    "evolutionary_search_mutation_prob": 0.85,
    "cpu_multi_level_tiling_structure": "SSRSRS",
    "gpu_multi_level_tiling_structure": "SSSRRSRS",
    "max_innermost_split_factor": 64,
    "max_vectorize_size": 16,
    "disable_change_compute_location": 0,
}
"""TVM's values, but for the population, which is 2048 there: candidates are lowered to be ranked, and a round should
not take longer than measuring does."""


@dataclass(frozen=True)
class Settings:
    """The parameters that samplers use."""

    max_innermost_split_factor: int
    max_vectorize_size: int
    change_compute_location: bool
    cpu_structure: str
    gpu_structure: str

    @staticmethod
    def of(params: Mapping[str, Any]) -> Settings:
        """The settings that parameters say."""
        return Settings(
            max_innermost_split_factor=int(params["max_innermost_split_factor"]),
            max_vectorize_size=int(params["max_vectorize_size"]),
            change_compute_location=not int(params["disable_change_compute_location"]),
            cpu_structure=str(params["cpu_multi_level_tiling_structure"]),
            gpu_structure=str(params["gpu_multi_level_tiling_structure"]),
        )


def complete_params(given: Mapping[str, Any] | None) -> dict[str, Any]:
    """All parameters, with those given in the place of the usual ones."""
    unknown = [name for name in given or {} if name not in DEFAULT_PARAMS]
    if unknown:
        raise TilewrightError(
            f"{', '.join(unknown)} is not a parameter of SketchPolicy; those are {', '.join(DEFAULT_PARAMS)}"
        )
    return {**DEFAULT_PARAMS, **(given or {})}
