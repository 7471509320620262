"""Samples and points of curves ranked by how outlying they are, with p-values and false discovery rates."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from fenchel._array import host
from fenchel._check import Interval, check_parameter
from fenchel._optional import new_axes
from fenchel.conformal.samples import Residuals, length
from fenchel.datasets.functional import as_curves
from fenchel.outliers.held_out_residuals import residuals_of
from fenchel.outliers.scatter import Form, Outlyingness
from fenchel.outliers.sizes import Sizes
from fenchel.outliers.tails import adjusted, conformal_p_values, log_two_sided

__all__ = ["FEWEST", "OutlierReport"]

FEWEST = 10
_SHOWN = 5  # rows of the text
_FDR = Interval(0, 1)


@dataclass(frozen=True, eq=False, repr=False)
class OutlierReport:
    r"""Samples ranked by outlyingness, with p-values that control the false discovery rate.

    Made by ``OutlierReport.of(model, X, y)``: samples whose outputs are far from what a model *of the other samples*
    predicts from their inputs, however normal both look by themselves; or by ``OutlierReport.of_curves(Y)``: curves
    that are unlike the others.

    Residuals are compared with the bulk of them by several statistics: the energy in bands of their principal
    components, in the remainder and in all of them, the largest standardised value and, of curves, the largest
    increment; of curves alone, also the mean square of their standardised values and their roughness. The bulk leaves
    out what lies far from it, and the fold of each sample. A normal distribution is fitted to the central part of each
    statistic (cube roots of energies, logarithms of maxima); the p-value of a sample is that of its most extreme
    statistic times their number. The tails are normal for curves alone, and those of Student's distribution with ten
    degrees of freedom for the residuals of a model, which is not as accurate everywhere.

    Attributes
    ----------
    scores : ndarray of shape (n,)
        Largest deviate, in standard deviations; large is outlying.
    p_values : ndarray of shape (n,)
        From the fitted tails. ``flagged`` uses these.
    conformal_p_values : ndarray of shape (n,)
        Share of the samples whose score is at least as large. They assume nothing, but the least of them is 1/n: no
        false discovery rate below 1 can be had from them, unless samples are new (``of_new``).
    kinds : ndarray of str, shape (n,)
        The most extreme statistic of each sample. Components are principal components of the residuals: one wrong
        output of several shows in many of them. ``wrong_outputs`` names the outputs.
    output_names : list of str or None
        Names of several outputs: the columns of y, or ``"output 0"`` and so on. ``None`` for one output and for curves.
    residuals : ndarray of shape (n,), (n, q), (n, m) or (n, m, c)
        Held-out residuals; for ``of_curves``, distances to the median curve. NaN where nothing was observed.
    expected_sizes : ndarray of shape (n,)
        Expected size of the residuals at each input, relative; residuals are divided by these before they are compared.
        From a model of the logarithms of their sizes on the same kernel, each sample left out; 1 for other regressors.
    saturation : ndarray of shape (n,) or None
        Norm of the dual variable over its bound, ``outlier_score_`` of the model; ``None`` without a bound.
    dual_norms : ndarray of shape (n,) or None
        Norms of the dual variables of the training samples.
    grid : ndarray of shape (m,) or None
        Points of curves.
    model : regressor or None
        The model, for samples that are new.
    outlyingness, sizes : Outlyingness, Sizes or None
        The fitted statistics of the residuals, and the model of their sizes.

    Notes
    -----
    The false discovery rate holds as far as the tails of the statistics continue their central part as stated, fewer
    than a fifth of the samples are wrong, and wrong samples are not so alike that they form a bulk of their own. Noise
    with heavier tails, or of a size that the inputs do not explain, gives more discoveries: look at the ranking then,
    not at the rate.

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
    conformal_p_values: np.ndarray
    residuals: np.ndarray
    expected_sizes: np.ndarray
    saturation: np.ndarray | None = None
    dual_norms: np.ndarray | None = None
    grid: np.ndarray | None = None
    model: Any = None
    sizes: Sizes | None = None
    output_names: list[str] | None = None

    @classmethod
    def of(cls, model: Any, X: Any, y: Any, cv: int | None = None, fitted: Any = None) -> "OutlierReport":
        """Rank the samples that a model was fitted to, and others beside them.

        Parameters
        ----------
        model : regressor
            A fitted regressor; of this library, or any other that can be cloned.
        X, y : array, or what else the regressor takes
            Its training data.
        cv : int or None, default=None
            Folds of the held-out residuals. ``None`` leaves samples out one at a time where that needs no solve (the
            square loss), else ten folds.
        fitted : array of bool, shape (n,), or None, default=None
            The samples that the model was fitted to; the residuals of others are those of its predictions.
            ``None`` is all of them.

        Returns
        -------
        report : OutlierReport
            The report.
        """
        check_is_fitted(model)
        if cv is not None:
            check_parameter("OutlierReport.of", "cv", cv, Interval(2, np.inf, "left", integer=True))
        if length(X) != length(y):
            raise ValueError(f"X and y must have as many samples. Got {length(X)} and {length(y)}.")
        _check_count(length(y))
        is_fitted = np.ones(length(y), dtype=bool) if fitted is None else np.asarray(fitted, dtype=bool)
        if is_fitted.shape != (length(y),):
            raise ValueError(f"fitted must be a mask of {length(y)} samples. Got shape {is_fitted.shape}.")
        residuals = residuals_of(model, X, y, cv, is_fitted)
        sizes = Sizes.of(model, X, residuals)
        report = cls.of_residuals(residuals, False, None if sizes is None else sizes.held_out)
        names = _output_names(y, report)
        return replace(report, **_duals(model, is_fitted), model=model, sizes=sizes, output_names=names)

    @classmethod
    def of_curves(cls, Y: Any, grid: Any = None) -> "OutlierReport":
        """Rank curves by how unlike the others they are: in size, in shape, in roughness, at single points.

        Parameters
        ----------
        Y : array of shape (n, m) or (n, m, c), or what else ``as_curves`` takes
            Curves; NaN where they were not observed.
        grid : array of shape (m,) or None, default=None
            Points of the curves.

        Returns
        -------
        report : OutlierReport
            The report.
        """
        curves = as_curves(Y, grid)
        values = host(curves.values).astype(float)
        rows = values.reshape(len(values), -1)
        return cls.of_residuals(Residuals(rows - np.nanmedian(rows, axis=0), curves.grid, values.shape[1:]), True)

    @classmethod
    def of_residuals(cls, residuals: Residuals, is_marginal: bool, sizes: np.ndarray | None = None) -> "OutlierReport":
        """Rank rows of residuals, over their expected sizes; ``is_marginal``: small and smooth ones are strange too."""
        n = len(residuals.values)
        _check_count(n)
        shape = residuals.shape or (1,)
        form = Form(shape, residuals.grid is not None, is_marginal)
        expected = np.ones(n) if sizes is None else sizes
        outlyingness = Outlyingness.of(_complete(residuals) / expected[:, None], form)
        scores = np.max(outlyingness.deviates, axis=1)
        values = residuals.values.reshape(n, *residuals.shape)
        return cls(outlyingness, conformal_p_values(scores), values, expected, grid=residuals.grid)

    def of_new(self, X: Any, y: Any) -> "OutlierReport":
        """Rank new samples by the same model, compared with the training samples.

        Their conformal p-values hold for any distribution if the training samples are right.
        """
        if self.model is None:
            raise ValueError("A report of curves alone has no model of new samples. Use OutlierReport.of.")
        residuals = Residuals.of(self.model, X, y)
        expected = np.ones(length(X)) if self.sizes is None else self.sizes.at(X)
        outlyingness = self.outlyingness.of_new(_complete(residuals) / expected[:, None])
        scores = np.max(outlyingness.deviates, axis=1)
        values = residuals.values.reshape(len(scores), *residuals.shape)
        p_values = conformal_p_values(scores, self.scores)
        return replace(
            self,
            outlyingness=outlyingness,
            conformal_p_values=p_values,
            residuals=values,
            expected_sizes=expected,
            saturation=None,
            dual_norms=None,
            grid=residuals.grid,
        )

    def __len__(self) -> int:
        return len(self.residuals)

    @property
    def scores(self) -> np.ndarray:
        """Largest deviate of each sample, (n,)."""
        return np.asarray(np.max(self.outlyingness.deviates, axis=1))

    @property
    def p_values(self) -> np.ndarray:
        """P-values from the fitted tails, (n,)."""
        return np.asarray(np.exp(self.outlyingness.log_p_values))

    @property
    def kinds(self) -> np.ndarray:
        """The most extreme statistic of each sample, (n,)."""
        return np.asarray(self.outlyingness.names)[np.argmax(self.outlyingness.deviates, axis=1)]

    @property
    def ranking(self) -> np.ndarray:
        """Samples, the most outlying first."""
        return np.argsort(-self.scores, kind="stable")

    def flagged(self, fdr: float = 0.1) -> np.ndarray:
        """Return which samples are flagged, (n,) of bool.

        Parameters
        ----------
        fdr : float, default=0.1
            Expected share of right samples among the flagged ones, by Benjamini and Hochberg.

        Returns
        -------
        is_flagged : ndarray of bool, shape (n,)
            Whether each sample is flagged.
        """
        check_parameter("flagged", "fdr", fdr, _FDR)
        return np.asarray(adjusted(self.p_values) <= fdr)

    def flagged_points(self, fdr: float = 0.1) -> np.ndarray:
        """Return which values of which samples are flagged, of the shape of ``residuals``.

        Each residual is compared with the median and the scale of its point; NaN are never flagged.
        """
        check_parameter("flagged_points", "fdr", fdr, _FDR)
        rows = self.residuals.reshape(len(self), -1) / self.expected_sizes[:, None]
        seen = ~np.isnan(rows)
        is_flagged = np.zeros(rows.shape, dtype=bool)
        is_flagged[seen] = adjusted(np.exp(log_two_sided(self.outlyingness.at_points(rows)[seen]))) <= fdr
        return is_flagged.reshape(self.residuals.shape)

    def wrong_outputs(self, fdr: float = 0.1) -> np.ndarray | None:
        """Return the names of the outputs that make each sample outlying, (n,) of str.

        These are the outputs that ``flagged_points`` flags; where it flags none, the one with the largest standardised
        residual. ``None`` for one output and for curves.

        Parameters
        ----------
        fdr : float, default=0.1
            As for ``flagged_points``.

        Returns
        -------
        names : ndarray of str, shape (n,), or None
            Several names are separated by commas.
        """
        if self.output_names is None:
            return None
        deviates = np.nan_to_num(np.abs(self.outlyingness.at_points(self.residuals / self.expected_sizes[:, None])))
        is_wrong = self.flagged_points(fdr)
        is_wrong[np.arange(len(self)), np.argmax(deviates, axis=1)] = True
        names = np.asarray(self.output_names)
        return np.array([", ".join(names[row]) for row in is_wrong])

    def table(self, fdr: float = 0.1) -> np.ndarray:
        """Return one row for each sample, the most outlying first, as a structured array.

        ``pandas.DataFrame(report.table())`` is a data frame of it. Columns: ``sample`` (an index, the first being 0),
        ``score``, ``p_value``, ``conformal_p_value``, ``flagged``, ``outputs`` (``wrong_outputs``, of several outputs),
        ``kind``, ``residual`` (root mean square of what was observed), and where there are dual variables,
        ``dual_norm`` and ``saturation``.
        """
        rows = self.residuals.reshape(len(self), -1)
        columns: dict[str, Any] = {
            "sample": np.arange(len(self)),
            "score": self.scores,
            "p_value": self.p_values,
            "conformal_p_value": self.conformal_p_values,
            "flagged": self.flagged(fdr),
            "outputs": self.wrong_outputs(fdr),
            "kind": self.kinds,
            "residual": np.sqrt(np.nanmean(rows**2, axis=1)),
            "dual_norm": self.dual_norms,
            "saturation": self.saturation,
        }
        known = {name: np.asarray(values)[self.ranking] for name, values in columns.items() if values is not None}
        table = np.empty(len(self), dtype=[(name, values.dtype) for name, values in known.items()])
        for name, values in known.items():
            table[name] = values
        return table

    def plot(self, ax: Any = None, fdr: float = 0.1) -> Any:
        """Draw the scores of all samples, the flagged ones in colour and with their number.

        Parameters
        ----------
        ax : Axes or None, default=None
            Where to draw; ``None`` makes a figure.
        fdr : float, default=0.1
            As for ``flagged``.

        Returns
        -------
        ax : Axes
            Where it was drawn.
        """
        ax = _axes(ax)
        is_flagged, samples = self.flagged(fdr), np.arange(len(self))
        ax.plot(samples[~is_flagged], self.scores[~is_flagged], ".", color="0.6", label="not flagged")
        ax.plot(samples[is_flagged], self.scores[is_flagged], "o", color="C3", label=f"flagged, FDR {fdr:g}")
        for i in self.ranking[: min(10, int(is_flagged.sum()))]:
            ax.annotate(str(i), (i, self.scores[i]), xytext=(4, 2), textcoords="offset points", fontsize="small")
        ax.set_xlabel("sample")
        ax.set_ylabel("score (standard deviations)")
        ax.set_title(f"{int(is_flagged.sum())} of {len(self)} samples flagged")
        ax.legend()
        return ax

    def plot_curves(self, ax: Any = None, fdr: float = 0.1) -> Any:
        """Draw the residual curves, the flagged ones in colour; as ``plot``."""
        if self.grid is None:
            raise ValueError("These residuals are no curves. Use plot().")
        ax = _axes(ax)
        is_flagged = self.flagged(fdr)
        curves = self.residuals.reshape(len(self), len(self.grid), -1)[:, :, 0]
        ax.plot(self.grid, curves[~is_flagged].T, color="0.8", lw=0.6)
        for i in self.ranking[: int(is_flagged.sum())][::-1]:
            ax.plot(self.grid, curves[i], lw=1.2)
        ax.set_xlabel("t")
        ax.set_title(f"{int(is_flagged.sum())} of {len(self)} curves flagged")
        return ax

    def __repr__(self) -> str:
        table, n_flagged = self.table(), int(self.flagged().sum())
        lines = [f"OutlierReport: {n_flagged} of {len(self)} samples flagged at a false discovery rate of 0.1"]
        lines += [
            f"  sample {row['sample']:>5}   score {row['score']:7.1f}   p-value {row['p_value']:.1e}   "
            + row["kind" if self.output_names is None else "outputs"]
            + (f"   saturation {row['saturation']:.2f}" if self.saturation is not None else "")
            for row in table[:_SHOWN]
        ]
        return "\n".join([*lines, "  ..."] if len(self) > _SHOWN else lines)


def _check_count(n: int) -> None:
    if n < FEWEST:
        raise ValueError(f"Outliers are looked for among at least {FEWEST} samples. Got n_samples = {n}.")


def _output_names(y: Any, report: OutlierReport) -> list[str] | None:
    """Return the names of the columns of y, or numbers; ``None`` where a sample is a number or a curve."""
    if report.grid is not None or report.residuals.ndim != 2 or report.residuals.shape[1] < 2:
        return None
    n_outputs = report.residuals.shape[1]
    columns = getattr(y, "columns", None)
    if columns is None or len(columns) != n_outputs:
        return [f"output {k}" for k in range(n_outputs)]
    return [str(name) for name in columns]


def _duals(model: Any, is_fitted: np.ndarray) -> dict[str, Any]:
    """Return what the dual variables of a model say of the samples that it was fitted to, NaN for the others."""
    duals, found = getattr(model, "dual_coef_", None), dict[str, Any]()
    if duals is not None and len(duals) == is_fitted.sum():
        norms = np.linalg.norm(host(duals).reshape(len(duals), -1), axis=1)
        known = {"dual_norms": norms, "saturation": getattr(model, "outlier_score_", None)}
        for name, values in known.items():
            if values is not None:
                found[name] = np.full(len(is_fitted), np.nan)
                found[name][is_fitted] = host(values)
    return found


def _axes(ax: Any) -> Any:
    return new_axes() if ax is None else ax


def _complete(residuals: Residuals) -> np.ndarray:
    """Return rows with their gaps filled: along a curve by interpolation, else by the median."""
    rows = residuals.values.astype(float)
    missing = np.isnan(rows)
    if missing.any():
        middle = np.nan_to_num(np.nanmedian(rows, axis=0))
        filled = np.where(missing, middle, rows)
        if residuals.grid is not None:
            filled = _interpolated(rows, filled, residuals)
        rows = filled
    return rows


def _interpolated(rows: np.ndarray, filled: np.ndarray, residuals: Residuals) -> np.ndarray:
    """Return curves with their gaps interpolated; those that were never observed are the median."""
    grid = residuals.grid
    assert grid is not None
    shaped, out = rows.reshape(len(rows), len(grid), -1), filled.reshape(len(rows), len(grid), -1).copy()
    for i, c in np.ndindex(len(rows), shaped.shape[2]):
        seen = ~np.isnan(shaped[i, :, c])
        if seen.any() and not seen.all():
            out[i, :, c] = np.interp(grid, grid[seen], shaped[i, seen, c])
    return out.reshape(rows.shape)
