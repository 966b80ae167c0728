"""What starting a user's program takes: the preload library, its threads, and Ctrl-C that goes to it alone."""

from __future__ import annotations

import os
import signal
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tierloom import catalog
from tierloom.errors import RecordingError

if TYPE_CHECKING:
    from collections.abc import Iterator

PRELOAD = "libtierloom_preload.so"

THREADS_VARIABLE = "OMP_NUM_THREADS"
"""How OpenMP programs are told their threads."""


def preload_library() -> str:
    """Path of the library that goes into the program.

    Raises:
        RecordingError: It is not there.
    """
    path = catalog.native_file(PRELOAD)
    if path is None:
        message = f"{PRELOAD} is not beside the package\nhint: build it with `make install`, or install a wheel"
        raise RecordingError(message)
    return str(path)


@contextmanager
def interrupts_go_to_the_program() -> Iterator[None]:
    """Ctrl-C reaches the program through the terminal; we stay to save what was recorded.

    A handler and not ``SIG_IGN``: the program would inherit that.
    """
    if os.name != "posix" or not _in_main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _in_main_thread() -> bool:
    import threading

    return threading.current_thread() is threading.main_thread()
