"""What a cost model sees of a program: numbers for every statement that stores, from the loops of a schedule."""

from tilewright.auto_scheduler.features.extract import StoreFeatures, extract_features
from tilewright.auto_scheduler.features.vector import feature_names, feature_vector

__all__ = ["StoreFeatures", "extract_features", "feature_names", "feature_vector"]
