"""The values that shells complete for options which take more words than the parser lists: targets, passes, formats."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tilewright.driver import opt, tvmc
from tilewright.driver.tvmc.arguments import DUMP_FORMATS
from tilewright.ir.transform import PassContext
from tilewright.target.cpu_models import MODELS
from tilewright.target.kind import KINDS
from tilewright.target.tag_table import TAGS


@dataclass(frozen=True)
class Values:
    """The words that an option takes; several of them, separated by commas, if it takes a list."""

    words: tuple[str, ...]
    is_list: bool = False


def _passes() -> tuple[str, ...]:
    return tuple(one.name for one in opt.listing.describe_passes())


_VALUES: dict[str, Callable[[], Values]] = {
    "--target": lambda: Values((*KINDS, *TAGS)),
    "--kind": lambda: Values(tuple(KINDS)),
    "--target-llvm-mcpu": lambda: Values(tuple(name for models in MODELS.values() for name in models)),
    "--model-format": lambda: Values(tuple(tvmc.frontends.get_frontend_names())),
    "--passes": lambda: Values(_passes(), is_list=True),
    "--disabled-pass": lambda: Values(_passes(), is_list=True),
    "--pass-config": lambda: Values(tuple(f"{name}=" for name in sorted(PassContext.list_configs()))),
    "--dump-code": lambda: Values(DUMP_FORMATS, is_list=True),
}


def values_of(option: str) -> Values | None:
    """The values of an option by its long name; None for one that takes a file or any text."""
    found = _VALUES.get(option)
    return None if found is None else found()
