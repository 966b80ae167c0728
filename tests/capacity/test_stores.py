"""Stores and Spark under less and less memory: the operations, the file behind, the runs."""

from __future__ import annotations

import importlib.util
import json
from collections import Counter
from pathlib import Path

import pytest
from support import Tierloom

from tierloom.capacity.experiment import blocks, counters, redis_store, spark
from tierloom.capacity.experiment.ycsb import LONGEST_SCAN, MIXES, Load, Operation
from tierloom.errors import MissingPackageError, RequestError

MIB = 2**20


def load(mix: str, *, thread: int = 0, phase: int = 0, before: int = 0, theta: float = 0.99) -> Load:
    return Load(
        mix=mix,
        records=5000,
        operations=4000,
        theta=theta,
        seed=3,
        thread=thread,
        threads=2,
        phase=phase,
        before=before,
    )


@pytest.mark.parametrize("mix", MIXES)
def test_a_mix_has_the_published_shares_and_is_the_same_every_time(mix: str) -> None:
    drawn = load(mix).drawn()
    counted = Counter(each.kind for each in drawn)
    for kind in ("read", "update", "insert", "scan", "modify"):
        assert counted[kind] / len(drawn) == pytest.approx(getattr(MIXES[mix], kind), abs=0.03)
    assert drawn == load(mix).drawn()
    assert drawn != load(mix, phase=1).drawn()
    assert load(mix).inserts == counted["insert"]


def test_popular_records_are_few_and_scattered() -> None:
    found = Counter(each.record for each in load("ycsb-c").drawn())
    top = [record for record, _ in found.most_common(50)]
    assert sum(found[record] for record in top) > 0.4 * 4000
    assert max(top) - min(top) > 3000
    even = Counter(each.record for each in load("ycsb-c", theta=0.0).drawn())
    assert even.most_common(1)[0][1] < 10


def test_the_latest_records_are_the_popular_ones_and_are_there() -> None:
    known = set(range(5000))
    reads: list[Operation] = []
    for each in [*load("ycsb-d").drawn(), *load("ycsb-d", phase=1, before=load("ycsb-d").inserts).drawn()]:
        if each.kind == "insert":
            assert each.record not in known
            known.add(each.record)
        else:
            assert each.record in known
            reads.append(each)
    assert sum(each.record >= 4900 for each in reads) > 0.5 * len(reads)


def test_threads_insert_records_of_their_own() -> None:
    mine, yours = ({o.record for o in load("ycsb-d", thread=t).drawn() if o.kind == "insert"} for t in (0, 1))
    assert mine
    assert not mine & yours


def test_scans_are_of_one_to_a_hundred_records() -> None:
    lengths = [each.length for each in load("ycsb-e").drawn() if each.kind == "scan"]
    assert min(lengths) == 1
    assert max(lengths) == LONGEST_SCAN


@pytest.mark.live
def test_records_of_a_file_are_read_and_written_past_the_page_cache(tmp_path: Path) -> None:
    file = tmp_path / "store.bin"
    blocks.make(file, 5000, seed=1)
    door = blocks.Blocks(file)
    try:
        before = counters.storage()["read_bytes"]
        assert [blocks.number_of(door.read(number)) for number in (0, 3, 4999, 3)] == [0, 3, 4999, 3]
        if counters.storage()["read_bytes"] == before:
            pytest.skip("this file system has no storage below it")
        assert counters.storage()["read_bytes"] == before + 4 * blocks.BLOCK_BYTES
        changed = (7).to_bytes(8, "little") * 125
        door.write(7, changed)
        assert door.read(7) == changed
        assert blocks.number_of(door.read(6)) == 6
    finally:
        door.close()


def redis_study(folder: Path, mix: str, *mib: int) -> redis_store.Study:
    sizes = tuple(size * MIB for size in mib)
    return redis_store.Study(
        folder=folder,
        mix=mix,
        data_bytes=4 * MIB,
        memories=sizes,
        operations=200 if mix == "ycsb-e" else 2000,
        threads=2,
        repeats=1,
    )


@pytest.mark.live
@pytest.mark.needs("redis-server")
@pytest.mark.parametrize("mix", ["ycsb-a", "ycsb-d", "ycsb-e"])
def test_a_store_spills_where_its_memory_ends_and_answers_alike(tmp_path: Path, mix: str) -> None:
    pytest.importorskip("redis")
    little, much = redis_store.measure(redis_study(tmp_path, mix, 3, 64)).runs
    assert much.read_bytes == much.written_bytes == 0, "a store that holds all has no file"
    if little.read_bytes == 0:
        pytest.skip("this file system has no storage below it")
    assert little.read_bytes > 100 * blocks.BLOCK_BYTES
    assert little.written_bytes > 0, "updates and inserts go to the file too"
    assert not list(tmp_path.iterdir()), "the file is removed"


@pytest.mark.live
@pytest.mark.needs("redis-server")
def test_the_verb_measures_a_store(tmp_path: Path, tierloom: Tierloom) -> None:
    pytest.importorskip("redis")
    words = ("--data", "2MiB", "--memory", "2MiB,64MiB", "--operations", "400", "--repeats", "1", "--folder", tmp_path)
    result = tierloom("capacity", "measure", "redis", *words, "--json")
    assert result.exit_code == 0, result.stderr
    assert len(json.loads(result.stdout)["runs"]) == 2


def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redis_store.importlib.util, "find_spec", lambda _: None)
    with pytest.raises(MissingPackageError, match=r"redis: not installed\nhint: pip install '\.\[capacity\]'"):
        redis_store.require()
    with pytest.raises(MissingPackageError, match=r"pyspark: not installed\nhint: pip install '\.\[spark\]'"):
        spark.require()
    monkeypatch.setattr(redis_store.importlib.util, "find_spec", lambda _: True)
    with pytest.raises(MissingPackageError, match="no-such-server: not installed"):
        redis_store.require("no-such-server")


@pytest.mark.parametrize("change", [{"mix": "ycsb-z"}, {"memories": (0,)}, {"data_bytes": 10}, {"theta": -1.0}])
def test_a_store_study_that_makes_no_sense_is_refused(tmp_path: Path, change: dict[str, object]) -> None:
    with pytest.raises(RequestError, match="hint: "):
        redis_store.Study(**{"folder": tmp_path, "mix": "ycsb-a", "data_bytes": MIB, "memories": (MIB,), **change})


@pytest.mark.parametrize("change", [{"job": "sort"}, {"memories": (64 * MIB,)}, {"memories": ()}])
def test_a_spark_study_that_makes_no_sense_is_refused(tmp_path: Path, change: dict[str, object]) -> None:
    with pytest.raises(RequestError, match="hint: "):
        spark.Study(**{"folder": tmp_path, "job": "svm", "rows": 1000, "memories": (1024 * MIB,), **change})


@pytest.mark.live
@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("pyspark") is None, reason="pyspark is not installed")
@pytest.mark.needs("java")
@pytest.mark.parametrize("job", spark.JOBS)
def test_spark_runs_and_answers_alike(tmp_path: Path, job: str) -> None:
    study = spark.Study(folder=tmp_path, job=job, rows=20_000, memories=(512 * MIB, 1024 * MIB), repeats=1)
    found = spark.measure(study)
    assert found.engine.startswith("Spark ")
    assert all(run.seconds > 0.0 for run in found.runs)
    assert not list(tmp_path.iterdir()), "spilled files are removed"
