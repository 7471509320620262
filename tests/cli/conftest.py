import json

import numpy as np
import pytest


class Result:
    """What a command printed and how it ended."""

    def __init__(self, result):
        self.code, self.out, self.err, self.exception = (
            result.exit_code,
            result.stdout,
            result.stderr,
            result.exception,
        )

    @property
    def json(self):
        assert self.code in (0, 3), self.err
        return json.loads(self.out)

    @property
    def line(self):
        """The one line of an error."""
        assert self.code in (1, 2), self.out
        assert self.out == ""
        (line,) = self.err.splitlines()
        assert line.startswith("Error: ")
        return line.removeprefix("Error: ")


@pytest.fixture
def fenchel():
    """Run a command in this process."""
    for name in ("rich", "skops.io"):
        pytest.importorskip(name)
    click_testing = pytest.importorskip("click.testing")
    from fenchel.app.cli import main

    return lambda *words: Result(click_testing.CliRunner().invoke(main, [str(word) for word in words]))


@pytest.fixture
def columns(rng):
    """Columns of a table: two inputs, text, a constant, two outputs."""
    n = 40
    x, z = rng.uniform(-2, 2, n), rng.uniform(0, 1, n)
    side = np.where(rng.uniform(size=n) < 0.5, "left", "right")
    return {
        "x": x.tolist(),
        "z": z.tolist(),
        "side": side.tolist(),
        "unit": [1.0] * n,
        "y_a": (np.sin(2 * x) + z).tolist(),
        "y_b": (np.cos(x) * (side == "left")).tolist(),
    }


def write_csv(path, columns, separator=",", end="\n", encoding="utf-8", decimal="."):
    def text(value):
        return "" if value is None else str(value).replace(".", decimal) if isinstance(value, float) else str(value)

    lines = [separator.join(columns), *(separator.join(map(text, row)) for row in zip(*columns.values(), strict=True))]
    path.write_bytes((end.join(lines) + end).encode(encoding))
    return path


@pytest.fixture
def csv_file(tmp_path, columns):
    pytest.importorskip("pandas")
    return write_csv(tmp_path / "data.csv", columns)
