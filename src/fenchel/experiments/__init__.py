"""Published experiments, one module each: ``run(report)`` computes every number beside the published one."""

from fenchel.experiments import dti, lip, missing, synthetic, yeast_curves

__all__ = ["EXPERIMENTS"]

EXPERIMENTS = {"dti": dti, "lip": lip, "missing": missing, "synthetic": synthetic, "yeast-curves": yeast_curves}
