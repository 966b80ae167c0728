"""Runs programs in any way, each in a fresh process that is forked from one where Tierloom is imported already.

`observe` is all that the tests need; `warden.py` says what is seen, `behaviour.py` how it is compared.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import tempfile
from collections.abc import Mapping
from functools import cache
from multiprocessing.context import ForkServerContext
from pathlib import Path

from unharmed.behaviour import Behaviour
from unharmed.warden import GRACE_S, Order, watch
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
    """Runs a program in one way, in a folder that is there; it finds nothing but the usual environment."""
    with tempfile.TemporaryDirectory(prefix="unharmed-") as notes:
        environment = {**usual_environment(folder), **(variables or {})}
        order = Order(way, tuple(command), folder, Path(notes), environment, timeout_s)
        warden = _forks().Process(target=_report, args=(order,))
        warden.start()
        warden.join(timeout_s + 3 * GRACE_S)
        if warden.exitcode != 0:
            warden.kill()
            message = f"the warden of {command} ended with {warden.exitcode}"
            raise RuntimeError(message)
        return pickle.loads((Path(notes) / "behaviour").read_bytes())  # noqa: S301 (we wrote it)


def usual_environment(folder: Path) -> dict[str, str]:
    """The same for every run, whoever starts the tests."""
    return {"PATH": os.environ["PATH"], "HOME": str(folder), "LANG": "C.UTF-8", "COLUMNS": "160", "NO_COLOR": "1"}


def _report(order: Order) -> None:
    behaviour = watch(order)
    (order.notes / "behaviour").write_bytes(pickle.dumps(behaviour))


@cache
def _forks() -> ForkServerContext:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["unharmed.warmed"])
    return context
