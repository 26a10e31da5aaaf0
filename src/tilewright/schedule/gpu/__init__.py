"""Schedules for devices with blocks of threads, constructed from the device's description.

``construct.py`` chooses the kernels of a graph, ``kernel.py`` the schedule of each:

* ``injective.py``: elementwise kernels, with loads and stores of 16 bytes; ``transpose.py``: through shared memory;
* ``rows.py``, ``row_plan.py``, ``row_schedule.py``: reductions, softmax and norms, a team of threads for a row;
  ``split_reduction.py``: few results of many elements, over the whole grid;
* ``window.py``: pooling and depthwise convolution, whole results in a thread;
* ``contraction.py``, ``product.py``: matrix products and convolutions, in tiles on ordinary cores;
* ``statements.py``, ``independent.py``: operators that are written as loops.
"""

from tilewright.schedule.gpu.construct import construct_schedule
from tilewright.schedule.gpu.notes import ThreadScheduler
from tilewright.schedule.gpu.plain import construct_plain

SCHEDULER = ThreadScheduler("gpu", construct_schedule)
PLAIN_SCHEDULER = ThreadScheduler("plain_gpu", construct_plain)
"""For devices whose threads neither share memory nor wait for one another."""
