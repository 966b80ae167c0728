"""How far something long has come: the time that is left for its steps, and a bar in the notebook.

Functions that take ``progress`` draw it where none is given. It is drawn through IPython alone, which every kernel
has: Rich would need ipywidgets there.
"""

from __future__ import annotations

import html
import sys
import time
from collections.abc import Callable
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

Tell = Callable[[float, float | None, str], None]
"""Told the share that is done, the seconds left if they are known, and what is being done."""

KERNEL_SHELL = "ZMQInteractiveShell"
"""The class of IPython's shell behind a notebook; a terminal has another."""


@contextmanager
def in_notebook(what: str) -> Iterator[Tell | None]:
    """What moves a bar; None where this is no notebook. The bar appears when it first moves, and goes at the end.

    Example:
        >>> with in_notebook("measuring") as tell:
        ...     tell is None
        True
    """
    if not has_kernel():
        yield None
        return
    bar = Bar(what)
    try:
        yield bar.tell
    finally:
        bar.clear()


def has_kernel() -> bool:
    """Whether this runs in a notebook; IPython is not loaded to find out."""
    ipython = sys.modules.get("IPython")
    return ipython is not None and type(ipython.get_ipython()).__name__ == KERNEL_SHELL


class Steps:
    """Tells of each step before it is done, and how long all others will take if they are like those before.

    Before the first is done nobody knows how long they take, and no time is told.
    """

    def __init__(self, steps: int, progress: Tell | None) -> None:
        self._steps, self._progress = steps, progress
        self._done, self._began = 0, time.monotonic()

    def add(self, steps: int) -> None:
        """There are more of them than was known."""
        self._steps += steps

    def tell(self, what: str) -> None:
        """The next one begins."""
        if self._progress:
            left = self._steps - self._done
            left_s = (time.monotonic() - self._began) / self._done * left if self._done else None
            self._progress(self._done / self._steps, left_s, what)
        self._done += 1


class Bar:
    """One output of a cell, which is drawn over."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._handle: Any = None

    def tell(self, share: float, left_s: float | None, words: str) -> None:
        """Draws it."""
        left = "" if left_s is None else f", {left_s:.0f} s left"
        said = f"{self._what}: {words}{left}"
        label = html.escape(said)
        self._draw(f'<progress max="1" value="{share:.3f}" aria-label="{label}"></progress> {label}', said)

    def clear(self) -> None:
        """Leaves nothing behind."""
        if self._handle is not None:
            self._draw("", "")

    def _draw(self, markup: str, text: str) -> None:
        from IPython.display import display

        shown = {"text/html": markup, "text/plain": text}
        if self._handle is None:
            self._handle = display(shown, raw=True, display_id=True)
        else:
            self._handle.update(shown, raw=True)
