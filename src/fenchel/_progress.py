"""How far a fit has come: shares of its work, counted where they are done, and told to whoever asked."""

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from functools import wraps
from inspect import signature
from threading import RLock
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # scikit-learn before 1.9
    CallbackSupportMixin = None

from fenchel._check import shown

__all__ = [
    "TOTAL",
    "CallbacksMixin",
    "Progress",
    "Work",
    "counted",
    "evenly",
    "here",
    "part",
    "reporting",
    "shown_progress",
    "tracked",
]

Listener = Callable[[int, int], bool | None]  # of the units of work that are done, and of all; True asks for the end
Progress = bool | Callable[[int, int], object] | None

E = TypeVar("E")
R = TypeVar("R")
T = TypeVar("T")
P = ParamSpec("P")

TOTAL = 1000  # units of work of a fit, whatever its size: one is a third of a second of a fit of five minutes
_TASKS = 100  # of scikit-learn's callbacks, whose bar sums over all of them after each
_BETWEEN = 0.1  # seconds between two states of the bar
_CELLS = 30  # characters of the bar


class Told:
    """The work of a whole fit: how much is done, who is told, and of which work it is itself a part."""

    def __init__(self, listeners: Iterable[Listener], outer: "Work") -> None:
        self.listeners = list(listeners)
        self.outer = outer
        self.is_stopped = False
        self._done, self._units, self._lock = 0.0, 0, RLock()

    def add(self, share: float) -> None:
        """Count a share of the work, and tell the listeners if that completes a unit."""
        with self._lock:
            self._done += share
            units = min(TOTAL, int(TOTAL * self._done + 1e-6))  # shares of floats may add up to just below a unit
            if units > self._units:
                self._units = units
                for listener in self.listeners:
                    self.is_stopped |= bool(listener(units, TOTAL))
                self.outer.reach(units / TOTAL)


class Work:
    """A share of the work of a fit; ``width`` is its size relative to the whole."""

    def __init__(self, told: Told | None, width: float) -> None:
        self.told = told
        self.width = width
        self.done = 0.0  # of this share, including what belongs to its parts

    @property
    def is_stopped(self) -> bool:
        """Whether a listener has asked for the end of the fit."""
        return self.told is not None and (self.told.is_stopped or self.told.outer.is_stopped)

    def go_on(self) -> None:
        """Forget that a listener has asked for the end: what was running then has ended."""
        if self.told is not None:
            self.told.is_stopped = False
            self.told.outer.go_on()

    def reach(self, done: float) -> None:
        """Say how much of this share is done, from 0 to 1; less than before changes nothing."""
        step = min(done, 1.0) - self.done
        if self.told is not None and step > 0:
            self.done += step
            self.told.add(step * self.width)

    def part(self, share: float = 1.0) -> "Work":
        """Return a share of what is left of this one."""
        if self.told is None:
            return self
        taken = share * (1 - self.done)
        self.done += taken
        return Work(self.told, taken * self.width)

    def split(self, count: int) -> "list[Work]":
        """Return equal parts of what is left of this share."""
        return [self.part(1 / (count - k)) for k in range(count)]

    @contextmanager
    def entered(self) -> Iterator[Self]:
        """Count the work inside a ``with`` block as this share, which is done at its end."""
        token = _HERE.set(self)
        try:
            yield self
        finally:
            _HERE.reset(token)
        self.reach(1.0)


_NOBODY = Work(None, 0.0)  # work that nobody follows: it counts nothing
_HERE: ContextVar[Work | None] = ContextVar("_HERE", default=None)


def here() -> Work:
    """Return the share of the work to which the present code belongs."""
    return _HERE.get() or _NOBODY


@contextmanager
def part(share: float = 1.0) -> Iterator[Work]:
    """Count the work inside a ``with`` block as a share of what is left of the work around it."""
    with here().part(share).entered() as work:
        yield work


def counted(items: Iterable[T], share: float = 1.0) -> Iterator[T]:
    """Yield the items; the work of making them counts as a share of what is left of the work around the first."""
    work, source = here().part(share), iter(items)
    while True:
        token = _HERE.set(work)
        try:
            item = next(source)
        except StopIteration:
            break
        finally:
            _HERE.reset(token)
        yield item
    work.reach(1.0)


def evenly(items: Iterable[T], count: int) -> Iterator[T]:
    """Yield the items; making each of them counts as an equal part of what is left of the work around it."""
    source = iter(items)
    for k in range(count):
        with part(1 / (count - k)):
            item = next(source)
        yield item


@contextmanager
def reporting(*listeners: Listener) -> Iterator[None]:
    """Tell listeners how far the work inside a ``with`` block has come, and count it in the work around it."""
    told = Told(listeners, here().part())
    with Work(told, 1.0).entered():
        yield
    told.add(1.0)  # shares that were not needed


class Bar:
    """A line on standard error that shows how far a fit has come."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.begin = self.last = time.monotonic()
        self._draw(0, TOTAL)

    def __call__(self, done: int, total: int) -> None:
        """Draw the bar, unless it was drawn a moment ago."""
        if done == total or time.monotonic() - self.last >= _BETWEEN:
            self._draw(done, total)

    def _draw(self, done: int, total: int) -> None:
        self.last = time.monotonic()
        seconds, cells = self.last - self.begin, _CELLS * done // total
        left = f", {_clock(seconds * (total - done) / done)} left" if 0 < done < total else ""
        text = f"{self.name} [{'#' * cells:<{_CELLS}}] {done / total:4.0%} {_clock(seconds)}{left}"
        sys.stderr.write(f"\r{text:<{len(self.name) + _CELLS + 30}}")
        sys.stderr.flush()

    def close(self) -> None:
        """End the line."""
        sys.stderr.write("\n")


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02}" if minutes >= 60 else f"{minutes}:{rest:02}"


@contextmanager
def shown_progress(progress: Progress, name: str) -> Iterator[None]:
    """Tell what a ``progress`` parameter asks for: a bar, a function, or nothing."""
    with ExitStack() as stack:
        if progress is True:
            bar = Bar(name)
            stack.callback(bar.close)
            stack.enter_context(reporting(bar))
        elif callable(progress):
            stack.enter_context(reporting(_without_answer(progress)))
        elif progress is not None and progress is not False:
            raise TypeError(
                f"The 'progress' parameter of {name} must be a bool or a function of (done, total). "
                f"Got {shown(progress)} instead."
            )
        yield


def _without_answer(progress: Callable[[int, int], object]) -> Listener:
    """Return a function whose result asks for nothing: other bars return whether they have drawn themselves."""

    def listener(done: int, total: int) -> None:
        progress(done, total)

    return listener


def tracked(fit: Callable[Concatenate[E, P], R]) -> Callable[Concatenate[E, P], R]:
    """Decorate ``fit`` so that it tells ``progress`` and scikit-learn's callbacks how far it has come."""

    @wraps(fit)
    def tracked_fit(self: E, /, *args: P.args, **kwargs: P.kwargs) -> R:
        def fitted(estimator: E) -> R:
            with shown_progress(getattr(self, "progress", None), type(self).__name__):
                return fit(estimator, *args, **kwargs)

        if not {"_skl_callbacks", "_parent_callback_ctx"} & vars(self).keys():
            return fitted(self)
        given = signature(fit).bind(self, *args, **kwargs).arguments
        data = {name: given.get(name) for name in ("X", "y")}
        if given.get("sample_weight") is not None:
            data["metadata"] = {"sample_weight": given["sample_weight"]}
        found: R = with_callbacks(_with_tasks)(self, fitted, data)
        return found

    return tracked_fit


def _with_tasks(estimator: Any, fit: Callable[[Any], R], data: dict[str, Any]) -> R:
    """Fit; for the callbacks of scikit-learn, each hundredth of the work is a task."""
    root = estimator._init_callback_context(max_subtasks=_TASKS)
    root.call_on_fit_task_begin(estimator=estimator, **data)
    n_ended = 0

    def end_tasks(done: int, total: int) -> bool:
        nonlocal n_ended
        stops, before, n_ended = False, n_ended, done * _TASKS // total
        for _ in range(before, n_ended):
            task = root.subcontext("work").call_on_fit_task_begin(estimator=estimator, **data)
            stops |= task.call_on_fit_task_end(estimator=estimator, **data)
        return stops

    with reporting(end_tasks):
        found = fit(estimator)
    root.call_on_fit_task_end(estimator=estimator, **data, reconstruction_attributes={})
    return found


if CallbackSupportMixin is not None:
    CallbacksMixin = CallbackSupportMixin
else:

    class CallbacksMixin:  # type: ignore[no-redef]
        """Estimator without scikit-learn's callbacks, which this version of it does not have."""

        def set_callbacks(self, *callbacks: object) -> Self:
            """Raise: callbacks need a later version of scikit-learn."""
            raise NotImplementedError("set_callbacks needs scikit-learn 1.9 or later. Set progress, or update it.")
