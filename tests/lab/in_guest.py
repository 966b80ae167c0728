"""Runs checks inside a guest of the lab and prints what became of each; `test_guest.py` shows them as tests.

    tierloom lab run --topology two-tier -- .venv/bin/python tests/lab/in_guest.py two-tier [PART OF A NAME]

A check is a function without arguments named `check_…` in a Python file of `machine/` or `guest/`:
it passes when it returns, fails with any exception, and is skipped with `unittest.SkipTest`. A
file may name the topologies it is for (`TOPOLOGIES = ("two-tier",)`; all by default). Every check
runs in a process of its own, so that memory policies and leaks stay with it, in a temporary folder;
what it prints comes back when it fails. After it, everything that it started is ended and code that
it drove from DRAM comes back. Every line on stdout is one JSON document: check, outcome, seconds, words.
"""

from __future__ import annotations

import ctypes
import importlib.util
import json
import os
import signal
import sys
import tempfile
import time
import traceback
import unittest
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

from dram import bring_code_home, hold_code

HERE = Path(__file__).parent
FOLDERS = ("machine", "guest")
LIMIT_S = 1200
"""Most checks take seconds on an idle host; this is to end one that hangs, on a busy host too."""

PR_SET_CHILD_SUBREAPER = 36
"""`linux/prctl.h`."""

KERNEL = ctypes.CDLL(None, use_errno=True)


def load(path: Path) -> ModuleType:
    """A file of checks, with its folder importable."""
    sys.path.insert(0, str(path.parent))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run(module: ModuleType, name: str) -> dict[str, Any]:
    """Runs one check in a child and says what became of it."""
    began = time.monotonic()
    with tempfile.TemporaryFile() as words, tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        child = os.fork()
        if child == 0:
            in_child(module, name, words.fileno(), folder)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        end_what_is_left()
        words.seek(0)
        told = words.read().decode(errors="replace")[-8000:]
    outcome = {0: "passed", 77: "skipped"}.get(code, "failed")
    if code < 0:
        told += f"\nkilled by {signal.Signals(-code).name}"
    return {"outcome": outcome, "seconds": round(time.monotonic() - began, 2), "words": told}


def end_what_is_left() -> None:
    """Kills the processes that a check has left behind; orphans become children of this one."""
    children = Path(f"/proc/self/task/{os.getpid()}/children")
    while left := children.read_text().split():
        for pid in map(int, left):
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


def in_child(module: ModuleType, name: str, words: int, folder: str) -> None:
    """The check itself; never returns."""
    os.setsid()
    os.dup2(words, 1)
    os.dup2(words, 2)
    os.chdir(folder)
    signal.signal(signal.SIGALRM, too_slow)
    signal.alarm(LIMIT_S)
    code = 1
    try:
        getattr(module, name)()
        code = 0
    except unittest.SkipTest as reason:
        sys.stdout.write(str(reason))
        code = 77
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def too_slow(*_: object) -> NoReturn:
    """Ends a check so that it puts back what it has set; one that does not even do that is killed."""
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(60)
    message = f"it took more than {LIMIT_S} s"
    raise TimeoutError(message)


def main(topology: str, part: str = "") -> None:
    """Runs every check that is for this topology, or those with this in their names."""
    os.environ["TIERLOOM_LAB_TOPOLOGY"] = topology
    keep_bytecode()
    hold_code()
    KERNEL.prctl(PR_SET_CHILD_SUBREAPER, 1)
    for path in sorted(path for folder in FOLDERS for path in (HERE / folder).glob("*.py")):
        try:
            module = load(path)
        except Exception:
            report(path, "", {"outcome": "failed", "seconds": 0, "words": traceback.format_exc()})
            continue
        if topology in getattr(module, "TOPOLOGIES", (topology,)):
            for name in [name for name in vars(module) if name.startswith("check_") and part in f"{path}::{name}"]:
                report(path, name, run(module, name))
                bring_code_home()


def keep_bytecode() -> None:
    """Compiles what the checks import once, not at every start of Python, and leaves none of it on the host."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ["PYTHONPYCACHEPREFIX"] = tempfile.mkdtemp(prefix="tierloom-lab-bytecode-")


def report(path: Path, name: str, result: dict[str, Any]) -> None:
    """One line, at once: a guest that dies later does not take it away."""
    check = f"{path.parent.name}/{path.name}::{name}"
    sys.stdout.write(json.dumps({"check": check, **result}) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
