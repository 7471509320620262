"""Published experiments, one module each: ``run(report)`` computes every number beside the published one."""

from fenchel.experiments import lip, yeast_curves

__all__ = ["EXPERIMENTS"]

EXPERIMENTS = {"lip": lip, "yeast-curves": yeast_curves}
