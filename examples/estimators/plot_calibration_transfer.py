"""
A calibration for a second instrument
=====================================

How to predict from the spectra of another instrument, after a few samples were measured on both.

The second instrument has another gain, an offset, a shift of the wavelengths and noise of its own. What is learned from
the samples that both have seen is the *difference* of their spectra: a simple transfer then changes little.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.cross_decomposition import PLSRegression
from sklearn.model_selection import GridSearchCV

from fenchel import OperatorKernelRegressorCV
from fenchel.kernels import Gaussian
from fenchel.report.figures import plot_lines

# %%
# Simulated spectra of mixtures with scatter and stray light; the fraction of the first component is predicted.

rng = np.random.default_rng(0)
nm = np.linspace(1100, 2500, 141)
peaks = np.exp(-(((nm - np.array([[1450], [1720], [1940], [2300]])) / 65) ** 2))
fractions = rng.dirichlet(4 * np.ones(4), 260)
first = rng.lognormal(0, 0.1, (260, 1)) * -np.log10(0.9 * 10 ** -(2 * fractions @ peaks) + 0.1)
first += 0.1 * rng.standard_normal((260, 1)) + 0.003 * rng.standard_normal(first.shape)
second = np.array([np.interp(nm, nm + 6, spectrum) for spectrum in first]) * (1.07 - 0.1 * (nm - 1100) / 1000)
second += 0.02 * np.sin(nm / 150) + 0.002 * rng.standard_normal(first.shape)
y = fractions[:, 0]


def snv(X):
    return (X - X.mean(axis=1, keepdims=True)) / X.std(axis=1, keepdims=True)


def error(spectra):
    return np.sqrt(np.mean((model.predict(snv(spectra)) - y[160:]) ** 2))


model = OperatorKernelRegressorCV(Gaussian("median"), center=True).fit(snv(first[:100]), y[:100])
print(f"first instrument: {error(first[160:]):.4f}, second, not transferred: {error(second[160:]):.4f}")

# %%
# Transfer is one regression from spectra to differences of spectra. Compared are the same calibration after direct
# standardisation, which is a PLS regression from the spectra of one instrument to those of the other, with the number
# of components chosen by cross-validation; and a calibration of the second instrument alone, from the same samples.

counts = [6, 12, 25, 50]
errors = {"differences": [], "direct, PLS": [], "second alone": []}
for count in counts:
    X, Z, new = second[100 : 100 + count], first[100 : 100 + count], second[160:]
    transfer = OperatorKernelRegressorCV(Gaussian("median"), losses=["square"], center=True).fit(X, Z - X)
    errors["differences"].append(error(new + transfer.predict(new)))
    components = {"n_components": range(1, min(9, count * 4 // 5))}
    direct = GridSearchCV(PLSRegression(scale=False), components, scoring="neg_mean_squared_error").fit(X, Z)
    errors["direct, PLS"].append(error(direct.predict(new)))
    alone = OperatorKernelRegressorCV(Gaussian("median"), center=True).fit(snv(X), y[100 : 100 + count])
    errors["second alone"].append(np.sqrt(np.mean((alone.predict(snv(new)) - y[160:]) ** 2)))
for name, values in errors.items():
    print(f"{name}: {np.round(values, 4)}")

# %%
# The dotted line is the first instrument. With six samples on both, differences suffice and direct standardisation does
# not; from twelve on, direct standardisation is as good, or better on other draws. PLS of the differences,
# ``fit(X, Z - X)``, has about the errors of the kernel with six samples too: it is the difference that counts.

ax = plot_lines(errors, x=counts, x_label="samples on both instruments", y_label="root mean squared error")
ax.axhline(error(first[160:]), color="0.5", linestyle=":")
ax.set_yscale("log")
plt.show()
