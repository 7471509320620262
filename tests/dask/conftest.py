"""A cluster of two processes, and a sample in chunks."""

import os
import signal

import numpy as np
import pytest

array = pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")


@pytest.fixture(scope="session")
def cluster():
    options = {"processes": True, "n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster) as client:
        yield client


@pytest.fixture
def sample(rng):
    return drawn(rng)


def drawn(rng, n=200):
    """Return inputs and outputs of which a tenth is wrong."""
    X = rng.uniform(-2, 2, (n, 3))
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
