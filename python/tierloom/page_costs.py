"""What page faults, protection and copies cost on this machine: input of the migration simulator.

Measured from user space, without privileges: a soft fault on shared memory stands for a hint fault (both
enter the kernel, find a page that is there, and write one entry), ``mprotect`` of a whole range for the
scanner's protection, a copy between cold pages for the copy of a migration, and ``mprotect`` of one
page while another thread runs for a TLB shootdown. Each is the least of several rounds; what cannot be measured
this way keeps its documented default.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import threading
import time
from functools import partial
from typing import TYPE_CHECKING, cast

import numpy as np

from tierloom import migration_simulator
from tierloom.errors import MeasurementError
from tierloom.units import PAGE_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable

    from tierloom.schema import CostsDoc, Figure, Kind

PAGES = 8192
ROUNDS = 7
SINGLE = 2000
"""Pages protected one by one."""


def calibrate() -> CostsDoc:
    """Measures on this machine what moving pages costs; takes about a second and no privileges.

    Returns:
        One figure a cost, such as ``hint_fault_ns``, ``promote_ns`` and ``demote_ns``, all in nanoseconds a page:
        each with its ``value``, its ``kind`` (``measured``, ``derived``, or ``assumed`` where it cannot be measured
        from user space) and ``how`` it came about. :func:`tierloom.simulate` takes all of it as ``costs``.

    Raises:
        MeasurementError: The kernel refused a mapping or its protection.

    Example:
        >>> calibrate()["hint_fault_ns"]["kind"]
        'measured'
    """
    try:
        found = _found()
    except OSError as problem:
        message = f"page costs: {problem.strerror}\nhint: give it {2 * PAGES * PAGE_BYTES >> 20} MiB of memory"
        raise MeasurementError(message) from problem
    return cast("CostsDoc", {**migration_simulator.terms()["costs"], **found})


def _found() -> dict[str, Figure]:
    fault = _least(_soft_faults)
    protect = _least(_protection)
    copy = _least(_copies)
    alone, beside = _least(_single), _beside_another(_single)
    found = {
        "hint_fault_ns": _figure(fault, "measured", "soft fault on a page of shared memory that is in memory"),
        "protect_ns": _figure(protect, "measured", "mprotect of 32 MiB, per page"),
        "promote_ns": _figure(
            2.0 * fault + copy, "derived", "a fault, the copy of a cold page, and as much again as the fault"
        ),
        "demote_ns": _figure(fault + copy, "derived", "the copy of a cold page, and as much as a fault"),
    }
    if beside > alone:
        how = "mprotect of one page, with another thread running less without"
        found["shootdown_ns"] = _figure(beside - alone, "measured", how)
    return found


def _figure(value: float, kind: Kind, how: str) -> Figure:
    return {"value": value, "kind": kind, "source": "calibration", "how": how}


def _least(work: Callable[[], float]) -> float:
    """Of several rounds the quickest, ns per page."""
    return min(work() for _ in range(ROUNDS))


def _timed(pages: int, work: Callable[[], object]) -> float:
    start = time.perf_counter_ns()
    work()
    return (time.perf_counter_ns() - start) / pages


def _soft_faults() -> float:
    with mmap.mmap(-1, PAGES * PAGE_BYTES, mmap.MAP_SHARED) as memory:
        column = np.frombuffer(memory, dtype=np.uint8)[::PAGE_BYTES]
        column[:] = 1
        memory.madvise(mmap.MADV_DONTNEED)

        took = _timed(PAGES, partial(column.fill, 2))
        del column
    return took


def _protection() -> float:
    with mmap.mmap(-1, PAGES * PAGE_BYTES, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as memory:
        address = _touched(memory)
        return _timed(PAGES, lambda: _mprotect(address, PAGES * PAGE_BYTES, mmap.PROT_READ))


def _single() -> float:
    with mmap.mmap(-1, PAGES * PAGE_BYTES, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as memory:
        address = _touched(memory)

        def work() -> None:
            for page in range(0, 2 * SINGLE, 2):
                _mprotect(address + page * PAGE_BYTES, PAGE_BYTES, mmap.PROT_READ)

        return _timed(SINGLE, work)


def _touched(memory: mmap.mmap) -> int:
    memory.madvise(mmap.MADV_NOHUGEPAGE)
    column = np.frombuffer(memory, dtype=np.uint8)
    column[::PAGE_BYTES] = 1
    return int(column.ctypes.data)


def _copies() -> float:
    source = np.ones(PAGES * PAGE_BYTES, dtype=np.uint8)
    target = np.zeros_like(source)
    return _timed(PAGES, lambda: np.copyto(target, source))


def _beside_another(work: Callable[[], float]) -> float:
    """The same with a thread of this process busy outside the interpreter on another CPU."""
    if (os.cpu_count() or 1) < 2:
        return 0.0
    done = threading.Event()
    numbers = np.ones(1 << 20)

    def spin() -> None:
        while not done.is_set():
            np.sqrt(numbers, out=numbers)

    thread = threading.Thread(target=spin)
    thread.start()
    try:
        return _least(work)
    finally:
        done.set()
        thread.join()


_LIBC = ctypes.CDLL(None, use_errno=True)
_LIBC.mprotect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)


def _mprotect(address: int, length: int, protection: int) -> None:
    if _LIBC.mprotect(address, length, protection):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
