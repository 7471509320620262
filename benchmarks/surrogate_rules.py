"""Rules for kappa against wrong outputs, where Bayes' rule is known: ``python benchmarks/surrogate_rules.py``.

The problems are those of examples/structured/plot_calibration.py. The rule that clips twice the share of wrong outputs
is given that share; ``"auto"`` is not.
"""

import runpy
from pathlib import Path

import matplotlib
import numpy as np

from fenchel.losses import Huber, Square

DRAWS, SAMPLES = 20, 400


def main():
    matplotlib.use("Agg")
    example = runpy.run_path(str(Path(__file__).parents[1] / "examples" / "structured" / "plot_calibration.py"))
    for name in example["problems"]:
        for share in (0.1, 0.3):
            losses = {
                "square": (Square(), 1.0),
                "auto": (Huber("auto"), 1.0),
                "clips 2s": (Huber(f"quantile:{1 - 2 * share:g}"), 1.0),
                "Huber(0.5)": (Huber(0.5), 0.5),
            }
            for label, (loss, scale) in losses.items():
                risks = [example["fitted_excess"](name, share, loss, scale, SAMPLES, 100 + s) for s in range(DRAWS)]
                error = np.std(risks, ddof=1) / np.sqrt(DRAWS)
                print(f"{name:13} {share:4.0%} wrong  {label:11} {np.mean(risks):.4f} ± {error:.4f}")


if __name__ == "__main__":
    main()
