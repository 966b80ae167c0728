"""Runs programs in any way, each in a fresh process that is forked from one where Tierloom is imported already.

`observe` is all that the tests need; `warden.py` says what is seen, `behaviour.py` how it is compared.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import shutil
import tempfile
from collections.abc import Mapping
from functools import cache
from multiprocessing import forkserver
from multiprocessing.context import ForkServerContext
from pathlib import Path

from unharmed.behaviour import Behaviour
from unharmed.warden import BEHAVIOUR, GRACE_S, Order, report
from unharmed.ways import Way

TIMEOUT_S = 60.0
"""A program that is alone done in seconds and takes longer than this hangs."""


def observe(
    way: Way,
    command: list[str],
    folder: Path,
    *,
    variables: Mapping[str, str] | None = None,
    timeout_s: float = TIMEOUT_S,
) -> Behaviour:
    """Runs a program in one way, in a folder that is emptied first; it finds nothing but the usual environment."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(mode=0o755)
    with tempfile.TemporaryDirectory(prefix="unharmed-") as notes:
        environment = {**usual_environment(folder), **(variables or {})}
        order = Order(way, tuple(command), folder, Path(notes), environment, timeout_s)
        warden = _forks().Process(target=report, args=(order,))
        warden.start()
        warden.join(timeout_s + 3 * GRACE_S)
        if warden.exitcode != 0:
            warden.kill()
            message = f"the warden of {command} ended with {warden.exitcode}"
            raise RuntimeError(message)
        return pickle.loads(order.notes.joinpath(BEHAVIOUR).read_bytes())  # noqa: S301 (we wrote it)


def usual_environment(folder: Path) -> dict[str, str]:
    """The same for every run, whoever starts the tests."""
    return {"PATH": os.environ["PATH"], "HOME": str(folder), "LANG": "C.UTF-8", "COLUMNS": "160", "NO_COLOR": "1"}


@cache
def _forks() -> ForkServerContext:
    """The process that is forked; it finds the modules of the tests, which Python 3.11 does not tell it."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["unharmed.warmed"])
    os.environ["PYTHONPATH"] = str(Path(__file__).parent.parent)
    try:
        forkserver.ensure_running()
    finally:
        del os.environ["PYTHONPATH"]
    return context
