"""Checksums: of checkpoints always, of arrays that ask for them; what does not match is never handed out silently."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

from tierloom.errors import PoolError, RequestError
from tierloom.pmem import Pool, check, lacks_pmdk

MIB = {"native": 1, "pmdk": 16}


@pytest.fixture(params=["native", "pmdk"])
def backend(request: pytest.FixtureRequest) -> str:
    if request.param == "pmdk" and (why := lacks_pmdk()):
        pytest.skip(why.replace("\n", "; "))
    return request.param


@pytest.fixture
def made(quick: Path, backend: str) -> Path:
    """Two versions of a checkpoint, an array with checksums and one without."""
    path = quick / "a.pool"
    with Pool.create(path, f"{MIB[backend]}MiB", backend=backend) as pool:
        for step in range(2):
            pool.checkpoint("solver", {"u": np.full(5000, step + 0.5), "time": np.float64(step)})
        pool.put("field", np.arange(3000.0), checksums=True)
        pool.put("plain", np.arange(3000.0))
    return path


def flip(path: Path, at: int, bit: int = 0) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        byte = file.read(1)[0]
        file.seek(at)
        file.write(bytes([byte ^ 1 << bit]))


def place(path: Path, name: str) -> tuple[int, int]:
    """First byte of an array in the file, and its size."""
    with Pool.open(path) as pool:
        return next((row.offset, row.size) for row in pool._rows() if row.name == name)


def test_a_damaged_checkpoint_is_not_restored_and_a_whole_version_is_named(made: Path) -> None:
    offset, _ = place(made, "solver/2/u")
    flip(made, offset + 5000)
    assert [problem["what"] for problem in check(made)] == [
        "array `solver/2/u`: 4096 bytes do not match their checksums, the first at byte 4096"
    ]
    with Pool.open(made) as pool:
        with pytest.raises(PoolError, match=r"(?s)`solver/2/u`.*byte 4096.*version 1 is whole: restore\('solver', 1\)"):
            pool.restore("solver")
        assert (pool.restore("solver", 1)["u"] == 0.5).all()
        assert pool.verify("solver/2/u") == [(4096, 8192)]
        assert (pool.raw("solver/2/u") != 1.5).sum() == 1


def test_an_array_is_verified_when_it_is_first_taken(made: Path) -> None:
    offset, _ = place(made, "field")
    flip(made, offset)
    with Pool.open(made) as pool:
        with pytest.raises(PoolError, match=r"(?s)8192|4096 bytes of `field`.*pool.raw\('field'\)"):
            pool["field"]
        rest = pool.raw("field")
        with pool.transaction(rest[:1]):
            rest[0] = 0
        assert pool["field"][2999] == 2999
    assert check(made) == []


def test_without_checksums_a_flipped_bit_stays_unseen(made: Path) -> None:
    """As docs/pmem.md says: they are asked for, or the array is part of a checkpoint."""
    offset, _ = place(made, "plain")
    flip(made, offset + 100)
    assert check(made) == []
    with Pool.open(made) as pool:
        assert (pool["plain"] != np.arange(3000.0)).sum() == 1


def test_transactions_keep_checksums_and_nothing_else_may(made: Path) -> None:
    with Pool.open(made) as pool:
        field = pool["field"]
        with pool.transaction(field[100:2000]):
            field[100:2000] = -1
        with pytest.raises(ZeroDivisionError), pool.transaction(field):
            field[:] = 1 / 0
        assert pool.verify("field") == []
        with pytest.raises(RequestError, match="transactions only"):
            pool.persist(field)
        restored = pool.restore("solver")["u"]
        with pytest.raises(ValueError, match="read-only"):
            restored[0] = 1
        with pool.transaction():
            pool.checkpoint("inner", {"v": np.ones(3)})
            assert pool.restore("inner")["v"].tolist() == [1, 1, 1], "what a transaction writes has no checksum yet"
    assert check(made) == []
    with Pool.open(made) as pool:
        assert pool["field"].sum() == np.arange(3000.0).sum() - np.arange(100.0, 2000.0).sum() - 1900


def test_no_bit_of_a_checkpoint_flips_silently(made: Path) -> None:
    """Through files; `crates/pmem/tests/checksums.rs` flips ten thousand."""
    offset, size = place(made, "solver/2/u")
    moments = random.Random(5)
    for _ in range(6 if made.stat().st_size > 1 << 21 else 200):
        at, bit = offset + moments.randrange(size), moments.randrange(8)
        flip(made, at, bit)
        assert [problem["damage"] for problem in check(made)] == [True]
        flip(made, at, bit)
    assert check(made) == []


@pytest.mark.slow
def test_two_thousand_bits_of_an_array_and_its_table_flip_and_none_is_silent(quick: Path) -> None:
    path = quick / "b.pool"
    with Pool.create(path, "1MiB") as pool:
        pool.put("field", np.arange(30_000.0), checksums=True)
    offset, size = place(path, "field")
    table = offset + (size + 63) // 64 * 64
    moments = random.Random(6)
    for _ in range(2000):
        where = (offset, size) if moments.random() < 0.8 else (table, -(-size // 4096) * 8)
        at, bit = where[0] + moments.randrange(where[1]), moments.randrange(8)
        flip(path, at, bit)
        with Pool.open(path) as pool, pytest.raises(PoolError, match="do not match"):
            pool["field"]
        flip(path, at, bit)
