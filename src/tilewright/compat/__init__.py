"""TVM's names: where each of them is served from, what is not in this version, and the import finder for both.

The core has no files that only exist for a name. ``modules`` is the table of TVM's modules and of names that TVM has
elsewhere, ``providers`` the modules whose names are computed, ``not_there`` what is missing and what to use instead.
"""
