"""What the page on clusters shows runs on two processes of this machine."""

import numpy as np
from dask import array

from tests.test_pages import blocks_of, names_after, sample


def test_the_page_on_clusters_runs(cluster, tmp_path, monkeypatch):
    fit, local, slurm, kubernetes, search = blocks_of("clusters.rst", 5)
    for block in (local, slurm, kubernetes):  # they start workers, the last two on a batch system and on Kubernetes
        compile(block, "clusters.rst", "exec")
    data = sample()
    tables = {"inputs.zarr": data["X"], "outputs.zarr": data["Y"]}
    monkeypatch.setattr(array, "from_zarr", lambda name: array.from_array(tables[name], chunks=(20, -1)))
    fit = fit.replace('Client("tcp://scheduler:8786")', "cluster").replace("Nystrom(1000", "Nystrom(20")
    store = f"da.to_npy_stack({str(tmp_path)!r}, model.predict(X))"
    fit = fit.replace('model.predict(X).to_zarr("predictions.zarr")', store)
    names = names_after("clusters.rst", [fit], {"cluster": cluster})
    assert names["model"].duality_gap_ <= 1e-6
    stored = array.from_npy_stack(str(tmp_path)).compute()
    assert np.allclose(stored, names["model"].predict(data["X"]))
    names_after("clusters.rst", [search], names | {"X_small": data["X"], "Y_small": data["Y"]})
