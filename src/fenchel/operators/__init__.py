"""Gram operators: linear operators on n × p arrays, and their factorisations."""

from fenchel.operators.blocks import Blocks
from fenchel.operators.conjugate import ConjugateGradients
from fenchel.operators.cyclic import Cyclic
from fenchel.operators.dense import Dense
from fenchel.operators.directional import Anchored, Directional
from fenchel.operators.eigenbasis import Eigenbasis
from fenchel.operators.isotypic import Isotypic
from fenchel.operators.kept_rows import KeptRows
from fenchel.operators.kronecker import Kronecker, entries, kronecker
from fenchel.operators.operator import Operator, ScalarOperator, is_thin, scaled, width
from fenchel.operators.output import Output
from fenchel.operators.remembered import Remembered
from fenchel.operators.rotation import Rotation, rotation_of
from fenchel.operators.streamed import Streamed, error_in_single, fits_in_single, streamed
from fenchel.operators.sum import Sum
from fenchel.operators.thin import Thin, orthogonal

__all__ = [
    "Anchored",
    "Blocks",
    "ConjugateGradients",
    "Cyclic",
    "Dense",
    "Directional",
    "Eigenbasis",
    "Isotypic",
    "KeptRows",
    "Kronecker",
    "Operator",
    "Output",
    "Remembered",
    "Rotation",
    "ScalarOperator",
    "Streamed",
    "Sum",
    "Thin",
    "entries",
    "error_in_single",
    "fits_in_single",
    "is_thin",
    "kronecker",
    "orthogonal",
    "rotation_of",
    "scaled",
    "streamed",
    "width",
]
