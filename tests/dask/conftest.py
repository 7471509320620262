"""A cluster of two processes, and a sample in chunks."""

import os
import pickle
import signal
from typing import ClassVar

import numpy as np
import pytest

from fenchel.chunks import fit as dask_fit

dask = pytest.importorskip("dask")
array = pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")

_delayed = dask.delayed


@pytest.fixture(scope="session")
def cluster():
    options = {"processes": True, "n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0"}
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster) as client:
        yield client


class Done:
    """What a future is where there are no workers: the result, and a note of what a client has asked for."""

    seen: ClassVar[list[int]] = []  # bytes

    def __init__(self, value):
        self.value = value

    def result(self):
        self.seen.append(len(pickle.dumps(self.value)))
        return self.value


class Here:
    """A client that computes every task at once, in this process."""

    def submit(self, function, *args, pure=False):
        return Done(function(*(self._value(arg) for arg in args)))

    def gather(self, futures):
        return [future.result() for future in futures]

    def _value(self, arg):
        if isinstance(arg, list):
            return [self._value(one) for one in arg]
        return arg.value if isinstance(arg, Done) else arg

    def compute(self, parts):
        return [Done(value) for value in dask.compute(*parts, scheduler="synchronous")]

    def scatter(self, value, **options):
        return Done(value)

    def nthreads(self):
        return {"here": 1}


@pytest.fixture
def here(monkeypatch):
    """Tasks run in this process: the same numbers as on a cluster, without its overhead."""
    monkeypatch.setattr(dask_fit, "_client", Here)
    monkeypatch.setattr(Done, "seen", [])
    monkeypatch.setattr(dask, "delayed", lambda value, **options: _delayed(getattr(value, "value", value), **options))
    with dask.config.set(scheduler="synchronous"):
        yield


@pytest.fixture
def sample(rng):
    return drawn(rng)


def drawn(rng, n=200):
    """Return inputs and outputs of which a tenth is wrong.

    In memory landmarks are drawn in the order of the contents of samples, on a cluster in the given one: here the same.
    """
    X = rng.uniform(-2, 2, (n, 3))
    X = X[np.argsort(X[:, 0])]
    Y = np.sin(X @ rng.standard_normal((3, 2))) + 0.1 * rng.standard_normal((n, 2))
    Y[::10] += 3
    return X, Y


def chunked(*arrays, rows=80):
    """Return arrays as Dask arrays."""
    return [array.from_array(one, chunks=(rows, *one.shape[1:])) for one in arrays]


def killing(client, least=1):
    """Return a watcher that kills one of the workers at an iteration, and the list of those killed."""
    killed = []

    def kill(n_iter, certificate):
        if n_iter >= least and not killed:
            killed.append(next(iter(client.run(os.getpid).values())))
            os.kill(killed[0], signal.SIGKILL)

    return kill, killed
