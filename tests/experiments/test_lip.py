import pytest

from fenchel.papers import lip
from fenchel.papers.experiment import run


def test_every_published_number(data_folder, monkeypatch):
    """Ridge and Huber leave-one-out errors for the five numbers of basis functions, kappa at the same grid point."""
    monkeypatch.setenv("FENCHEL_DATA", str(data_folder))
    outcome = run(lip, lip.units())
    rows, curves = outcome.rows, outcome.found
    assert len(rows) == 15
    for row in rows:
        assert row.passes, row
    assert max(curve["gap"] for curve in curves.values()) <= 1e-6
    assert all(curve["lam"] == pytest.approx(0.01) for curve in curves.values())
