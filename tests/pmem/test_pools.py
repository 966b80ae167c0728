"""Pools of arrays: what a user stores comes back, all of a transaction or none of it."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tierloom.errors import PoolError, RequestError
from tierloom.pmem import Pool, check, repair


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a.pool"


@pytest.mark.parametrize("dtype", ["<f8", "<f4", "<i8", "<u2", "|b1", "<c16", "<U5", "|S3", ">i4"])
@pytest.mark.parametrize("shape", [(), (0,), (7,), (3, 4, 5)])
def test_arrays_come_back_as_they_were(path: Path, dtype: str, shape: tuple[int, ...]) -> None:
    values = np.random.default_rng(1).integers(0, 100, shape).astype(dtype)
    with Pool.create(path, "1MiB") as pool:
        pool.put("it", values)
    with Pool.open(path) as pool:
        assert pool.names() == ["it"]
        np.testing.assert_array_equal(pool["it"], values)
        assert pool["it"].dtype == values.dtype


def test_a_transaction_is_all_or_nothing(path: Path) -> None:
    with Pool.create(path, "1MiB") as pool:
        first, second = pool.zeros("first", 100), pool.zeros("second", (10, 10), np.int32)
        with pool.transaction(first, second):
            first[:] = 1
            second[:] = 2

        def cut_off() -> None:
            with pool.transaction(first):
                first[:] = 7
                pool.save(second[3:5])
                second[3:5] = 7
                pool.put("third", first)
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            cut_off()
        assert "third" not in pool
        assert (first == 1).all()
        assert (second == 2).all()


def test_a_process_that_ends_inside_a_transaction_never_began_it(path: Path) -> None:
    program = f"""
import os
from tierloom.pmem import Pool
pool = Pool.create({str(path)!r}, "1MiB")
field = pool.zeros("field", 1000)
with pool.transaction(field):
    field[:] = 1
with pool.transaction(field):
    field[:500] = 2
    os._exit(3)
"""
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 3
    assert check(path) == [
        {"damage": False, "what": "a transaction over 1 ranges was cut off; opening undoes it"},
    ]
    with Pool.open(path) as pool:
        assert pool.recovered == 1
        assert (pool["field"] == 1).all()


WRITER = """
import sys
from tierloom.pmem import Pool
pool = Pool.open(sys.argv[1])
count, left, right = pool["count"], pool["left"], pool["right"]
while True:
    with pool.transaction(count, left, right):
        left += 1
        count += 1
        right += 1
    sys.stdout.write(f"{count[0]}\\n")
    sys.stdout.flush()
"""


@pytest.mark.slow
def test_kill_at_any_moment_loses_nothing_that_was_acknowledged(path: Path) -> None:
    with Pool.create(path, "1MiB") as pool:
        pool.zeros("count", 1, np.int64)
        pool.zeros("left", 500)
        pool.zeros("right", 500)
    moments = random.Random(7)
    for _ in range(12):
        with subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, text=True) as writer:
            assert writer.stdout is not None
            for _ in range(moments.randrange(1, 200)):
                acknowledged = writer.stdout.readline()
            os.kill(writer.pid, signal.SIGKILL)
            acknowledged = (writer.stdout.read().splitlines() or [acknowledged])[-1]
        with Pool.open(path) as pool:
            count = int(pool["count"][0])
            assert count >= int(acknowledged)
            assert (pool["left"] == count).all()
            assert (pool["right"] == count).all()


def test_checkpoints_switch_at_once_and_keep_what_was_asked(path: Path) -> None:
    with Pool.create(path, "1MiB") as pool:
        for step in range(5):
            state = {"u": np.full(100, step), "time": np.float64(step)}
            assert pool.checkpoint("solver", state, keep=3) == step + 1
        assert pool.versions("solver") == [3, 4, 5]
        assert set(pool.restore("solver")) == {"u", "time"}
        assert float(pool.restore("solver")["time"]) == 4
        assert (pool.restore("solver", 3)["u"] == 2).all()
        with pytest.raises(PoolError, match="it has: 3, 4, 5"):
            pool.restore("solver", 1)


def test_a_checkpoint_without_room_leaves_the_one_before(path: Path) -> None:
    with Pool.create(path, "256KiB") as pool:
        pool.checkpoint("s", {"u": np.ones(8000)})
        with pytest.raises(PoolError, match="no room"):
            pool.checkpoint("s", {"u": np.zeros(40000)})
        assert pool.versions("s") == [1]
        assert (pool.restore("s")["u"] == 1).all()


def test_a_pool_grows_under_arrays_in_use(path: Path) -> None:
    with Pool.create(path, "128KiB") as pool:
        small = pool.zeros("small", 100)
        with pytest.raises(PoolError, match="no room"):
            pool.zeros("large", 100_000)
        pool.grow("2MiB")
        small[:] = 5
        pool.zeros("large", 100_000)[:] = 6
        with pytest.raises(RequestError, match="before it grew"):
            pool.persist(small)
        pool.persist(pool["small"])
    with Pool.open(path) as pool:
        assert (pool["small"] == 5).all()
        assert (pool["large"] == 6).all()


def test_one_process_at_a_time(path: Path) -> None:
    with Pool.create(path, "1MiB"), pytest.raises(PoolError, match="another process"):
        Pool.open(path)
    Pool.open(path).close()


def test_requests_that_cannot_be_are_refused_with_a_hint(path: Path) -> None:
    with Pool.create(path, "1MiB") as pool:
        field = pool.zeros("field", 10)
        refused = {
            "taken": lambda: pool.zeros("field", 10),
            "object": lambda: pool.put("objects", np.array([{}])),
            "outside": lambda: pool.persist(np.ones(3)),
            "alone": lambda: pool.save(field),
            "long": lambda: pool.zeros("n" * 65, 1),
        }
        for call in refused.values():
            with pytest.raises(RequestError, match="hint:"):
                call()
        with pool.transaction(), pytest.raises(RequestError, match="do not nest"), pool.transaction():
            pass
    with pytest.raises(PoolError, match="hint:"):
        Pool.create(path, "1MiB")
    with pytest.raises(RequestError, match="at least 64 KiB"):
        Pool.create(path.with_name("b"), 1000)
    assert not path.with_name("b").exists()


def test_a_damaged_pool_is_refused_and_repaired_when_asked(path: Path) -> None:
    with Pool.create(path, "1MiB") as pool:
        pool.put("kept", np.arange(10))
        pool.put("lost", np.arange(10))
        log = pool.usage.log_bytes
    bytes_ = bytearray(path.read_bytes())
    bytes_[8192 + log + 256 + 40] ^= 1
    path.write_bytes(bytes_)
    with pytest.raises(PoolError, match="entry 1"):
        Pool.open(path)
    assert [problem["damage"] for problem in check(path)] == [True]
    assert [problem["damage"] for problem in repair(path)] == [True]
    assert check(path) == []
    with Pool.open(path) as pool:
        assert pool.names() == ["kept"]
        assert (pool["kept"] == np.arange(10)).all()
