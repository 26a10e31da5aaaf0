"""Schedules for devices with blocks of threads."""

from tilewright.schedule.gpu.construct import construct_schedule
from tilewright.schedule.scheduler import Scheduler

SCHEDULER = Scheduler("gpu", construct_schedule)
