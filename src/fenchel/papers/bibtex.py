"""BIBTEX: tags of bibliographic references (T. El Ahmad et al., "Sketch in, sketch out", AISTATS 2024).

The method is exact input-output kernel regression on the standard split. Inputs are standardised by the training part.
The kernels are Gaussian, with variance 1e4 on the inputs and 1 on the tag sets. The loss is the square loss with
lam 1e-5. The prediction is the nearest of the distinct training tag sets.

The target is the F1 score, in percent, that the authors' code reaches on the same test references. Since the test
references are the same, the standard error over them, given in the note, does not excuse a difference.
"""

from time import perf_counter

import numpy as np

from fenchel.datasets import load_bibtex
from fenchel.estimators import StructuredPredictor
from fenchel.kernels import Gaussian
from fenchel.metrics import f1_scores, hamming_losses, subset_accuracies
from fenchel.papers.comparison import FROM_PAPER, Comparison
from fenchel.papers.experiment import Result, Unit
from fenchel.report import figures as plots

__all__ = ["draw", "summary", "units"]

DATA = ("mulan_multilabel",)
FILES = ("mulan_multilabel/bibtex.npz",)  # the other files of this data set are not needed
INPUT_VARIANCE, OUTPUT_VARIANCE, LAM = 1e4, 1.0, 1e-5
PUBLISHED_F1, TOLERANCE = 44.9, 2.2e-3


def units(quick: bool = False) -> list[Unit]:
    """Return the only unit; a reduced version would save nothing."""
    return [Unit("bibtex", _scores)]


def _scores() -> Result:
    """Return the scores of all test references."""
    data = load_bibtex()
    mean, scale = data.X_train.mean(axis=0), data.X_train.std(axis=0)
    scale = np.where(scale > 0, scale, 1.0)
    X, X_test = (data.X_train - mean) / scale, (data.X_test - mean) / scale
    start = perf_counter()
    model = StructuredPredictor(Gaussian(1 / (2 * INPUT_VARIANCE)), Gaussian(1 / (2 * OUTPUT_VARIANCE)), lam=LAM)
    model.fit(X, data.Y_train)
    fitted = perf_counter()
    predicted = model.predict(X_test)
    seconds = fitted - start, perf_counter() - fitted
    sets, counts = np.unique(data.Y_train, axis=0, return_counts=True)
    most = np.broadcast_to(sets[np.argmax(counts)], data.Y_test.shape)
    return {
        "f1": f1_scores(data.Y_test, predicted),
        "hamming": hamming_losses(data.Y_test, predicted),
        "subset": subset_accuracies(data.Y_test, predicted),
        "sizes": data.Y_test.sum(axis=1),
        "predicted_sizes": predicted.sum(axis=1),
        "constant": np.mean(f1_scores(data.Y_test, most)),
        "gap": model.duality_gap_,
        "fit": seconds[0],
        "decoding": seconds[1],
    }


def summary(results: Result) -> tuple[list[Comparison], dict[str, np.ndarray]]:
    """Compare the F1 score with the published one; also return the scores of all test references."""
    found = {name: np.array(values) for name, values in results["bibtex"].items()}
    error = 100 * float(np.std(found["f1"])) / len(found["f1"]) ** 0.5
    note = (
        f"standard error {error:.2f} over {len(found['f1'])} references; gap {found['gap']:.0e}; "
        f"fit {found['fit']:.1f} s, decoding {found['decoding']:.1f} s"
    )
    ours, constant = 100 * float(np.mean(found["f1"])), 100 * float(found["constant"])
    return [
        Comparison("exact, F1 (%)", PUBLISHED_F1, ours, TOLERANCE, note, trivial=constant, target=FROM_PAPER)
    ], found


def draw(found: Result) -> plots.Figure:
    """Draw the mean F1 score against the number of true tags, and histograms of the numbers of tags."""
    fig, (left, right) = plots.figure(2)
    counts = np.arange(1, 9)
    means = [100 * float(np.mean(found["f1"][found["sizes"] == count])) for count in counts]
    left.bar(counts, means, color=plots.COLOURS[0])
    left.axhline(100 * float(np.mean(found["f1"])), color="black", linestyle=":")
    left.set_xlabel("true tags")
    left.set_ylabel("F1 (%)")
    left.set_title("dotted: mean of all")
    bins = np.arange(0.5, 12.5)
    right.hist(
        [found["sizes"], found["predicted_sizes"]], bins=bins, color=plots.COLOURS[:2], label=["true", "predicted"]
    )
    right.set_xlabel("tags")
    right.set_ylabel("references")
    right.legend(fontsize="small")
    return fig
