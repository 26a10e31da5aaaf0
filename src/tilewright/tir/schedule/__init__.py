"""Block schedules: transforming programs of blocks step by step, with a trace."""

from tilewright.support.errors import ScheduleError
from tilewright.tir.schedule.block_scope import BlockScope, Dependency, DepKind, StmtSRef
from tilewright.tir.schedule.instruction import Instruction, InstructionKind
from tilewright.tir.schedule.random_variables import BlockRV, ExprRV, LoopRV
from tilewright.tir.schedule.schedule import Schedule
from tilewright.tir.schedule.state import ScheduleDebugMask, ScheduleState
from tilewright.tir.schedule.trace import Trace

__all__ = [
    "BlockRV",
    "BlockScope",
    "DepKind",
    "Dependency",
    "ExprRV",
    "Instruction",
    "InstructionKind",
    "LoopRV",
    "Schedule",
    "ScheduleDebugMask",
    "ScheduleError",
    "ScheduleState",
    "StmtSRef",
    "Trace",
]
