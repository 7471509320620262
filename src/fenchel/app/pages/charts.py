"""Small charts as inline SVG, with colours that follow the page, light or dark, and tooltips on the marks."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape

import numpy as np
from numpy.typing import ArrayLike

__all__ = ["Axis", "Chart", "bar", "heatmap", "number"]

WIDTH, HEIGHT = 480, 300  # units of the drawing; text of 14 units stays readable on a phone
_NAMES = 8  # maximum number of names below an axis
_LEFT, _RIGHT, _TOP, _BOTTOM = 78, 14, 16, 52


@dataclass(frozen=True)
class Axis:
    """A linear or logarithmic axis from ``low`` to ``high``, or an axis with names at 1, 2, 3, ..."""

    low: float
    high: float
    label: str
    is_log: bool = False
    names: tuple[str, ...] = ()

    @classmethod
    def of(cls, values: ArrayLike, label: str, is_log: bool = False) -> "Axis":
        """Return an axis that covers all finite values, with a small margin."""
        numbers = np.asarray(values, dtype=np.float64)
        numbers = numbers[np.isfinite(numbers) & ((numbers > 0) | (not is_log))]
        if not len(numbers):
            return cls(0.1 if is_log else 0.0, 1.0, label, is_log)
        low, high = float(numbers.min()), float(numbers.max())
        if is_log:
            return cls(low / 1.5, high * 1.5, label, True)
        margin = 0.04 * (high - low) or 0.5 * abs(high) or 0.5
        return cls(low - margin, high + margin, label)

    @classmethod
    def of_names(cls, names: Sequence[str], label: str) -> "Axis":
        """Return an axis of names; if there are many, numbers replace them."""
        shown = tuple(names) if len(names) <= _NAMES else ()
        return cls(0.5, len(names) + 0.5, label if shown else f"{label}, by number", False, shown)

    def share(self, value: float) -> float:
        """Return the relative position of a value: 0 at the low end, 1 at the high end."""
        if self.is_log:
            low, high = math.log(self.low), math.log(self.high)
            return (math.log(max(value, self.low)) - low) / (high - low)
        return (value - self.low) / (self.high - self.low)

    def ticks(self, most: int = 6) -> list[float]:
        """Return round numbers on the axis."""
        if self.names:
            return [k + 1.0 for k in range(len(self.names))]
        if self.is_log:
            first, last = math.ceil(math.log10(self.low) - 1e-9), math.floor(math.log10(self.high) + 1e-9)
            if last > first:
                step = max(1, math.ceil((last - first + 1) / most))
                return [10.0**k for k in range(first, last + 1, step)]
        raw = (self.high - self.low) / most
        size = 10.0 ** math.floor(math.log10(raw))
        step_size = next(size * factor for factor in (1, 2, 5, 10) if size * factor >= raw)
        first = math.ceil(self.low / step_size - 1e-9)
        return [k * step_size for k in range(first, math.floor(self.high / step_size + 1e-9) + 1)]

    def text(self, tick: float) -> str:
        """Return the label of a tick."""
        if not self.names:
            return number(tick)
        name, room = self.names[round(tick) - 1], 44 // len(self.names)
        return name if len(name) <= room else name[: room - 1] + "…"


@dataclass
class Chart:
    """Lines and dots between two axes."""

    x: Axis
    y: Axis
    _marks: list[str] = field(default_factory=list)

    def line(self, xs: ArrayLike, ys: ArrayLike, kind: str = "line") -> None:
        """Draw a line, with gaps where a value is not finite; ``kind`` is its CSS class."""
        runs: list[list[str]] = [[]]
        for x, y in zip(np.asarray(xs, dtype=float), np.asarray(ys, dtype=float), strict=True):
            if math.isfinite(y):
                runs[-1].append("{},{}".format(*self._place(x, y)))
            elif runs[-1]:
                runs.append([])
        self._marks += [f'<polyline class="{kind}" points="{" ".join(run)}"/>' for run in runs if len(run) > 1]

    def dots(
        self, xs: ArrayLike, ys: ArrayLike, tips: Sequence[str], kind: str = "dot", shows: Sequence[str] | None = None
    ) -> None:
        """Draw dots with tooltips; a dot with an entry in ``shows`` can be clicked to show a sample."""
        for k, (x, y) in enumerate(zip(np.asarray(xs, dtype=float), np.asarray(ys, dtype=float), strict=True)):
            if not math.isfinite(y):
                continue
            left, top = self._place(x, y)
            show = f' data-show="{escape(shows[k])}"' if shows is not None and shows[k] else ""
            tip = escape(tips[k])
            self._marks.append(f'<circle class="{kind}" cx="{left}" cy="{top}" r="3.5" data-tip="{tip}"{show}/>')

    def strokes(self, xs: ArrayLike, ys: ArrayLike, kind: str = "stroke") -> None:
        """Draw a short horizontal stroke at each point."""
        for x, y in zip(np.asarray(xs, dtype=float), np.asarray(ys, dtype=float), strict=True):
            left, top = self._place(x, y)
            self._marks.append(f'<line class="{kind}" x1="{left - 11}" x2="{left + 11}" y1="{top}" y2="{top}"/>')

    def level(self, y: float, text: str, at_end: bool = False) -> None:
        """Draw a horizontal line with text above its left end, or above its right end with ``at_end``."""
        top = self._place(self.x.low, y)[1]
        place = f'x="{WIDTH - _RIGHT - 4}" text-anchor="end"' if at_end else f'x="{_LEFT + 6}"'
        self._marks.append(
            f'<line class="level" x1="{_LEFT}" x2="{WIDTH - _RIGHT}" y1="{top}" y2="{top}"/>'
            f'<text class="note" {place} y="{top - 7}">{escape(text)}</text>'
        )

    def svg(self, title: str) -> str:
        """Return the chart as SVG."""
        parts = []
        for tick in self.x.ticks():
            left = self._place(tick, self.y.low)[0]
            parts.append(f'<line class="grid" x1="{left}" x2="{left}" y1="{_TOP}" y2="{HEIGHT - _BOTTOM}"/>')
            parts.append(
                f'<text x="{left}" y="{HEIGHT - _BOTTOM + 18}" text-anchor="middle">{escape(self.x.text(tick))}</text>'
            )
        for tick in self.y.ticks():
            top = self._place(self.x.low, tick)[1]
            parts.append(f'<line class="grid" x1="{_LEFT}" x2="{WIDTH - _RIGHT}" y1="{top}" y2="{top}"/>')
            parts.append(f'<text x="{_LEFT - 6}" y="{top + 5}" text-anchor="end">{escape(self.y.text(tick))}</text>')
        middle, half = (_LEFT + WIDTH - _RIGHT) / 2, (_TOP + HEIGHT - _BOTTOM) / 2
        parts.append(f'<text x="{middle}" y="{HEIGHT - 8}" text-anchor="middle">{escape(self.x.label)}</text>')
        turned = f'transform="rotate(-90 14 {half})"'
        parts.append(f'<text x="14" y="{half}" text-anchor="middle" {turned}>{escape(self.y.label)}</text>')
        return _drawing(title, HEIGHT, "".join([*parts, *self._marks]))

    def _place(self, x: float, y: float) -> tuple[float, float]:
        left = _LEFT + self.x.share(x) * (WIDTH - _LEFT - _RIGHT)
        top = HEIGHT - _BOTTOM - self.y.share(y) * (HEIGHT - _TOP - _BOTTOM)
        return round(left, 1), round(top, 1)


def heatmap(
    title: str,
    values: np.ndarray,
    columns: Sequence[str],
    rows: Sequence[str],
    labels: tuple[str, str],
    best: tuple[int, int],
) -> str:
    """Return a heatmap in which smaller numbers stand out more from the page; ``best`` is framed."""
    wide = max((len(name) for name in rows), default=0)
    left = min(_LEFT + 7 * max(0, wide - 4), WIDTH // 2)
    height = max(26, min(44, 200 // max(1, len(rows))))
    width = (WIDTH - left - _RIGHT) / len(columns)
    finite = values[np.isfinite(values)]
    scale = np.log if len(finite) and finite.min() > 0 and finite.max() > 10 * finite.min() else np.asarray
    low, high = (scale(finite.min()), scale(finite.max())) if len(finite) else (0.0, 1.0)
    parts, bottom = [], _TOP + height * len(rows)
    for i, name in enumerate(rows):
        short = name if len(name) <= (left - 24) // 7 else name[: (left - 24) // 7 - 1] + "…"
        middle = _TOP + height * (i + 0.5) + 5
        parts.append(f'<text x="{left - 6}" y="{middle}" text-anchor="end">{escape(short)}</text>')
        for j, column in enumerate(columns):
            value = float(values[i, j])
            share = 0.0 if not math.isfinite(value) or high == low else float((high - scale(value)) / (high - low))
            tip = f"{labels[1]} {name}, {labels[0]} {column}: {value:.4g}"
            kind = "cell best" if (i, j) == best else "cell"
            parts.append(
                f'<rect class="{kind}" x="{left + width * j:.1f}" y="{_TOP + height * i + 1}" width="{width - 1:.1f}" '
                f'height="{height - 2}" style="--share:{0.08 + 0.92 * share:.3f}" data-tip="{escape(tip)}"/>'
            )
    every = max(1, math.ceil(len(columns) * 58 / (WIDTH - left)))
    for j in range(0, len(columns), every):
        place = left + width * (j + 0.5)
        parts.append(f'<text x="{place:.1f}" y="{bottom + 18}" text-anchor="middle">{escape(columns[j])}</text>')
    centre = (left + WIDTH - _RIGHT) / 2
    parts.append(f'<text x="{centre}" y="{bottom + 40}" text-anchor="middle">{escape(labels[0])}</text>')
    parts.append(f'<text x="4" y="{_TOP - 2}">{escape(labels[1])}</text>')
    return _drawing(title, bottom + 50, "".join(parts))


def bar(title: str, shares: Sequence[tuple[str, float, str]]) -> str:
    """Return a stacked bar with a legend below; each part has a name, a share and a CSS class."""
    parts, start, room = [], 4.0, WIDTH - 8
    for k, (name, share, kind) in enumerate(shares):
        text = escape(f"{name}: {share:.1%}")
        parts.append(f'<rect class="part {kind}" x="{start:.1f}" y="6" width="{share * room:.1f}" height="34" '
                     f'data-tip="{text}"/>')  # fmt: skip
        line = 62 + 22 * k
        parts.append(f'<rect class="part {kind}" x="4" y="{line - 12}" width="14" height="14"/>')
        parts.append(f'<text x="26" y="{line}">{text}</text>')
        start += share * room
    return _drawing(title, 58 + 22 * len(shares), "".join(parts))


def number(value: float) -> str:
    """Format a number for a tick."""
    if value == 0:
        return "0"
    if abs(value) >= 1e5 or abs(value) < 1e-3:
        return np.format_float_scientific(value, 1, trim="-", exp_digits=1)
    return f"{value:.4g}"


def _drawing(title: str, height: float, content: str) -> str:
    return (
        f'<svg viewBox="0 0 {WIDTH} {height:g}" role="img" aria-label="{escape(title)}" '
        f'xmlns="http://www.w3.org/2000/svg">{content}</svg>'
    )
