"""Tasks of Relay's operators: their templates are the constructed schedules, whose own choices are the knobs.

``kinds`` names tasks and their arguments as TVM does, ``template`` makes schedules of them, ``space`` the space of
their choices, and ``lookup`` uses what was found when a model is built.
"""
