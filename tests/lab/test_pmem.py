"""The power fails while pools on a CXL device are written, again and again: all that was acknowledged is there.

The virtual machine is killed as a whole (SIGKILL to the emulator), started again with the contents of
its device, the region is made anew, and the pools are opened. What the emulated processor had stored
survives whether it was written back or not, so this tests recovery on `/dev/pmem0` and `/dev/dax0.0`
with `MAP_SYNC` mappings and real cache-line instructions; a missing write-back is found by
`crates/pmem/tests/crashes.rs`. What libpmemobj left is shown to PMDK's own `pmempool check` (its headers
and the count of unsafe shutdowns) before anybody opens it again, and to `pmemobj_check` (its heap).
"""

from __future__ import annotations

import json
import random
import shutil
import sys
import threading
from contextlib import suppress
from pathlib import Path

import pytest
from support import lacking

import tierloom
from tierloom import lab
from tierloom.errors import LabError
from tierloom.lab.topology import named
from tierloom.pmem import lacks_pmdk

pytestmark = [
    pytest.mark.lab,
    pytest.mark.slow,
    pytest.mark.long,
    pytest.mark.timeout(7200),
    pytest.mark.xdist_group("lab-pmem"),
    pytest.mark.usefixtures("needs_lab", "folder"),
]

STEP_S = 1800
"""Until as many transactions are acknowledged as are wanted; it takes seconds on an idle host."""

PACKAGE = Path(tierloom.__file__).parent

WRITER = """
import json, mmap, sys, types
from array import array
from pathlib import Path

# The core and its errors by themselves: the whole package would load NumPy, which takes a busy host's guest minutes.
package = sys.modules["tierloom"] = types.ModuleType("tierloom")
package.__path__ = [sys.argv[1]]
import tierloom._core as core

SYNC = 0x80003  # MAP_SYNC | MAP_SHARED_VALIDATE, include/uapi/asm-generic/mman.h

def say(**words):
    print(json.dumps(words), flush=True)

def views(pool, path):
    assert pool.direct(), f"{pool.backend()}: {pool.write_back_by()}"
    with open(path, "r+b") as file:
        memory = memoryview(mmap.mmap(file.fileno(), pool.usage()[0], flags=SYNC))
    return {name: memory[start : start + size].cast("q") for name, _, start, size, *_ in pool.arrays()}

pools = {}
for word in sys.argv[2:]:
    backend, path, size = word.split("=")
    if not Path("made").exists():
        pool = core.OpenPool.create(path, int(size), None, 7, backend)
        pool.begin()
        for name in ("left", "right"):
            pool.allocate(name, "<i8 300", 2400, 0, True)
        for view in views(pool, path).values():
            view[:] = array("q", bytes(2400))
        pool.commit()
    else:
        # libpmemobj does not look at a device without changing it.
        seen = [] if backend == "pmdk" and path.startswith("/dev/") else core.check_pool(path)
        damage = [what for bad, _, what in seen if bad]
        pool = core.OpenPool.open(path)
        found = {name: set(view) for name, view in views(pool, path).items()}
        whole = found["left"] == found["right"] and len(found["left"]) == 1
        say(found=backend, count=min(found["left"]), whole=whole, damage=damage, how=pool.write_back_by(),
            recovered=pool.recovered())
    pools[backend] = pool, views(pool, path)
Path("made").touch()
while True:
    for backend, (pool, view) in pools.items():
        pool.begin()
        for _, _, start, size, *_ in pool.arrays():
            pool.save(start, size)
        next_ = view["left"][0] + 1
        for name in ("left", "right"):
            view[name][:] = array("q", [next_]) * 300
        pool.commit()
        say(acknowledged=backend, count=next_)
"""


class Listener:
    """What the writer says, while it says it."""

    def __init__(self) -> None:
        self.acknowledged: dict[str, int] = {}
        self.found: dict[str, dict] = {}
        self.enough = threading.Event()
        self.wanted = 0
        self.words = bytearray()
        self.pmempool = ""
        self._rest = b""

    def hear(self, stream: str, data: bytes) -> None:
        if stream != "stdout":
            self.words += data
            return
        *lines, self._rest = (self._rest + data).split(b"\n")
        for said in map(json.loads, lines):
            if "acknowledged" in said:
                self.acknowledged[said["acknowledged"]] = said["count"]
                self.wanted -= 1
            elif "found" in said:
                self.found[said["found"]] = said
        if self.wanted <= 0:
            self.enough.set()


def write_until_killed(mode: str, pools: dict[str, str], transactions: int) -> Listener:
    """One life of the machine: look at what is there, write on, and die after so many transactions."""
    listener = Listener()
    listener.wanted = transactions
    sizes = {"native": 2 << 20, "pmdk": 16 << 20}
    words = [f"{backend}={path}={sizes[backend]}" for backend, path in pools.items()]
    command = ["env", "PMEMOBJ_CONF=sds.at_create=0", sys.executable, "-I", "-S", "-c", WRITER, str(PACKAGE), *words]
    store_is_old = Path("made").exists()
    with lab.Guest(named("cxl-pmem"), shares=[Path.cwd()], store=Path("store"), pmem_mode=mode) as guest:

        def write() -> None:
            with suppress(LabError, OSError):  # the guest dies, and its folder goes with it
                guest.run(command, timeout_s=STEP_S, sink=listener.hear)
            listener.enough.set()

        if "pmdk" in pools and store_is_old:
            listener.pmempool = guest.run(["pmempool", "check", "-v", pools["pmdk"]], timeout_s=STEP_S).stdout
        writer = threading.Thread(target=write)
        writer.start()
        assert listener.enough.wait(STEP_S), listener.words.decode(errors="replace")
        guest.kill()
        writer.join(60)
    assert listener.acknowledged, listener.words.decode(errors="replace")
    return listener


def survives(mode: str, pools: dict[str, str], kills: int) -> None:
    moments = random.Random(5)
    before: dict[str, int] = {}
    for life in range(kills + 1):
        heard = write_until_killed(mode, pools, moments.randrange(4, 60))
        assert set(heard.found) == set(before), "pools are found again from the second life on"
        if "pmdk" in before:
            assert heard.pmempool.endswith(f"{pools['pmdk']}: consistent\n"), heard.pmempool
        for backend, found in heard.found.items():
            print(f"{mode}, {backend}, kill {life}: {before[backend]} acknowledged, {found}", flush=True)
            assert found["how"] in {"clwb", "clflushopt", "libpmem"}
            assert found["damage"] == []
            assert found["whole"]
            assert found["count"] >= before[backend]
        before = heard.acknowledged


def keepers() -> list[str]:
    return ["native"] if lacks_pmdk() or shutil.which("pmempool") is None else ["native", "pmdk"]


def test_pools_on_a_dax_file_system_survive_five_power_failures() -> None:
    survives("fsdax", {backend: f"/mnt/pmem0/{backend}.pool" for backend in keepers()}, kills=5)


@pytest.mark.parametrize("backend", ["native", "pmdk"])
def test_a_pool_on_a_dax_device_survives_two_power_failures(backend: str) -> None:
    if backend not in keepers():
        pytest.skip(lacking("pmempool") or lacks_pmdk())
    survives("devdax", {backend: "/dev/dax0.0"}, kills=2)
