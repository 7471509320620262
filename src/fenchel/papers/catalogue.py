"""Experiments that reproduce published results, one module each."""

from importlib import import_module

from fenchel.app.cli.reproduce import EXPERIMENT_NAMES
from fenchel.papers.experiment import Experiment

__all__ = ["EXPERIMENTS"]


def _experiment(name: str) -> Experiment:
    module: Experiment = import_module(f"fenchel.papers.{name.replace('-', '_')}")
    return module


EXPERIMENTS = {name: _experiment(name) for name in EXPERIMENT_NAMES}
