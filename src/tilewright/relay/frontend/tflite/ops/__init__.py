"""Converters of TFLite's operators, a file a family. Importing this registers them all, and those of TensorFlow."""

from tilewright.relay.frontend.tensorflow import ops as shared
from tilewright.relay.frontend.tflite.ops import arithmetic, control_flow, detection, layers, movement
