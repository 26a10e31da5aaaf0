"""Complete programs from sketches: tile sizes, places, threads, vectors, filled in at random; and their evolution."""

from tilewright.auto_scheduler.population.sample import init_rules, sample_state
from tilewright.auto_scheduler.population.settings import DEFAULT_PARAMS, Settings

__all__ = ["DEFAULT_PARAMS", "Settings", "init_rules", "sample_state"]
