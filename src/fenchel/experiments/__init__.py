"""Published experiments, one module each: ``run(report)`` computes every number beside the published one."""

from fenchel.experiments import yeast_curves

__all__ = ["EXPERIMENTS"]

EXPERIMENTS = {"yeast-curves": yeast_curves}
