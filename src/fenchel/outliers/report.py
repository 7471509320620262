"""Ranking of samples and points of curves by outlyingness, with p-values and false discovery rates."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from fenchel._array import Inputs, Outputs, host
from fenchel._check import Interval, check_parameter
from fenchel._optional import Axes
from fenchel.data.containers import length
from fenchel.data.frames import index_from, index_of, plain_index
from fenchel.data.functional import as_curves
from fenchel.outliers.drawings import draw_curves, draw_scores
from fenchel.outliers.held_out_residuals import fitted_mask, residuals_of
from fenchel.outliers.judged import among, check_observed, compared, followed_by, judged, on_new, root_mean_squares
from fenchel.outliers.null_law import Simulation
from fenchel.outliers.sample_facts import check_count, check_points, duals_of, index_of_sample, output_names, weights_of
from fenchel.outliers.scatter import Form, Outlyingness
from fenchel.outliers.sizes import Sizes
from fenchel.outliers.tables import listed_names, shown, table_of, table_of_cells
from fenchel.outliers.tails import adjusted, conformal_p_values, log_two_sided
from fenchel.resample.folds import label_codes
from fenchel.resample.residuals import Residuals

__all__ = ["OutlierReport"]


@dataclass(frozen=True, eq=False, repr=False)
class OutlierReport:
    r"""Samples ranked by outlyingness, with approximate p-values.

    ``OutlierReport.of(model, X, y)`` finds samples whose outputs are far from the predictions of a model *of the other
    samples*, however normal inputs and outputs look by themselves. ``OutlierReport.of_curves(Y)`` finds curves that are
    unlike the others.

    Residuals are compared with the bulk of the sample by several statistics: the energy in bands of their principal
    components, in the remainder and in total, the largest standardised value and, for curves, the largest increment;
    ``of_curves`` also uses the mean square of the standardised values and the roughness. The bulk excludes samples that
    lie far from it, and the fold of each sample. A normal distribution is fitted to the central part of each statistic
    (cube roots of energies, logarithms of maxima); the p-value of a sample is that of its most extreme statistic times
    the number of statistics. Its rank among the same numbers of simulated samples in which nothing is wrong is the
    p-value that is reported (Notes).

    Attributes
    ----------
    scores : ndarray of shape (n,)
        Largest deviation over the statistics, in standard deviations; larger is more outlying.
    p_values : ndarray of shape (n,)
        P-values from simulated samples without outliers, which ``flagged`` uses. The first access takes the time of 20
        to 100 reports of a sample of this size.
    conformal_p_values : ndarray of shape (n,)
        Fraction of the samples whose score is at least as large. They assume nothing, but the smallest is 1/n: no false
        discovery rate below 1 can be controlled with them, except for new samples (``of_new``).
    kinds : ndarray of str, shape (n,)
        The most extreme statistic of each sample. Components are principal components of the residuals: one wrong
        output of several shows in many of them. ``wrong_outputs`` names the outputs.
    output_names : list of str or None
        Names of several outputs: the columns of y, or ``"output 0"`` and so on. ``None`` for one output and for curves.
    residuals : ndarray of shape (n,), (n, q), (n, m) or (n, m, c)
        Held-out residuals; for ``of_curves``, distances to the median curve. NaN at missing values.
    expected_sizes : ndarray of shape (n,)
        Relative expected size of the residuals at each input, by which residuals are divided before they are compared.
        They are leave-one-out predictions of a model of the log sizes with the same kernel; 1 for other regressors.
    saturation : ndarray of shape (n,) or None
        Norm of the dual variable divided by its bound, ``outlier_score_`` of the model; ``None`` without a bound.
    dual_norms : ndarray of shape (n,) or None
        Norms of the dual variables of the training samples.
    grid : ndarray of shape (m,) or None
        Points of the curves.
    index : Index or None
        The index of the samples, if outputs or inputs were a pandas frame.
    model : regressor or None
        The model, used for new samples.
    outlyingness, sizes, simulation : Outlyingness, Sizes or None, Simulation
        The fitted statistics of the residuals, the model of their sizes, and the simulated samples.

    Notes
    -----
    Fitted tails alone are too light in small samples. Samples of the same size are therefore drawn from the law of the
    rows that these tails do not flag: a normal law with their shrunk covariance or, as far as a sample of this size
    does not exclude it, Student's with down to five degrees of freedom, of whole rows and of single values. For kernel
    machines of this library the noise passes through the leave-one-out residuals of the square loss and the model of
    their sizes. A p-value is the rank of a score among those of all simulated rows; beyond the tenth largest it is
    extrapolated.

    In a sample without outliers something is then flagged with a probability of about ``fdr`` at most (measured by
    ``benchmarks/nulls.py``, not proved). It is not so if noise has heavier tails than those with five degrees of
    freedom, or a size that the inputs do not explain: use the ranking then, not the rate. In small samples of one
    output, whose tails are not known, fewer samples are flagged than a normal law would allow. The false discovery rate
    also requires that fewer than a fifth of the samples are wrong, and that these are not so similar that they form a
    bulk of their own.

    References
    ----------
    [BenjaminiHochberg1995]_; [WilsonHilferty1931]_ for cube roots; [Bates2023]_ for conformal p-values.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel import OperatorKernelRegressor, OutlierReport
    >>> rng = np.random.default_rng(1)
    >>> X = rng.uniform(-2, 2, (100, 1))
    >>> y = np.sin(2 * X[:, 0]) + 0.1 * rng.standard_normal(100)
    >>> y[[3, 30]] += 1.0  # wrong, and within the range of the others
    >>> model = OperatorKernelRegressor(loss="huber", lam=1e-3).fit(X, y)
    >>> np.flatnonzero(OutlierReport.of(model, X, y).flagged(fdr=0.1)).tolist()
    [3, 30]
    """

    outlyingness: Outlyingness
    simulation: Simulation
    conformal_p_values: np.ndarray
    residuals: np.ndarray
    expected_sizes: np.ndarray
    saturation: np.ndarray | None = None
    dual_norms: np.ndarray | None = None
    grid: np.ndarray | None = None
    model: BaseEstimator | None = None
    sizes: Sizes | None = None
    output_names: list[str] | None = None
    index: Any = None

    @classmethod
    def of(
        cls,
        model: BaseEstimator,
        X: Inputs,
        y: Outputs,
        cv: int | None = None,
        fitted: Any = None,
        groups: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> "OutlierReport":
        """Rank the training samples of a model, optionally together with other samples.

        Parameters
        ----------
        model : regressor
            A fitted regressor, of this library or any other that can be cloned.
        X, y : array, or any other input of the regressor
            Its training data, in the order of the fit. Samples without any output are not judged (p-value 1).
        cv : int or None, default=None
            Number of folds for the held-out residuals. ``None`` means leave-one-out where that needs no solve (the
            square loss), else ten folds.
        fitted : array of bool, shape (n,), or None, default=None
            Mask of the samples that the model was fitted to; the residuals of other samples are those of its
            predictions. ``None`` means all samples.
        groups : array of shape (n,) or None, default=None
            Labels of samples that are held out together, such as replicates: otherwise wrong replicates confirm each
            other, and none is flagged.
        sample_weight : array of shape (n,) or None, default=None
            The weights of the fit: residuals are those of weighted fits without each sample. Each sample is one in the
            comparison, whatever its weight. Samples of weight zero are judged like those of ``of_new``, and change
            nothing for the others.

        Returns
        -------
        report : OutlierReport
            The report.
        """
        check_is_fitted(model)
        if cv is not None:
            check_parameter("OutlierReport.of", "cv", cv, Interval(2, np.inf, "left", integer=True))
        if length(X) != length(y):
            raise ValueError(f"X and y must have the same number of samples. Got {length(X)} and {length(y)}.")
        n, weights = length(y), weights_of(sample_weight, length(y), model)
        check_count(n if weights is None else int(np.count_nonzero(weights)))
        is_fitted = fitted_mask(fitted, model, X, n)
        codes = label_codes(groups, n, "groups")
        residuals = residuals_of(model, X, y, cv, is_fitted, codes, weights)
        places, others = compared(residuals, weights)
        known, inputs = judged(residuals, model, X, places, places)
        sizes = Sizes.of(model, inputs, known, *(None if row is None else row[places] for row in (codes, weights)))
        report = cls.of_residuals(known, False, sizes)
        if len(others):
            report = followed_by(report, on_new(report, *judged(residuals, model, X, others, places)))
        report = among(report, np.concatenate([places, others]), n)
        names = output_names(y, report.residuals, report.grid)
        dual_norms, saturation = duals_of(model, is_fitted)
        about = {"model": model, "output_names": names, "index": index_of_sample(X, y)}
        return replace(report, dual_norms=dual_norms, saturation=saturation, **about)

    @classmethod
    def of_curves(cls, Y: Outputs, grid: ArrayLike | None = None) -> "OutlierReport":
        """Rank curves by how much they differ from the others in size, shape, roughness, or at single points.

        Parameters
        ----------
        Y : array of shape (n, m) or (n, m, c), or any other input of ``as_curves``
            Curves; NaN marks missing values.
        grid : array of shape (m,) or None, default=None
            Points of the curves.

        Returns
        -------
        report : OutlierReport
            The report.
        """
        curves = as_curves(Y, grid)
        values = host(curves.values).astype(float)
        check_points(rows := values.reshape(len(values), -1))
        residuals = Residuals(rows - np.nanmedian(rows, axis=0), curves.grid, values.shape[1:])
        return replace(cls.of_residuals(residuals, True), index=index_of(Y))

    @classmethod
    def of_residuals(cls, residuals: Residuals, is_marginal: bool, sizes: Sizes | None = None) -> "OutlierReport":
        """Rank rows of residuals relative to expected sizes; ``is_marginal`` makes small and smooth rows outlying."""
        n = len(residuals.values)
        check_count(n)
        shape = residuals.shape or (1,)
        form = Form(shape, residuals.grid is not None, is_marginal)
        expected = np.ones(n) if sizes is None else sizes.held_out
        rows = residuals.filled() / expected[:, None]
        outlyingness = Outlyingness.of(rows, form, seen=~np.isnan(residuals.values))
        p_values, values = conformal_p_values(outlyingness.scores), residuals.values.reshape(n, *residuals.shape)
        simulation = Simulation(outlyingness, rows, sizes)
        return cls(outlyingness, simulation, p_values, values, expected, grid=residuals.grid, sizes=sizes)

    def of_new(self, X: Inputs, y: Outputs) -> "OutlierReport":
        """Rank new samples by the same model, compared with the training samples.

        Their conformal p-values are valid for any distribution if the training samples are not wrong.
        """
        if self.model is None:
            raise ValueError("A report of curves alone has no model for new samples. Use OutlierReport.of.")
        residuals = Residuals.of(self.model, X, y)
        check_observed(residuals.values)
        report = on_new(self, residuals, X)
        return replace(report, saturation=None, dual_norms=None, grid=residuals.grid, index=index_of_sample(X, y))

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"index": plain_index(self.index)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state | {"index": index_from(state["index"])})

    def __len__(self) -> int:
        return len(self.residuals)

    @property
    def scores(self) -> np.ndarray:
        """Largest deviation of each sample, (n,)."""
        return self.outlyingness.scores

    @property
    def p_values(self) -> np.ndarray:
        """P-values from simulated samples without outliers, (n,)."""
        return np.asarray(np.exp(self.simulation.table.log_p_values(self.outlyingness.log_tails)))

    @property
    def value_p_values(self) -> np.ndarray:
        """P-values of the single values from fitted tails, NaN at missing ones, with the shape of ``residuals``."""
        rows = self.residuals.reshape(len(self), -1) / self.expected_sizes[:, None]
        return np.asarray(np.exp(log_two_sided(self.outlyingness.at_points(rows)))).reshape(self.residuals.shape)

    @property
    def kinds(self) -> np.ndarray:
        """The most extreme statistic of each sample, (n,); ``"not judged"`` for samples without outputs."""
        found = np.asarray(self.outlyingness.names)[np.argmax(self.outlyingness.deviates, axis=1)]
        return np.where(np.isnan(self.scores), "not judged", found)

    @property
    def ranking(self) -> np.ndarray:
        """Indices of the samples, most outlying first."""
        return np.argsort(-self.scores, kind="stable")

    def flagged(self, fdr: float = 0.1) -> np.ndarray:
        """Flag outlying samples at a false discovery rate.

        Parameters
        ----------
        fdr : float, default=0.1
            Expected fraction of correct samples among the flagged ones, controlled by the Benjamini-Hochberg procedure.

        Returns
        -------
        is_flagged : ndarray of bool, shape (n,)
            Whether each sample is flagged.
        """
        check_parameter("flagged", "fdr", fdr, Interval(0, 1))
        return np.asarray(adjusted(self.p_values) <= fdr)

    def suspects(self, fdr: float = 0.1) -> np.ndarray:
        """Flag samples by the fitted tails alone, which needs no simulation and flags more of a small sample, (n,)."""
        return np.asarray(adjusted(np.exp(self.outlyingness.log_p_values)) <= fdr)

    def flagged_points(self, fdr: float = 0.1) -> np.ndarray:
        """Flag outlying values at a false discovery rate; the result has the shape of ``residuals``.

        Each residual is compared with the observed ones at its point, by fitted tails; NaN is never flagged. The rate
        is not controlled where the size of the residuals depends on the inputs in a way that ``expected_sizes`` misses.
        """
        check_parameter("flagged_points", "fdr", fdr, Interval(0, 1))
        p_values = self.value_p_values
        seen, is_flagged = ~np.isnan(p_values), np.zeros(p_values.shape, dtype=bool)
        is_flagged[seen] = adjusted(p_values[seen]) <= fdr
        return is_flagged

    def wrong_outputs(self, fdr: float = 0.1) -> np.ndarray | None:
        """Return the names of the outputs that make each sample outlying.

        These are the outputs that ``flagged_points`` flags; where it flags none, the one with the largest standardised
        residual. ``None`` for one output and for curves.

        Parameters
        ----------
        fdr : float, default=0.1
            As for ``flagged_points``.

        Returns
        -------
        names : ndarray of str, shape (n,), or None
            Several names are separated by commas; of more than five, the most deviating are named.
        """
        if self.output_names is None:
            return None
        deviates = np.nan_to_num(np.abs(self.outlyingness.at_points(self.residuals / self.expected_sizes[:, None])))
        is_wrong = self.flagged_points(fdr)
        rows = np.flatnonzero(~np.isnan(self.scores))
        is_wrong[rows, np.argmax(deviates[rows], axis=1)] = True
        return listed_names(self.output_names, is_wrong, deviates)

    def table(self, fdr: float = 0.1, as_frame: bool = False) -> Any:
        """Return a table with one row for each sample, most outlying first.

        Parameters
        ----------
        fdr : float, default=0.1
            As for ``flagged``.
        as_frame : bool, default=False
            Whether to return a pandas DataFrame, with the index of the samples if they had one.

        Returns
        -------
        table : structured array of shape (n,), or DataFrame
            Columns ``sample`` (an index, starting at 0), ``score``, ``p_value``, ``conformal_p_value``, ``flagged``,
            ``outputs`` (``wrong_outputs``, if there are several outputs), ``kind``, ``residual`` (root mean square of
            the observed values), and if there are dual variables, ``dual_norm`` and ``saturation``.
        """
        columns: dict[str, Any] = {
            "sample": np.arange(len(self)),
            "score": self.scores,
            "p_value": self.p_values,
            "conformal_p_value": self.conformal_p_values,
            "flagged": self.flagged(fdr),
            "outputs": self.wrong_outputs(fdr),
            "kind": self.kinds,
            "residual": root_mean_squares(self.residuals),
            "dual_norm": self.dual_norms,
            "saturation": self.saturation,
        }
        return table_of(columns, self.index, as_frame, self.ranking)

    def cells(self, fdr: float = 0.1, as_frame: bool = False) -> Any:
        """Return a table of outlying values, the cells of a table of outputs, most outlying first.

        These are the values that ``flagged_points`` flags in flagged samples. Samples without wrong values are as rare
        in it as among the ``flagged`` ones; within a sample values are named by fitted tails, without a guarantee.

        Parameters
        ----------
        fdr : float, default=0.1
            As for ``flagged`` and ``flagged_points``.
        as_frame : bool, default=False
            Whether to return a pandas DataFrame, with the index of the samples if they had one.

        Returns
        -------
        table : structured array of shape (k,), or DataFrame
            Columns ``sample`` and ``output`` (a name, or the place of a point), ``residual`` and ``p_value``.
        """
        is_wrong = self.flagged_points(fdr).reshape(len(self), -1) & self.flagged(fdr)[:, None]
        return table_of_cells(self.value_p_values, is_wrong, self.residuals, self.output_names, self.index, as_frame)

    def plot(self, ax: Axes | None = None, fdr: float = 0.1) -> Axes:
        """Plot the scores of all samples, with flagged ones in colour and labelled by their index.

        ``ax`` are the axes to draw on, which are returned; ``None`` creates a figure. ``fdr`` is as for ``flagged``.
        """
        return draw_scores(self.scores, self.flagged(fdr), self.ranking, fdr, ax)

    def plot_curves(self, ax: Axes | None = None, fdr: float = 0.1) -> Axes:
        """Plot the residual curves, with flagged ones in colour; parameters are as for ``plot``."""
        if self.grid is None:
            raise ValueError("These residuals are no curves. Use plot().")
        curves = self.residuals.reshape(len(self), len(self.grid), -1)[:, :, 0]
        return draw_curves(self.grid, curves, self.flagged(fdr), self.ranking, ax)

    def __repr__(self) -> str:
        return shown(self.table(), int(self.flagged().sum()))
