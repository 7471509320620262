"""
A messy table, start to finish
==============================

One table with most of what goes wrong in tables: missing and wrong cells, a skewed target, names and dates. The model,
its bands and the list of suspicious rows come without a setting.

Needs pandas. The table holds batches of a made-up mortar: a date, a supplier, four amounts, and three measurements.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import fenchel
from fenchel import ConformalRegressor, OperatorKernelRegressorCV
from fenchel.app.tables import TableRegressor
from fenchel.app.tables.outliers import outliers_of_table

rng = np.random.default_rng(1)
n = 320
supplier = rng.choice(["Ahlers", "Brandt", "Colmar"], n)
day = rng.integers(0, 365, n)
cement, water, sand, additive = rng.uniform([300, 120, 500, 0], [450, 220, 900, 6], (n, 4)).T
quality = np.select([supplier == "Ahlers", supplier == "Brandt"], [3.0, -2.0], 0.0)
strength = 0.12 * cement - 0.15 * water + quality + 4 * np.sin(water / 15) + 12
flow = np.exp(0.012 * water + 0.25 * additive - 0.001 * sand)  # skewed: few batches flow far
density = 2.0 + 0.008 * strength - 0.05 * np.log(flow)
TARGETS = {"strength": "MPa", "flow": "cm", "density": "g/cm³"}
truth = pd.DataFrame({"strength": strength, "flow": flow, "density": density})
noise = pd.DataFrame(rng.standard_normal(truth.shape) * [0.5, 0.2, 0.005], columns=truth.columns)
table = pd.DataFrame(
    {
        "delivered": pd.Timestamp("2025-01-01") + pd.to_timedelta(day, unit="D"),
        "supplier": supplier,
        "cement": cement,
        "water": water,
        "sand": sand,
        "additive": additive,
    }
).join(truth + noise)
table.index = [f"batch {k}" for k in range(n)]

# %%
# What goes wrong
# ---------------
#
# A third of the measurements was never made, some amounts were not written down, and one measurement in thirty is
# wrong.

wrong = rng.random(truth.shape) < 0.03
for column, name in enumerate(TARGETS):
    cells = table[name].to_numpy(copy=True)
    cells[wrong[:, column]] += 8 * cells.std()
    cells[rng.random(n) < 0.33] = np.nan
    table[name] = cells
table.loc[table.index[rng.random(n) < 0.05], "sand"] = np.nan
table.loc[table.index[rng.random(n) < 0.05], "supplier"] = None
train, test, test_truth = table[:240], table[240:], truth[240:].to_numpy()
print(train.head(4).to_string())
print(f"{train.notna().all(axis=1).sum()} of {len(train)} rows are complete")

# %%
# The model
# ---------
#
# ``TableRegressor`` encodes names and dates, and keeps the encoding with the model. Missing measurements are left out
# of the loss, cell by cell: rows without any are lost, and no others. Where that helps, the measurements learn from one
# another.

model = TableRegressor(OperatorKernelRegressorCV(), targets=list(TARGETS)).fit(train)
print("\n".join(model.notes_))
print(f"{model.estimator_.best_loss_}, lam {model.estimator_.best_lam_:.1e}, gap {model.estimator_.duality_gap_:.0e}")

# %%
# Predictions as a frame have the names of the targets and the index of the table.

predicted = model.set_output(predict="pandas").predict(test)
print(predicted.round(2).head(3).to_string())

fig, axes = plt.subplots(1, 3, figsize=(9, 3.2), layout="constrained")
for k, (ax, (name, unit)) in enumerate(zip(axes, TARGETS.items(), strict=True)):
    ax.plot(test_truth[:, k], predicted[name], "o", ms=3)
    ax.axline((test_truth[:, k].mean(),) * 2, slope=1, color="0.6", lw=1)
    ax.set(xlabel=f"true {name} [{unit}]", ylabel="predicted", title=name)

# %%
# Wrong cells
# -----------
#
# Each row is compared with a model of the other rows. The report names the measurements that look wrong.

report, rows = outliers_of_table(model, train)
suspects = report.table(as_frame=True)[["score", "p_value", "outputs", "flagged"]]
print(suspects[suspects["flagged"]].head(8).round(4).to_string())
seen = wrong[:240] & train[list(TARGETS)].notna().to_numpy()
flagged = np.zeros(240, dtype=bool)
flagged[rows - 1] = report.flagged()
print(f"{flagged[seen.any(axis=1)].sum()} of {seen.any(axis=1).sum()} rows with a wrong cell are flagged,")
print(f"and {flagged[~seen.any(axis=1)].sum()} of the other {(~seen.any(axis=1)).sum()}")

# %%
# Cells that are named can be emptied: the rest of the row still counts.

emptied = train.copy()
for batch, names in suspects.loc[suspects["flagged"], "outputs"].items():
    emptied.loc[batch, names.split(", ")] = np.nan
fits = {"all rows": model, "complete rows alone": train.dropna(), "without the named cells": emptied}
for text, rows_of in fits.items():
    fit = model if rows_of is model else TableRegressor(OperatorKernelRegressorCV(), targets=list(TARGETS)).fit(rows_of)
    errors = np.sqrt(np.mean((np.asarray(fit.predict(test)) - test_truth) ** 2, axis=0)) / np.std(test_truth, axis=0)
    print(f"{text:<24} errors in deviations: {dict(zip(TARGETS, errors.round(3).tolist(), strict=True))}")

# %%
# Bands
# -----
#
# Calibrated on rows that the model has not seen. About 3 % of these are wrong, which ``contamination`` tells the band.

with_bands = TableRegressor(ConformalRegressor(joint=False, contamination=0.03), targets=list(TARGETS)).fit(train)
lower, upper = with_bands.predict_interval(test)
inside = (lower <= test_truth) & (test_truth <= upper)
print({name: f"{share:.0%}" for name, share in zip(TARGETS, inside.mean(axis=0), strict=True)})

order = np.argsort(test_truth[:, 1])
fig, ax = plt.subplots(figsize=(6, 3.2), layout="constrained")
ax.fill_between(np.arange(len(order)), lower[order, 1], upper[order, 1], alpha=0.25, label="90 % band")
ax.plot(test_truth[order, 1], "k.", ms=4, label="truth")
ax.set(xlabel="test batches, sorted", ylabel="flow [cm]")
ax.legend()

# %%
# Saving
# ------
#
# The file holds the encoding, the model and its certificate, and no code is run when it is read.

with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "mortar.fenchel"
    fenchel.save(model, path)
    again = fenchel.load(path)
print(bool((again.predict(test) == predicted).all().all()))
