"""Triton kernels behind ``fused_products``; imported only on machines with CUDA.

Rows and columns of every argument are padded to whole tiles, so nothing is masked: padded rows of A are zero, those of
the result are dropped. Sums of ``CHUNK`` columns have the precision of the tiles, their totals are in float64.
"""

import math

import triton
import triton.language as tl
from triton.language.extra import libdevice

__all__: list[str] = []


_LOG2_E = tl.constexpr(1 / math.log(2))  # from e^t to 2^f
_SHIFT = tl.constexpr(1.5 * 2.0**52)  # added to t, it leaves the nearest integer in the last bits
_SERIES = tl.constexpr(tuple(math.log(2) ** k / math.factorial(k) for k in range(12)))  # of 2^f, |f| <= 1/2


@triton.jit
def _profile(minus, PROFILE: tl.constexpr):
    """Return f for -r²: Gaussian (0), Matérn 3/2 (1), 5/2 (2) or exponential (3); for -r, the l1 distance (4)."""
    if PROFILE == 0 or PROFILE == 4:
        values = _exp(minus, 1.0)
    else:
        r = tl.sqrt(-minus)
        values = _exp(r, -1.0)
        if PROFILE == 1:
            values *= 1 + r
        elif PROFILE == 2:
            values *= 1 + r - minus * (1 / 3)
    return values


@triton.jit
def _exp(x, SIGN: tl.constexpr):
    """Return exp(SIGN x), where SIGN x is at most zero.

    Float32 flushes results below the smallest normal number to zero, which is faster. In float64, 2^t is 2^n times the
    series of 2^(t - n), which is off by 6e-15; with the general function, registers spill.
    """
    if x.dtype == tl.float64:
        t = tl.maximum(SIGN * x, -700.0) * _LOG2_E
        shifted = t + _SHIFT
        f = t - (shifted - _SHIFT)
        series = tl.full(x.shape, _SERIES[11], tl.float64)
        for k in tl.static_range(11, 0, -1):
            series = series * f + _SERIES[k - 1]
        bits = series.to(tl.int64, bitcast=True) + (shifted.to(tl.int64, bitcast=True) << 52)
        return bits.to(tl.float64, bitcast=True)
    else:
        return libdevice.exp2(x * (SIGN * _LOG2_E))


@triton.jit
def by_squares(
    rows, columns, A, out, n, m, outputs,
    WIDTH: tl.constexpr, BLOCK: tl.constexpr, OUTPUTS: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
    CHUNK: tl.constexpr, PROFILE: tl.constexpr,
):  # fmt: skip
    """Add f(rows columns') A to out for rows (n, WIDTH), columns (m, WIDTH) and A (m, outputs), f of -r²."""
    i = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    d, q = tl.arange(0, BLOCK), tl.program_id(1) * OUTPUTS + tl.arange(0, OUTPUTS)
    if WIDTH == BLOCK:
        left = tl.load(rows + i[:, None] * WIDTH + d[None, :])
    for first in range(0, m, CHUNK):
        part = tl.zeros((ROWS, OUTPUTS), A.dtype.element_ty)
        for begin in range(first, min(first + CHUNK, m), COLUMNS):
            j = begin + tl.arange(0, COLUMNS).to(tl.int64)
            if WIDTH == BLOCK:
                right = tl.load(columns + j[:, None] * WIDTH + d[None, :])
                minus = tl.dot(left, tl.trans(right), input_precision="tf32x3", out_dtype=A.dtype.element_ty)
            else:
                minus = tl.zeros((ROWS, COLUMNS), A.dtype.element_ty)
                for k in range(0, WIDTH, BLOCK):
                    some = tl.load(rows + i[:, None] * WIDTH + (k + d)[None, :])
                    right = tl.load(columns + j[:, None] * WIDTH + (k + d)[None, :])
                    minus = tl.dot(some, tl.trans(right), minus, input_precision="tf32x3", out_dtype=A.dtype.element_ty)
            a = tl.load(A + j[:, None] * outputs + q[None, :])
            values = _profile(tl.minimum(minus, 0.0), PROFILE)
            part = tl.dot(values, a, part, input_precision="tf32x3", out_dtype=A.dtype.element_ty)
        place = out + i[:, None] * outputs + q[None, :]
        tl.store(place, tl.load(place) + part.to(tl.float64))


@triton.jit
def _times(left_high, left_low, right_high, right_low):
    """Return the product of two matrices that are split into halves, high + low / 2048; low times low is dropped."""
    low = tl.dot(left_low, right_high)
    low = tl.dot(left_high, right_low, low)
    return tl.dot(left_high, right_high, low * (1.0 / 2048.0))


@triton.jit
def by_halves(
    rows, columns, A, out, n, m, outputs,
    WIDTH: tl.constexpr, BLOCK: tl.constexpr, OUTPUTS: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
    CHUNK: tl.constexpr, PROFILE: tl.constexpr,
):  # fmt: skip
    """Add the same, each argument as two float16 matrices one after the other, (2, n, WIDTH): high + low / 2048.

    For the exponential, rows and columns are the same points: distances on the diagonal are zero.
    """
    i = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    d, q = tl.arange(0, BLOCK), tl.program_id(1) * OUTPUTS + tl.arange(0, OUTPUTS)
    rows_low, columns_low, A_low = rows + n * WIDTH, columns + m * WIDTH, A + m * outputs
    if WIDTH == BLOCK:
        left = tl.load(rows + i[:, None] * WIDTH + d[None, :])
        left_low = tl.load(rows_low + i[:, None] * WIDTH + d[None, :])
    for first in range(0, m, CHUNK):
        part = tl.zeros((ROWS, OUTPUTS), tl.float32)
        for begin in range(first, min(first + CHUNK, m), COLUMNS):
            j = begin + tl.arange(0, COLUMNS).to(tl.int64)
            if WIDTH == BLOCK:
                there = j[:, None] * WIDTH + d[None, :]
                right, right_low = tl.load(columns + there), tl.load(columns_low + there)
                minus = _times(left, left_low, tl.trans(right), tl.trans(right_low))
            else:
                minus = tl.zeros((ROWS, COLUMNS), tl.float32)
                for k in range(0, WIDTH, BLOCK):
                    here, there = i[:, None] * WIDTH + (k + d)[None, :], j[:, None] * WIDTH + (k + d)[None, :]
                    some, some_low = tl.load(rows + here), tl.load(rows_low + here)
                    right, right_low = tl.load(columns + there), tl.load(columns_low + there)
                    minus += _times(some, some_low, tl.trans(right), tl.trans(right_low))
            minus = tl.minimum(minus, 0.0)
            if PROFILE == 3:
                minus = tl.where(i[:, None] == j[None, :], 0.0, minus)
            values = _profile(minus, PROFILE)
            high = values.to(tl.float16)
            low = ((values - high.to(tl.float32)) * 2048.0).to(tl.float16)
            there = j[:, None] * outputs + q[None, :]
            part += _times(high, low, tl.load(A + there), tl.load(A_low + there))  # tensor cores would truncate sums
        place = out + i[:, None] * outputs + q[None, :]
        tl.store(place, tl.load(place) + part.to(tl.float64))


@triton.jit
def by_differences(
    rows, columns, A, out, n, m, outputs,
    WIDTH: tl.constexpr, BLOCK: tl.constexpr, OUTPUTS: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
    CHUNK: tl.constexpr, PROFILE: tl.constexpr,
):  # fmt: skip
    """Add f(rows, columns) A to out for rows (WIDTH, n) and columns (WIDTH, m); f of the l1 distance for profile 4."""
    i = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    q = tl.program_id(1) * OUTPUTS + tl.arange(0, OUTPUTS)
    for first in range(0, m, CHUNK):
        part = tl.zeros((ROWS, OUTPUTS), A.dtype.element_ty)
        for begin in range(first, min(first + CHUNK, m), COLUMNS):
            j = begin + tl.arange(0, COLUMNS).to(tl.int64)
            minus = tl.zeros((ROWS, COLUMNS), A.dtype.element_ty)
            for k in tl.range(0, WIDTH, loop_unroll_factor=4):
                difference = tl.load(rows + k * n + i)[:, None] - tl.load(columns + k * m + j)[None, :]
                if PROFILE == 4:
                    minus -= tl.abs(difference)
                else:
                    minus -= difference * difference
            values = _profile(minus, PROFILE)
            a = tl.load(A + j[:, None] * outputs + q[None, :])
            part = tl.dot(values, a, part, input_precision="tf32x3", out_dtype=A.dtype.element_ty)
        place = out + i[:, None] * outputs + q[None, :]
        tl.store(place, tl.load(place) + part.to(tl.float64))
