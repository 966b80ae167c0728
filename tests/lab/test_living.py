"""Guests that live: what a command in one can see, write and say, and what outlives it."""

from __future__ import annotations

import re
import subprocess
import threading
import time
from pathlib import Path

import pytest
from support import ROOT

from tierloom import lab
from tierloom.errors import LabError
from tierloom.lab import standing_guest
from tierloom.lab.topology import named

pytestmark = [
    pytest.mark.lab,
    pytest.mark.slow,
    pytest.mark.timeout(900),
    pytest.mark.xdist_group("lab-living"),
    pytest.mark.usefixtures("needs_lab", "folder"),
]

PAGE = ROOT / "docs" / "lab.md"


def test_a_command_has_its_streams_its_files_and_its_exit_code() -> None:
    Path("here").write_text("from the host\n")
    elsewhere = Path.home() / "tierloom-lab-was-here"
    script = f"""
        cat here; cat; echo err >&2
        echo from the guest >there; touch {elsewhere}; ls {elsewhere}
        kill -TERM $$
    """
    result = lab.run(["sh", "-c", script], stdin=b"typed\n", timeout_s=120)
    assert result.stdout == f"from the host\ntyped\n{elsewhere}\n"
    assert result.stderr == "err\nTerminated\n"
    assert result.exit_code == 143
    assert Path("there").read_text() == "from the guest\n"
    assert not elsewhere.exists()


def test_one_guest_runs_many_commands_at_once_and_each_ends_in_time() -> None:
    with lab.Guest(named("three-tier").sized("1GiB,512MiB,512MiB"), shares=[Path.cwd()]) as guest:
        with pytest.raises(LabError, match="did not end in 1 s"):
            guest.run(["sleep", "1000"], timeout_s=1)
        slow = threading.Thread(target=guest.run, args=(["sh", "-c", "until [ -e go ]; do sleep 0.1; done"],))
        slow.start()
        assert guest.run(["no-such-program"], timeout_s=60).exit_code == 127
        assert guest.run(["touch", "go"], timeout_s=60).exit_code == 0
        slow.join(60)
        assert not slow.is_alive()
        left = guest.run(["sh", "-c", "ps ax -o args | grep -c '^sleep 1000'"], timeout_s=60)
        assert left.stdout == "0\n"
        pid = guest.pid
    assert not Path(f"/proc/{pid}").exists()


def test_a_persistent_device_keeps_what_was_synced_when_the_power_fails() -> None:
    machine, store = named("cxl-pmem"), Path("store")
    with lab.Guest(machine, shares=[Path.cwd()], store=store) as guest:
        guest.run(["sh", "-c", "seq 1000 >/mnt/pmem0/numbers; sync; echo lost >/dev/shm/x"], timeout_s=120)
        uuid = guest.run(["ndctl", "list", "-N"], timeout_s=60).stdout
        guest.kill()
    with lab.Guest(machine, shares=[Path.cwd()], store=store) as guest:
        assert guest.run(["sh", "-c", "seq 1000 | cmp - /mnt/pmem0/numbers"], timeout_s=120).exit_code == 0
        assert guest.run(["ndctl", "list", "-N"], timeout_s=60).stdout == uuid
        assert "dax=always" in guest.run(["grep", "pmem0", "/proc/mounts"], timeout_s=60).stdout


def commands() -> list[str]:
    """The commands of the page, in its order."""
    blocks = re.findall(r"^```sh\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    return [line for block in blocks for line in block.splitlines() if line.startswith("tierloom lab")]


def test_the_commands_of_the_page_run_in_order(executable: Path) -> None:
    if standing_guest.status():
        pytest.skip("a guest of somebody's is up")
    try:
        for command in commands():
            words = re.sub(r"^tierloom\b", str(executable), command)
            done = subprocess.run(["bash", "-c", words], capture_output=True, text=True, check=False, timeout=300)
            assert done.returncode == 0, f"{command}\n{done.stderr}"
    finally:
        if standing_guest.status():
            standing_guest.down()


def test_a_guest_of_a_process_that_is_killed_goes_too(executable: Path) -> None:
    command = [executable, "lab", "run", "--", "sh", "-c", "touch begun; sleep 1000"]
    with subprocess.Popen(command) as running:
        for _ in range(1200):
            if Path("begun").exists():
                break
            time.sleep(0.1)
        (emulator,) = [pid for pid in children(running.pid) if "qemu" in Path(f"/proc/{pid}/cmdline").read_text()]
        running.kill()
        running.wait()
    for _ in range(100):
        if not Path(f"/proc/{emulator}").exists():
            break
        time.sleep(0.1)
    assert not Path(f"/proc/{emulator}").exists()


def children(pid: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
