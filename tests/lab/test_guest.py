"""Every check of `machine/` and `guest/` in a guest of its topology, each as a test of its own.

A guest is started once per topology and session; its checks are in the order of their files.
"""

from __future__ import annotations

import ast
import fcntl
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from support import ROOT

from tierloom import lab
from tierloom.errors import LabError

HERE = Path(__file__).parent
FOLDERS = ("machine", "guest")
GUEST_S = 3600
ATTEMPTS = 3
PATIENCE_S = 600
"""How long other work on the host may go on before the next guest; after the last one the checks fail."""
MOST_BOOT_S = 60
"""Two idle processors boot a guest in 7 to 10 s and check it in 5 to 10 min; both grow alike with other load."""
TOPOLOGIES = {"two-tier": [], "three-tier": [], "cxl": [pytest.mark.long]}
"""Machines that are checked, and the marks of those that take their time."""

pytestmark = [pytest.mark.lab, pytest.mark.slow, pytest.mark.timeout(GUEST_S + ATTEMPTS * PATIENCE_S)]


def checks(topology: str) -> list[str]:
    """Names of a topology's checks, read off the sources: the host does not import them."""
    found = []
    for path in sorted(path for folder in FOLDERS for path in (HERE / folder).glob("*.py")):
        tree = ast.parse(path.read_text())
        if topology in topologies(tree, topology):
            names = [item.name for item in tree.body if isinstance(item, ast.FunctionDef)]
            found += [f"{path.parent.name}/{path.name}::{name}" for name in names if name.startswith("check_")]
    return found


def topologies(tree: ast.Module, every: str) -> tuple[str, ...]:
    """What a file is for: its `TOPOLOGIES`."""
    for item in tree.body:
        if isinstance(item, ast.Assign) and getattr(item.targets[0], "id", "") == "TOPOLOGIES":
            return ast.literal_eval(item.value)
    return (every,)


def outcomes(topology: str, shared: Path) -> dict[str, dict[str, Any]]:
    """What became of the checks; the first test of whichever process asks starts the guest."""
    record = shared / f"lab-{topology}.json"
    with (shared / f"lab-{topology}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not record.exists():
            record.write_bytes(run_checks(topology))
    return {line["check"]: line for line in map(json.loads, record.read_text().splitlines())}


def run_checks(topology: str) -> bytes:
    """Lines of the checks that ran; a host too busy for them is given time, and the guest further attempts."""
    for _ in range(ATTEMPTS):
        if (told := run_once(topology)) is not None:
            return told
        wait_for_quiet()
    return too_busy(f"{ATTEMPTS} guests took over {MOST_BOOT_S} s each to come up, an idle host's is up in 10 s")


def wait_for_quiet() -> None:
    """Until the host has half of its processors to spare, or patience ends."""
    end = time.monotonic() + PATIENCE_S
    while os.getloadavg()[0] > (os.cpu_count() or 1) / 2 and time.monotonic() < end:
        time.sleep(5)


def run_once(topology: str) -> bytes | None:
    """Lines of the checks that ran; none on a busy host. A guest that dies or is too slow leaves those before."""
    said: dict[str, bytearray] = {"stdout": bytearray(), "stderr": bytearray()}
    command = [sys.executable, "tests/lab/in_guest.py", topology]
    busy = b""
    try:
        with lab.Guest(lab.TOPOLOGIES[topology], shares=[ROOT]) as guest:
            if guest.boot_s > MOST_BOOT_S:
                return None
            guest.run(command, timeout_s=GUEST_S, sink=lambda stream, data: said[stream].extend(data))
    except LabError as error:
        said["stderr"].extend(f"{error}\n".encode())
        load = os.getloadavg()[2]
        if "did not end in" in str(error) and load > 2 * (os.cpu_count() or 1):
            busy = too_busy(f"with a load of {load:.0f}, {GUEST_S} s were not enough")
    sys.stderr.write(said["stderr"].decode(errors="replace"))
    return bytes(said["stdout"][: said["stdout"].rfind(b"\n") + 1]) + busy


def too_busy(why: str) -> bytes:
    """In place of the checks that a host with other work did not come to."""
    return (json.dumps({"check": "", "outcome": "failed", "words": f"this host is busy: {why}"}) + "\n").encode()


@pytest.mark.parametrize(
    ("topology", "check"),
    [
        pytest.param(topology, check, marks=[pytest.mark.xdist_group(f"lab-{topology}"), *marks])
        for topology, marks in TOPOLOGIES.items()
        for check in checks(topology)
    ],
)
def test_in_the_guest(
    topology: str,
    check: str,
    needs_lab: None,  # noqa: ARG001 (skips)
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(ROOT)
    base = tmp_path_factory.getbasetemp()
    found = outcomes(topology, base.parent if "PYTEST_XDIST_WORKER" in os.environ else base)
    assert check in found or "" not in found, found[""]["words"]
    assert check in found, f"the guest never came to it; it ended after {len(found)} checks"
    if found[check]["outcome"] == "skipped":
        pytest.skip(found[check]["words"])
    assert found[check]["outcome"] == "passed", found[check]["words"]
    print(f"{topology} {check}: {found[check]['seconds']} s in the guest")
