"""Linear algebra of small matrices against eager PyTorch: exported programs, interpreted and compiled."""

import pytest

torch = pytest.importorskip("torch")

from tests.relay.frontend.torch.running import Functions, check, check_all  # noqa: E402

from tilewright.relay.frontend import from_exported_program  # noqa: E402
from tilewright.support.errors import ModelError  # noqa: E402


@pytest.fixture(scope="module")
def systems():
    """Matrices, right sides, vectors, and symmetric matrices whose pivots are all positive."""
    generator = torch.Generator().manual_seed(0)
    matrices = torch.randn(2, 5, 5, generator=generator)
    # The largest element of its first column is not the first one.
    matrices[0, 0, 0] = 0.0
    right, vectors = torch.randn(2, 5, 3, generator=generator), torch.randn(2, 5, generator=generator)
    return [matrices, right, vectors, matrices @ matrices.mT + torch.eye(5)]


def test_determinants_and_inverses(systems):
    """Of stacks and of single matrices, and the pivots that are zero."""
    functions = {
        "inverses": lambda x, b, v, p: (torch.inverse(x), torch.linalg.inv(x[0]), *torch.linalg.inv_ex(p)),
        "determinants": lambda x, b, v, p: (torch.det(x), torch.linalg.det(x[1]), torch.linalg.det(x * 0)),
        "logarithms": lambda x, b, v, p: (torch.logdet(p), torch.logdet(x), *torch.linalg.slogdet(x)),
        "singular": lambda x, b, v, p: torch.linalg.inv_ex(x.triu() * torch.arange(5).flip(0)).info,
    }
    check_all(functions, systems, rtol=1e-3)


def test_systems(systems):
    """Right sides that are matrices, vectors and batches, on either side, and triangles."""
    functions = {
        "solved": lambda x, b, v, p: (
            torch.linalg.solve(x, b),
            torch.linalg.solve(x[0], b),
            torch.linalg.solve(x, v),
            torch.linalg.solve(x, b.mT, left=False),
            *torch.linalg.solve_ex(p, b),
        ),
        "triangular": lambda x, b, v, p: (
            torch.linalg.solve_triangular(p, b, upper=True),
            torch.linalg.solve_triangular(p, b, upper=False, unitriangular=True),
            torch.linalg.solve_triangular(p, b.mT, upper=False, left=False),
            *torch.triangular_solve(b, p, transpose=True),
        ),
    }
    check_all(functions, systems, rtol=1e-3, atol=1e-4)


def test_cholesky_factors(systems):
    """Factors, what is solved with them, and the first pivot that is not positive."""
    functions = {
        "factors": lambda x, b, v, p: (
            torch.linalg.cholesky(p),
            torch.linalg.cholesky(p, upper=True),
            *torch.linalg.cholesky_ex(p),
            torch.linalg.cholesky_ex(p - 3 * torch.eye(5)).info,
        ),
        "solved": lambda x, b, v, p: (
            torch.cholesky_solve(b, torch.linalg.cholesky(p)),
            torch.cholesky_solve(b, p, upper=True),
            torch.cholesky_inverse(p),
            torch.cholesky_inverse(p, upper=True),
        ),
    }
    check_all(functions, systems, rtol=1e-3, atol=1e-4)


def test_compiled(systems):
    """The same numbers from compiled code."""
    model = Functions(
        [lambda x, b, v, p: torch.linalg.solve(x, b), lambda x, b, v, p: torch.linalg.cholesky(p)]
    )
    check(model, systems, "graph", rtol=1e-3, atol=1e-4)


def test_limits():
    """Matrices that are too large are refused by name."""
    program = torch.export.export(Functions([torch.inverse]), (torch.eye(65),))
    with pytest.raises(ModelError, match="the matrix has 65 rows; the limit is 64"):
        from_exported_program(program)
