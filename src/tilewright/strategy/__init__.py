"""How operators are computed on each target: one table of rows, and the strategies that users register."""

from tilewright.strategy.implementation import DEFAULT_LEVEL, OpImplementation, OpSpecialization, OpStrategy
from tilewright.strategy.pattern import OpPattern
from tilewright.strategy.registered import (
    forget,
    has_registered,
    register_schedule_for,
    register_strategy_for,
)
from tilewright.strategy.row import Row
from tilewright.strategy.table import (
    Choice,
    Refusal,
    add_row,
    all_rows,
    by_target,
    candidates,
    choose,
    rows_of,
    scheduled_as,
    strategy_of,
)
