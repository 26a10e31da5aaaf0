"""The one way from loops to code: ``lower``, ``compile_unit``, ``link``, and ``build``, which does all three.

Tensor expressions, the executors of graphs and tuners all come through here. ``unit`` has what is compiled, ``units``
many at once through the ``cache`` and the ``workers``, ``dump`` what can be seen of it.
"""

from tilewright.compile.build import OperatorModule, build, host_of
from tilewright.compile.lower import get_binds, lower, lower_module, schedule_to_module
from tilewright.compile.unit import Unit, compile_modules, compile_unit, link
from tilewright.compile.units import CacheReport, UnitRequest, compile_loops, compile_units
