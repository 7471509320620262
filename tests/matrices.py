"""Matrices of operators, from their products alone."""

import numpy as np


def full_matrix(operator, p):
    """Return the (n p) × (m p) matrix of an operator, one unit array after the other."""
    m = operator.shape[1]
    columns = []
    for unit in np.eye(m * p):
        columns.append(np.ravel(operator.matmul(unit.reshape(m, p))))
    return np.stack(columns, axis=1)
