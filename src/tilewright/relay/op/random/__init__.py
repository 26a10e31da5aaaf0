"""Random numbers from explicit, splittable generators."""

from tilewright.relay.op.random import kernel
from tilewright.relay.op.random.kernel import threefry_generate, threefry_key, threefry_split, uniform
