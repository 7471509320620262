"""Triton kernels behind ``fused_product``; imported only on machines with CUDA."""

import triton
import triton.language as tl

__all__: list[str] = []


@triton.jit
def by_squares(
    rows, columns, A, out, n, m,
    WIDTH: tl.constexpr, OUTPUTS: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, CHUNK: tl.constexpr,
    PROFILE: tl.constexpr,
):  # fmt: skip
    """Write f(rows columns') A for rows (n, WIDTH), columns (m, WIDTH) and A (m, OUTPUTS), f of squared distances."""
    i = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    d, q = tl.arange(0, WIDTH), tl.arange(0, OUTPUTS)
    left = tl.load(rows + i[:, None] * WIDTH + d[None, :], mask=i[:, None] < n, other=0.0)
    total = tl.zeros((ROWS, OUTPUTS), tl.float64)
    for first in range(0, m, CHUNK):
        part = tl.zeros((ROWS, OUTPUTS), tl.float32)
        for begin in range(first, min(first + CHUNK, m), COLUMNS):
            j = begin + tl.arange(0, COLUMNS)
            right = tl.load(columns + j[:, None] * WIDTH + d[None, :], mask=j[:, None] < m, other=0.0)
            a = tl.load(A + j[:, None] * OUTPUTS + q[None, :], mask=j[:, None] < m, other=0.0)
            square = tl.maximum(tl.dot(left, tl.trans(right), input_precision="tf32x3"), 0.0)
            if PROFILE == 0:
                values = tl.exp(-square)
            else:
                r = tl.sqrt(square)
                if PROFILE == 1:
                    values = (1 + r) * tl.exp(-r)
                else:
                    values = (1 + r + square / 3) * tl.exp(-r)
            part = tl.dot(values, a, part, input_precision="tf32x3")
        total += part.to(tl.float64)
    tl.store(out + i[:, None] * OUTPUTS + q[None, :], total, mask=i[:, None] < n)


@triton.jit
def by_differences(
    rows, columns, A, out, n, m,
    WIDTH: tl.constexpr, OUTPUTS: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, CHUNK: tl.constexpr,
    PROFILE: tl.constexpr,
):  # fmt: skip
    """Write exp(-r) A for rows (WIDTH, n), columns (WIDTH, m), r the Euclidean (0) or the l1 (1) distance."""
    i = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    q = tl.arange(0, OUTPUTS)
    total = tl.zeros((ROWS, OUTPUTS), tl.float64)
    for first in range(0, m, CHUNK):
        part = tl.zeros((ROWS, OUTPUTS), tl.float32)
        for begin in range(first, min(first + CHUNK, m), COLUMNS):
            j = begin + tl.arange(0, COLUMNS)
            a = tl.load(A + j[:, None] * OUTPUTS + q[None, :], mask=j[:, None] < m, other=0.0)
            r = tl.zeros((ROWS, COLUMNS), tl.float32)
            for k in range(WIDTH):
                x = tl.load(rows + k * n + i, mask=i < n, other=0.0)
                z = tl.load(columns + k * m + j, mask=j < m, other=0.0)
                difference = x[:, None] - z[None, :]
                if PROFILE == 0:
                    r += difference * difference
                else:
                    r += tl.abs(difference)
            if PROFILE == 0:
                r = tl.sqrt(r)
            part = tl.dot(tl.exp(-r), a, part, input_precision="tf32x3")
        total += part.to(tl.float64)
    tl.store(out + i[:, None] * OUTPUTS + q[None, :], total, mask=i[:, None] < n)
