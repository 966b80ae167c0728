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
from support import works_or_explains

from tierloom.errors import PoolError, RequestError
from tierloom.pmem import Pool, check, lacks_pmdk, repair

MIB = {"native": 1, "pmdk": 32}
"""Pools of the tests; libpmemobj makes none below 8 MiB, and takes room for each size of arrays."""


@pytest.fixture
def path(quick: Path) -> Path:
    return quick / "a.pool"


@pytest.fixture(params=["native", "pmdk"])
def backend(request: pytest.FixtureRequest) -> str:
    """Both keepers of pools promise the same."""
    if request.param == "pmdk" and (why := lacks_pmdk()):
        pytest.skip(why.replace("\n", "; "))
    return request.param


@pytest.fixture
def made(path: Path, backend: str) -> Path:
    """A new pool that nobody has open."""
    Pool.create(path, f"{MIB[backend]}MiB", backend=backend).close()
    return path


@pytest.mark.parametrize("dtype", ["<f8", "<f4", "<i8", "<u2", "|b1", "<c16", "<U5", "|S3", ">i4"])
@pytest.mark.parametrize("shape", [(), (0,), (7,), (3, 4, 5)])
def test_arrays_come_back_as_they_were(made: Path, dtype: str, shape: tuple[int, ...]) -> None:
    values = np.random.default_rng(1).integers(0, 100, shape).astype(dtype)
    with Pool.open(made) as pool:
        pool.put("it", values)
    with Pool.open(made) as pool:
        assert pool.names() == ["it"]
        np.testing.assert_array_equal(pool["it"], values)
        assert pool["it"].dtype == values.dtype


def test_a_transaction_is_all_or_nothing(made: Path) -> None:
    with Pool.open(made) as pool:
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


def test_a_process_that_ends_inside_a_transaction_never_began_it(made: Path, backend: str) -> None:
    program = f"""
import os
from tierloom.pmem import Pool
pool = Pool.open({str(made)!r})
field = pool.zeros("field", 1000)
with pool.transaction(field):
    field[:] = 1
with pool.transaction(field):
    field[:500] = 2
    pool.zeros("new", 10)
    os._exit(3)
"""
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 3
    told = {"damage": False, "repairable": True, "what": "a transaction over 2 ranges was cut off; opening undoes it"}
    assert check(made) == ([told] if backend == "native" else [])
    with Pool.open(made) as pool:
        assert pool.recovered == (2 if backend == "native" else None)
        assert (pool["field"] == 1).all()
        assert pool.names() == ["field"]


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
def test_kill_at_any_moment_loses_nothing_that_was_acknowledged(made: Path) -> None:
    """Through Python; `crates/pmem/tests/kills.rs` kills thousands of times."""
    with Pool.open(made) as pool:
        pool.zeros("count", 1, np.int64)
        pool.zeros("left", 500)
        pool.zeros("right", 500)
    moments = random.Random(7)
    for _ in range(6):
        with subprocess.Popen([sys.executable, "-c", WRITER, str(made)], stdout=subprocess.PIPE, text=True) as writer:
            assert writer.stdout is not None
            for _ in range(moments.randrange(1, 200)):
                acknowledged = writer.stdout.readline()
            os.kill(writer.pid, signal.SIGKILL)
            acknowledged = (writer.stdout.read().splitlines() or [acknowledged])[-1]
        with Pool.open(made) as pool:
            count = int(pool["count"][0])
            assert count >= int(acknowledged)
            assert (pool["left"] == count).all()
            assert (pool["right"] == count).all()


def test_checkpoints_switch_at_once_and_keep_what_was_asked(made: Path) -> None:
    with Pool.open(made) as pool:
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


def test_one_process_at_a_time(made: Path) -> None:
    with Pool.open(made), pytest.raises(PoolError, match="another process"):
        Pool.open(made)
    Pool.open(made).close()


def test_requests_that_cannot_be_are_refused_with_a_hint(made: Path, backend: str) -> None:
    with Pool.open(made) as pool:
        field = pool.zeros("field", 10)
        refused = {
            "taken": lambda: pool.zeros("field", 10),
            "object": lambda: pool.put("objects", np.array([{}])),
            "outside": lambda: pool.persist(np.ones(3)),
            "alone": lambda: pool.save(field),
            "long": lambda: pool.zeros("n" * 65, 1),
            "missing": lambda: pool.remove("none"),
        }
        for call in refused.values():
            with pytest.raises(RequestError, match="hint:"):
                call()
        with pool.transaction(), pytest.raises(RequestError, match="do not nest"), pool.transaction():
            pass
        assert pool.names() == ["field"]
    with pytest.raises(PoolError, match="hint:"):
        Pool.create(made, "16MiB", backend=backend)
    with pytest.raises(RequestError, match=r"at least (64 KiB|8 MiB)"):
        Pool.create(made.with_name("b"), 1000, backend=backend)
    assert not made.with_name("b").exists()


def test_an_array_without_room_leaves_the_pool_as_it_was(made: Path, backend: str) -> None:
    with Pool.open(made) as pool:
        pool.put("kept", np.arange(5))
        with pytest.raises(PoolError, match="no room"):
            pool.zeros("large", (MIB[backend] << 20) // 8)
        assert pool.names() == ["kept"]
        pool.remove("kept")
        assert pool.usage.used_bytes == 0


def test_libpmemobj_says_what_it_cannot(quick: Path) -> None:
    path = quick / "a.pool"
    if why := lacks_pmdk():
        with pytest.raises(PoolError, match="libpmemobj1"):
            Pool.create(path, "16MiB", backend="pmdk")
        pytest.skip(why.replace("\n", "; "))
    with pytest.raises(RequestError, match="log"):
        Pool.create(path, "16MiB", log="1MiB", backend="pmdk")
    with Pool.create(path, "16MiB", backend="pmdk") as pool, pytest.raises(RequestError, match="larger"):
        pool.grow("32MiB")
    with pytest.raises(RequestError, match="native and pmdk"):
        Pool.create(quick / "b", "16MiB", backend="other")  # type: ignore[arg-type]


def flip(path: Path, at: int) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        byte = file.read(1)[0]
        file.seek(at)
        file.write(bytes([byte ^ 1]))


def test_a_damaged_pool_is_refused_and_repaired_when_asked(made: Path) -> None:
    with Pool.open(made) as pool:
        pool.put("kept", np.arange(10))
        pool.put("broken", np.arange(10))
    flip(made, made.read_bytes().index(b"broken"))
    with pytest.raises(PoolError, match="entry 1"):
        Pool.open(made)
    assert [problem["damage"] for problem in check(made)] == [True]
    assert [problem["damage"] for problem in repair(made)] == [True]
    assert check(made) == []
    with Pool.open(made) as pool:
        assert pool.names() == ["kept"]
        assert (pool["kept"] == np.arange(10)).all()


def test_a_pool_that_was_cut_short_is_refused(made: Path) -> None:
    os.truncate(made, made.stat().st_size // 2)
    with pytest.raises(PoolError, match="hint:"):
        Pool.open(made)
    assert refused_or_damaged(made)


def test_a_broken_header_is_refused_or_made_up_for(made: Path, backend: str) -> None:
    """Ours has a second header; libpmemobj has none."""
    with Pool.open(made) as pool:
        pool.put("kept", np.arange(10))
    flip(made, 20)
    if backend == "native":
        assert check(made) == []
        with Pool.open(made) as pool:
            assert pool.names() == ["kept"]
    else:
        with pytest.raises(PoolError, match="hint:"):
            Pool.open(made)
        assert refused_or_damaged(made)


@pytest.mark.slow
def test_whatever_is_broken_the_one_who_asks_survives(made: Path, backend: str) -> None:
    """libpmemobj ends processes that show it some broken heaps; `check` shows it them in another one."""
    with Pool.open(made) as pool:
        for name in "abc":
            pool.put(name, np.arange(1000))
    sound = made.read_bytes()
    random_ = random.Random(3)
    for _ in range(8 if backend == "pmdk" else 100):
        made.write_bytes(sound)
        for _ in range(20):
            # Where a pool's own records are: ours at the start, libpmemobj's header, lanes and heap.
            flip(made, random_.randrange(4 << 20 if backend == "pmdk" else 1 << 18))
        refused_or_damaged(made)


def refused_or_damaged(path: Path) -> bool:
    """Whether `check` says no, by an error with a hint or by damage that it names; anything else is a bug."""
    found: list[dict] = [{"damage": True, "what": "refused"}]

    def ask() -> None:
        found[:] = check(path)

    works_or_explains(ask)
    return any(problem["damage"] for problem in found)
