"""`show` and `check` only look: at files that cannot be written, at what a crash left, at pools of older versions."""

from __future__ import annotations

import gzip
import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tierloom.errors import PoolError
from tierloom.pmem import Pool, check, lacks_pmdk, look

KEPT = Path(__file__).parent / "kept"
"""Pools that Tierloom 0.1.0 wrote and left in the middle of a transaction: version 1, without checksums."""

KINDS = [
    "version-1",
    pytest.param("version-1-pmdk", marks=pytest.mark.skipif(bool(lacks_pmdk()), reason="libpmemobj1")),
]


@pytest.fixture(params=KINDS)
def kept(request: pytest.FixtureRequest, quick: Path) -> Path:
    """A copy of a kept pool that nobody may write, on a path that others can reach."""
    path = quick / "kept.pool"
    path.write_bytes(gzip.decompress((KEPT / f"{request.param}.pool.gz").read_bytes()))
    path.chmod(0o444)
    return path


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_a_pool_of_an_older_version_is_looked_at_and_left_alone(kept: Path) -> None:
    before = digest(kept)
    seen = look(kept)
    assert [item["name"] for item in seen["arrays"]] == [
        *("plain", "solver/1/time", "solver/1/u", "solver/2/time", "solver/2/u")
    ]
    assert not any(item["checksums"] for item in seen["arrays"])
    assert seen["unfinished_ranges"] == (1 if seen["backend"] == "native" else None)
    assert not any(problem["damage"] for problem in check(kept))
    assert digest(kept) == before


def test_a_pool_of_an_older_version_is_read_and_takes_checksums(kept: Path) -> None:
    kept.chmod(0o644)
    with Pool.open(kept) as pool:
        assert (pool["plain"] == np.arange(10.0)).all(), "what the crash cut off is undone"
        assert (pool.restore("solver")["u"] == 1.0).all()
        pool.remove("plain")
        assert pool.checkpoint("solver", {"u": np.full(100, 2.0)}, keep=2) == 3
    assert check(kept) == []
    with Pool.open(kept) as pool:
        assert pool.versions("solver") == [2, 3]
        assert pool.restore("solver")["u"][7] == 2.0
    assert {item["name"]: item["checksums"] for item in look(kept)["arrays"]} == {
        "solver/2/time": False,
        "solver/2/u": False,
        "solver/3/u": True,
    }


STRANGER = """
import os, sys
from tierloom.commands import main
main(["pmem", "show", sys.argv[-1]], standalone_mode=False)  # another user may not be able to load our Python
os.setgroups([]); os.setegid(65534); os.seteuid(65534)
main(sys.argv[1:])
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="becomes another user")
@pytest.mark.parametrize("kept", ["version-1"], indirect=True)
def test_another_users_pool_is_shown_and_checked(kept: Path) -> None:
    kept.parent.chmod(0o755)
    before = digest(kept)
    told = {}
    for verb in ("show", "check", "repair"):
        words = [sys.executable, "-c", STRANGER, "pmem", verb, str(kept)]
        told[verb] = subprocess.run(words, capture_output=True, text=True, check=False)
    assert [done.returncode for done in told.values()] == [0, 0, 1], told
    assert "to write it too" in told["repair"].stderr
    assert digest(kept) == before


@pytest.mark.skipif(bool(lacks_pmdk()), reason="libpmemobj1")
@pytest.mark.parametrize("kept", ["version-1-pmdk"], indirect=True)
def test_libpmemobj_is_shown_a_copy_of_what_may_not_be_written(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert len(look(kept)["arrays"]) == 5
    assert check(kept) == []
    kept.chmod(0o644)
    kept.write_bytes(kept.read_bytes()[:5000])
    with pytest.raises(PoolError, match=str(kept)):
        look(kept)


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts a file system")
def test_a_read_only_file_system_is_no_obstacle(kept: Path, tmp_path: Path) -> None:
    folder = tmp_path / "backup"
    folder.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "tmpfs", str(folder)], check=False, capture_output=True).returncode:
        pytest.skip("nothing may be mounted here")
    try:
        shutil.copyfile(kept, folder / "a.pool")
        subprocess.run(["mount", "-o", "remount,ro", str(folder)], check=True)
        assert len(look(folder / "a.pool")["arrays"]) == 5
        assert not any(problem["damage"] for problem in check(folder / "a.pool"))
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def test_a_pool_that_is_open_is_not_looked_at(quick: Path) -> None:
    with Pool.create(quick / "a.pool", "64KiB"):
        for ask in (look, check):
            with pytest.raises(PoolError, match="another process"):
                ask(quick / "a.pool")


def test_an_open_pool_that_is_cut_short_refuses_what_is_asked_of_it(quick: Path) -> None:
    """Arrays are mapped memory: who touches what the file lost is ended by the kernel. What we are asked is refused."""
    path = quick / "a.pool"
    with Pool.create(path, "1MiB") as pool:
        field = pool.put("field", np.arange(1000.0), checksums=True)
        pool._native.begin()
        pool.save(field[:10])
        os.truncate(path, 4096)
        asked = {
            "save": lambda: pool.save(field),
            "commit": pool._native.commit,
            "abort": pool._native.abort,
            "put": lambda: pool._native.allocate("other", "<f8", 8, 0, checksums=False),
            "free": lambda: pool.remove("field"),
            "verify": lambda: pool.verify("field"),
            "persist": lambda: pool.persist(field),
        }
        for call in asked.values():
            with pytest.raises(PoolError, match="was cut to less than its 1048576 bytes"):
                call()
