"""What holds for every test: checks between passes are on, and a slow machine fails no property test."""

import os

# Read once, when tilewright is imported: so this stands before any import of it.
os.environ["TILEWRIGHT_CHECK"] = "1"

from hypothesis import settings

# A shared two-core machine stalls for hundreds of milliseconds; a deadline would report that as a failure.
settings.register_profile("tilewright", deadline=None)
settings.load_profile("tilewright")
