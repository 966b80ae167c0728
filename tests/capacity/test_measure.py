"""The experiment: a real database under less and less memory, and the control groups that hold it."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from support import Tierloom

from tierloom.capacity import run_files
from tierloom.capacity.experiment import data, duck, limits, processes, records
from tierloom.capacity.experiment.queries import DEFAULT, QUERIES
from tierloom.errors import MeasurementError, MissingPackageError, RequestError

MIB = 2**20
DISK = "254:0"


@pytest.fixture(scope="module")
def tpch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the database of a tenth of a scale factor."""
    folder = tmp_path_factory.mktemp("tpch")
    data.database(folder, 0.1)
    return folder


def study(folder: Path, *mib: int, streams: tuple[int, ...] = (1,)) -> duck.Study:
    """Few and small runs: one thread and one query, so that spilling does not depend on the machine's mood."""
    sizes = tuple(size * MIB for size in mib)
    return duck.Study(
        folder=folder, scale=0.1, memories=sizes, repeats=1, threads=1, queries=("rank",), streams=streams
    )


@pytest.mark.live
def test_less_memory_spills_more_and_changes_no_answer(tpch: Path) -> None:
    found = duck.measure(study(tpch, 28, 44, 512))
    least, less, much = found.runs
    assert least.spilled_bytes > 1.2 * less.spilled_bytes
    assert less.spilled_bytes > 1e6
    assert much.spilled_bytes < 1e6
    assert min(run.seconds for run in found.runs) > 0.0
    assert found.engine.startswith("DuckDB ")
    assert not list(tpch.glob("spill-*"))


FAKED = {"seconds": 1.0, "cpu_s": 1.0, "read_bytes": 0, "written_bytes": 0, "spilled_bytes": 0, "engine": "none"}


def test_progress_tells_every_run(tpch: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[tuple[int, int, str]] = []
    monkeypatch.setattr(processes, "ask", lambda *_: {**FAKED, "answers": ["same"]})
    duck.measure(study(tpch, 256, streams=(1, 2)), lambda done, of, words: told.append((done, of, words)))
    assert [(done, of) for done, of, _ in told[1:]] == [(0, 2), (1, 2)]
    assert {words for _, _, words in told[1:]} == {"256 MiB, streams: 1", "256 MiB, streams: 2"}


def test_runs_that_disagree_are_not_believed(tpch: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answers = iter(["one", "another"])
    monkeypatch.setattr(processes, "ask", lambda *_: {**FAKED, "answers": [next(answers)]})
    with pytest.raises(MeasurementError, match="two runs gave different answers"):
        duck.measure(study(tpch, 128, 256))


def test_too_little_memory_says_what_to_do(tpch: Path) -> None:
    with pytest.raises(MeasurementError, match=r"(?s)a run with 1MiB failed.*hint: give more memory"):
        duck.measure(study(tpch, 1))


def test_data_that_is_there_is_not_made_again(tpch: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = data.database(tpch, 0.1).stat().st_mtime_ns
    monkeypatch.setattr(data, "_load", pytest.fail)
    assert data.database(tpch, 0.1).stat().st_mtime_ns == before


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data.importlib.util, "find_spec", lambda _: None)
    with pytest.raises(MissingPackageError, match=r"duckdb: not installed\nhint: pip install '\.\[capacity\]'"):
        data.require()


@pytest.mark.parametrize(
    "change", [{"queries": ("99",)}, {"memories": ()}, {"memories": (0,)}, {"streams": (0,)}, {"scale": 0.0}]
)
def test_a_study_that_makes_no_sense_is_refused(tmp_path: Path, change: dict[str, object]) -> None:
    with pytest.raises(RequestError, match="hint: "):
        duck.Study(**{"folder": tmp_path, "scale": 1.0, "memories": (MIB,), **change})


def test_the_default_queries_are_known() -> None:
    assert set(DEFAULT) <= set(QUERIES)


def test_the_verb_writes_a_file_that_fit_reads(tpch: Path, tierloom: Tierloom) -> None:
    words = ("capacity", "measure", "duckdb", "--scale", "0.1", "--repeats", "1", "--queries", "rank", "--folder", tpch)
    file = tpch / "runs.csv"
    first = tierloom(*words, "--memory", "64MiB", "-o", file)
    assert first.exit_code == 0, first.stderr
    assert "next: tierloom capacity fit" in first.stderr
    again = tierloom(*words, "--memory", "256MiB", "-o", file, "--append", "--json")
    assert len(json.loads(again.stdout)["runs"]) == len(run_files.read(file)) == 2
    assert "TPC-H scale factor 0.1" in file.read_text()


@pytest.mark.live
def test_records_are_read_again_where_memory_ends(tmp_path: Path) -> None:
    wanted = records.Study(
        folder=tmp_path,
        mix="ycsb-b",
        data_bytes=64 * MIB,
        memories=(16 * MIB, 256 * MIB),
        operations=20_000,
        repeats=1,
    )
    found = records.measure(wanted)
    if not found.grouped:
        pytest.skip("no control group can be made here")
    little, much = found.runs
    assert little.read_bytes > 1.5 * much.read_bytes
    assert not list(tmp_path.iterdir()), "the records are removed"


def test_records_without_a_control_group_say_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tierloom: Tierloom
) -> None:
    monkeypatch.setattr(limits, "_make", lambda *_: [])
    words = ("--data", "8MiB", "--memory", "16MiB", "--operations", "400", "--repeats", "1", "--folder", tmp_path)
    result = tierloom("capacity", "measure", "records", *words)
    assert result.exit_code == 0
    assert "no control group could be made" in result.stderr
    assert "# no control group" in result.stdout


def tree(folder: Path, groups: str) -> Path:
    """A root folder with a process in some control groups."""
    (folder / "proc/self").mkdir(parents=True)
    (folder / "proc/self/cgroup").write_text(groups)
    return folder


def written(folder: Path) -> dict[str, str]:
    """What was written below a folder."""
    return {path.name: path.read_text() for path in folder.rglob("*") if path.is_file()}


def test_version_1_limits_memory_and_storage(tmp_path: Path) -> None:
    root = tree(tmp_path, "7:blkio:/\n4:memory:/jobs/a\n0::/\n")
    for controller in ("memory/jobs/a", "blkio"):
        (root / "sys/fs/cgroup" / controller).mkdir(parents=True)
    wanted = limits.Limits(memory_bytes=300 * MIB, storage_bytes_s=10**8, device=DISK)
    made = limits._make(wanted, root)
    assert [str(folder.parent.relative_to(root / "sys/fs/cgroup")) for folder in made] == ["memory/jobs/a", "blkio"]
    assert written(made[0]) == {"memory.limit_in_bytes": str(300 * MIB)}
    throttle = {f"blkio.throttle.{way}_bps_device": f"{DISK} 100000000" for way in ("read", "write")}
    assert written(made[1]) == throttle


def test_version_2_makes_a_group_beside_its_own(tmp_path: Path) -> None:
    root = tree(tmp_path, "0::/user.slice/run.scope/app\n")
    beside = root / "sys/fs/cgroup/user.slice/run.scope"
    beside.mkdir(parents=True)
    made = limits._make(limits.Limits(memory_bytes=MIB, storage_bytes_s=5, device=DISK), root)
    assert made == [beside / f"tierloom-{os.getpid()}"]
    assert written(made[0]) == {
        "memory.max": str(MIB),
        "memory.swap.max": "0",
        "io.max": f"{DISK} rbps=5 wbps=5",
    }


def test_where_no_group_can_be_made_there_is_none(tmp_path: Path) -> None:
    with limits.group(limits.Limits(memory_bytes=MIB), tree(tmp_path, "0::/nowhere/app\n")) as groups:
        assert groups == []


def test_the_disk_below_a_partition(tmp_path: Path) -> None:
    number = tmp_path.stat().st_dev
    disk = tmp_path / "sys/devices/vda"
    (disk / "vda1").mkdir(parents=True)
    (disk / "dev").write_text(f"{DISK}\n")
    (disk / "vda1/partition").write_text("1\n")
    block = tmp_path / "sys/dev/block" / f"{os.major(number)}:{os.minor(number)}"
    block.parent.mkdir(parents=True)
    block.symlink_to(disk / "vda1")
    assert limits.device_of(tmp_path, tmp_path) == DISK
    (disk / "vda1/partition").unlink()
    assert limits.device_of(tmp_path, tmp_path) == block.name
    block.unlink()
    assert limits.device_of(tmp_path, tmp_path) is None
