"""Labels of samples: groups that are kept together, strata in each of which bands cover, and their former names."""

from dataclasses import dataclass
from typing import Self

from numpy.typing import ArrayLike

from fenchel.exceptions import warn_user

__all__: list[str] = []


@dataclass(frozen=True, eq=False)
class Labels:
    """Labels as they were given to ``fit``."""

    groups: ArrayLike | None
    strata: ArrayLike | None
    replicates: ArrayLike | None = None  # the name of groups up to 0.2, when groups= were strata

    def renamed(self) -> Self:
        """Return groups and strata; calls of 0.2 that can be told from others keep their meaning, with a warning."""
        if self.replicates is None:
            return self
        if self.groups is None:
            _warn("replicates= is now groups=")
            return type(self)(self.replicates, self.strata)
        if self.strata is not None:
            raise ValueError("Pass groups= and strata=. replicates= is the former name of groups=.")
        _warn("groups= beside replicates= is now strata=, and replicates= is groups=")
        return type(self)(self.replicates, self.groups)


def strata_of_new(strata: ArrayLike | None, groups: ArrayLike | None, has_strata: bool) -> ArrayLike | None:
    """Return the strata of new samples, which had the name groups up to 0.2."""
    if groups is None:
        return strata
    if not has_strata:
        raise ValueError(
            "New samples have no groups. The groups of fit are samples that are kept together, such as replicates. For "
            "coverage in each group pass strata= to fit, and to predict_interval, predict_set and update."
        )
    _warn("groups= of new samples is now strata=")
    return groups if strata is None else strata


def _warn(what: str) -> None:
    warn_user(f"{what}; the old name ends with the next release.", FutureWarning, "former-names")
