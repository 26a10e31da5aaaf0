"""CPU schedules, constructed without search: every size is computed from the CPU description of the target."""

from tilewright.schedule.cpu.schedule import construct_schedule
from tilewright.schedule.cpu.transposed import schedule_transposed
from tilewright.schedule.cpu.winograd import schedule_winograd
from tilewright.schedule.scheduler import Scheduler
from tilewright.topi.tag import TRANSPOSED, WINOGRAD

SCHEDULER = Scheduler(
    "cpu", construct_schedule, {WINOGRAD: schedule_winograd, TRANSPOSED: schedule_transposed}
)
