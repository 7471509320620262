import pytest


@pytest.fixture
def torch():
    """PyTorch in one thread: with more, small arrays on a busy machine wait for each other."""
    torch = pytest.importorskip("torch", reason="torch is not installed")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield torch
    torch.set_num_threads(threads)


@pytest.fixture
def skfda():
    return pytest.importorskip("skfda", reason="scikit-fda is not installed")
