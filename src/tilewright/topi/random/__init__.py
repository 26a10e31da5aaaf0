"""Random numbers from explicit, splittable generators."""

from tilewright.topi.random.kernel import threefry_generate, threefry_split, uniform
