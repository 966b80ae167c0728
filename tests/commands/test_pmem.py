"""`tierloom pmem`: a pool made, shown, damaged, checked and repaired."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest
from support import ROOT, Run

from tierloom.commands import pool_command
from tierloom.errors import PoolError
from tierloom.pmem import Pool

KEPT = ROOT / "tests/pmem/kept/version-1.pool.gz"
"""A pool of 0.1.0 that was left in the middle of a transaction."""


@pytest.fixture
def pool(run: Run, folder: Path) -> Path:
    assert run("pmem", "create", "a.pool", "1MiB").returncode == 0
    with Pool.open(folder / "a.pool") as opened:
        opened.put("field", np.ones((3, 4)))
        opened.checkpoint("solver", {"u": np.zeros(10)})
    return folder / "a.pool"


def test_what_is_in_a_pool_is_shown(run: Run, pool: Path) -> None:
    told = run("pmem", "show", pool.name)
    assert "<f8 3x4" in told.stdout
    assert "msync" in told.stdout
    shown = json.loads(run("pmem", "show", pool.name, "--json").stdout)
    assert [item["name"] for item in shown["arrays"]] == ["field", "solver/1/u"]
    assert shown["used_bytes"] == 2 * 4096


def test_damage_is_the_answer_no_until_it_is_repaired(run: Run, pool: Path) -> None:
    assert run("pmem", "check", pool.name).returncode == 0
    content = bytearray(pool.read_bytes())
    content[8192 + (1 << 17) + 40] ^= 1
    pool.write_bytes(content)
    checked = run("pmem", "check", pool.name, "--json")
    assert checked.returncode == 1
    assert json.loads(checked.stdout)["damaged"]
    assert run("pmem", "show", pool.name).returncode == 1
    assert run("pmem", "repair", pool.name).returncode == 0
    assert run("pmem", "check", pool.name).returncode == 0


def test_a_file_that_no_repair_can_save_is_not_sent_to_it(run: Run, pool: Path) -> None:
    entry = 8192 + (1 << 17) + 40
    content = bytearray(pool.read_bytes())
    content[entry] ^= 1
    pool.write_bytes(content)
    assert "pmem repair" in run("pmem", "check", pool.name).stderr
    pool.write_bytes(bytes(len(content)))
    checked = run("pmem", "check", pool.name)
    assert checked.returncode == 1
    assert "damage:" in checked.stdout
    assert "pmem repair" not in checked.stdout + checked.stderr


@pytest.mark.parametrize("words", [("show", "no.pool"), ("check", "no.pool"), ("repair", "no.pool")])
def test_a_pool_that_is_not_there(run: Run, words: tuple[str, ...]) -> None:
    told = run("pmem", *words)
    assert told.returncode == 1
    assert "no.pool" in told.stderr
    assert "hint:" in told.stderr


@pytest.mark.parametrize(
    ("refusal", "hint"),
    [
        ("open (a.pool): Read-only file system (os error 30)", "a file system that may be written"),
        ("open (a.pool): Permission denied (os error 13)", "the right to read the file"),
        ("something else", "check that it is the file of a pool"),
    ],
)
def test_a_pool_that_may_not_be_written_is_told_as_that(refusal: str, hint: str) -> None:
    said = pool_command._told(Path("a.pool"), refusal)
    assert "a.pool" in said
    assert hint in said.split("\nhint:")[1]


def test_what_a_crash_cut_off_is_told(run: Run, folder: Path) -> None:
    (folder / "a.pool").write_bytes(gzip.decompress((KEPT).read_bytes()))
    shown = run("pmem", "show", "a.pool")
    assert shown.returncode == 0
    assert "a transaction over 1 ranges was cut off; shown is the state before it" in shown.stderr
    assert json.loads(run("pmem", "show", "a.pool", "--json").stdout)["unfinished_ranges"] == 1
    assert "note: a transaction over 1 ranges" in run("pmem", "check", "a.pool").stdout


@pytest.mark.parametrize("size", [0, 1, 100, 4096, 65535])
def test_a_file_of_any_size_that_is_too_short_is_told_in_the_same_words(run: Run, folder: Path, size: int) -> None:
    (folder / "a.pool").write_bytes(bytes(size))
    for verb in ("show", "repair"):
        done = run("pmem", verb, "a.pool")
        assert done.returncode == 1
        assert f"{size} bytes are too few for a pool" in done.stderr
    assert f"{size} bytes are too few for a pool" in run("pmem", "check", "a.pool").stdout
    with pytest.raises(PoolError, match=f"{size} bytes are too few"):
        Pool.open(folder / "a.pool")
