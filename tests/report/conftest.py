"""Results of every kind, made once, and the page that shows them all."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import click.testing
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from browser import Browser
from report_samples import CHANGES, CLAIMS, RUN, STUDY, VALIDATED

import tierloom
from tierloom import catalog, validation
from tierloom.commands import main
from tierloom.report.pages.html_file import CHARTS

PRINTED = {
    "machine": ("machine", "show", "liu-a"),
    "comparison": ("plan", "mg-e", "-m", "liu-a", "-t", "32", "--fast-memory", "64GiB"),
    "simulation": (
        *("simulate", "-w", "zipf", "--size", "64MiB", "--seconds", "2", "-m", "liu-a", "--nodes", "ldram,cxl"),
        *("--fast-memory", "32MiB", "--policy", "none,tiering", "--evaluator", "cohort"),
    ),
    "inference": ("offload", "infer", "--model", "opt-30b", "--gpu", "a10", "-m", "liu-a", "--batch", "16"),
    "training": ("offload", "train", "--model", "gpt2-4b", "--gpu", "a10", "-m", "liu-a", "--batch", "4"),
    "serving": (
        *("offload", "serve", "--model", "llama-3.1-8b", "--gpu", "a10", "-m", "liu-a"),
        *("--sessions", "8", "--context", "4096"),
    ),
    "ratios": ("offload", "cpu", "--model", "llama-7b", "-m", "liu-a", "-t", "16"),
    "expansion": ("expand", "--workload", "vadd", "--config", "cxl,uvm", "--passes", "0.01", "--timeline", "t.svg"),
    "spill-fit": ("capacity", "fit", "duckdb-tpch"),
    "purchases": ("capacity", "plan", "duckdb-tpch", "--dram", "256MiB,1GiB", "--cxl", "0B,512MiB"),
    "anything": ("offload", "list"),
}
"""What verbs print under --json, by the kind that a report takes it for."""


@pytest.fixture(scope="session", autouse=True)
def charts() -> None:
    """Without the charts' scripts there are no pages."""
    if catalog.native_file(CHARTS) is None:
        pytest.skip("the charts' scripts are not there: make install")


@pytest.fixture(scope="session")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with one result of each kind."""
    folder = tmp_path_factory.mktemp("results")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for kind, words in PRINTED.items():
            told = click.testing.CliRunner().invoke(main, [*words, "--json"], catch_exceptions=False)
            assert told.exit_code == 0, told.stderr
            (folder / f"{kind}.json").write_text(told.stdout)
    (folder / "claims.json").write_text(json.dumps({"claims": CLAIMS}))
    told = {"kind": "profiles", "changed": 1, "changes": CHANGES}
    (folder / "difference.json").write_text(json.dumps(told))
    rows = [VALIDATED]
    told = {"machine": "here", "runs": 3, "rows": rows, "failures": [], "summary": validation.summary(rows)}
    (folder / "validation.json").write_text(json.dumps(told))
    (folder / "t.svg").unlink()
    (folder / "run.json").write_text(json.dumps(RUN))
    swept(folder / "far.sweep")
    recorded(folder / "app.profile")
    profile, machine = tierloom.Profile.load(folder / "app.profile"), tierloom.Machine.load("liu-a")
    tierloom.plan(profile, machine).plan().save(folder / "app.plan.toml")
    return folder


def swept(folder: Path) -> None:
    """A sweep, one of whose points was refused."""
    points = [
        {
            "machine": "liu-a",
            "threads": threads,
            "place.*.cxl": share,
            "time_s": threads + share,
            "state": "done" if share < 1 else "refused",
            "key": f"{threads}{share}",
        }
        for threads in (1, 2)
        for share in (0.0, 0.5, 1.0)
    ]
    folder.mkdir()
    (folder / "study.toml").write_text(STUDY)
    table = pa.Table.from_pylist(points).replace_schema_metadata({"study": STUDY})
    pq.write_table(table, folder / "results.parquet")


def recorded(folder: Path) -> None:
    """A profile as a run would leave it: call stacks, waits with intervals, hot pages, samples, two phases."""
    profile = json.loads(tierloom.Profile.load("mg-e").text)
    profile["name"] = "app"
    for index, (item, share) in enumerate(zip(profile["objects"], (0.5, 0.2, 0.1), strict=True)):
        frames = [(f"alloc_{item['name']}", 16 + index), ("</script><b>main", 8)]
        item["site"] = {"stack": [{"module": "app", "offset": offset, "function": name} for name, offset in frames]}
        item["stall"] = {"share": share, "low": share - 0.02, "high": share + 0.02}
        item["hotness"] = [0.25, *[0.05] * 15]
    profile["unattributed"] = [{"name": "[compute]", "stall": {"share": 0.2, "low": 0.18, "high": 0.22}}]
    profile["sampling"] = {"event": "cpu-clock", "hz": 997.0, "samples": 600, "lost": 0, "skid_purity": 0.9}
    first = profile["phases"][0]
    middle = (first["start_s"] + first["end_s"]) / 2
    profile["phases"] = [{**first, "end_s": middle}, {**first, "name": "second", "start_s": middle}]
    tierloom.Profile(json.dumps(profile)).save(folder, b"")
    np.save(folder / catalog.SAMPLES_FILE, samples([item["size_bytes"] for item in profile["objects"]]))


def samples(sizes: list[int]) -> np.ndarray:
    """Sweeps over every object, one after the other."""
    columns = [("time_ns", "<u8"), ("offset", "<u8"), ("thread", "<u4"), ("object", "<i4"), ("access", "u1")]
    rows = np.zeros(600, dtype=columns)
    rows["time_ns"] = np.arange(600) * 10**6
    rows["object"] = np.arange(600) % len(sizes)
    rows["offset"] = (np.arange(600) / 600 * np.array(sizes)[rows["object"]]).astype(np.uint64)
    rows["access"] = 1
    return rows


@pytest.fixture(scope="session")
def page(results: Path) -> Path:
    """The report of all of them."""
    return report(results.parent / "page.html", results)


@pytest.fixture(scope="session")
def short(results: Path) -> Path:
    """The report of a machine, a profile and a plan."""
    return report(results.parent / "short.html", "liu-a", results / "app.profile", results / "app.plan.toml")


def report(path: Path, *what: str | Path) -> Path:
    """A page, and beside it what `--json` says of it."""
    words = ["report", *map(str, what), "-o", str(path), "--json"]
    told = click.testing.CliRunner().invoke(main, words, catch_exceptions=False)
    assert told.exit_code == 0, told.stderr
    path.with_suffix(".json").write_text(told.stdout)
    return path


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """One browser for all tests of a process."""
    started = Browser(tmp_path_factory.mktemp("browser"))
    yield started
    started.driver.quit()
