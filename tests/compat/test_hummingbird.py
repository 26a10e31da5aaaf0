"""Hummingbird's converters with the backend "tvm": models of scikit-learn compiled here. Skipped without it."""

import subprocess
import sys

import pytest

pytest.importorskip("sklearn")
pytest.importorskip("hummingbird.ml")

PROGRAM = """
import tilewright.as_tvm
import numpy as np
from hummingbird.ml import constants, convert
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

generator = np.random.default_rng(0)
data = generator.random((40, 6)).astype("float32")
classes = generator.integers(0, 3, 40)
for model in (
    RandomForestClassifier(4, max_depth=4, random_state=0),
    make_pipeline(StandardScaler(), LogisticRegression()),
):
    model.fit(data, classes)
    compiled = convert(model, "tvm", data)
    np.testing.assert_array_equal(compiled.predict(data), model.predict(data))
    reference = convert(model, "torch", data).predict_proba(data)
    np.testing.assert_allclose(compiled.predict_proba(data), reference, rtol=1e-4, atol=1e-5)

# Of neighbours Hummingbird wants to know how many rows a call has.
neighbors = KNeighborsClassifier(3).fit(data, classes)
compiled = convert(neighbors, "tvm", data, extra_config={constants.BATCH_SIZE: 40})
np.testing.assert_array_equal(compiled.predict(data), neighbors.predict(data))
print("compiled")
"""


def test_models_of_scikit_learn() -> None:
    """A forest, a pipeline and neighbours give the same classes and probabilities."""
    ran = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.endswith("compiled\n")
