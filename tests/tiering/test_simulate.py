"""`tierloom simulate` and `tierloom trace`: what is asked is what is answered."""

from __future__ import annotations

import gzip
import io
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import Tierloom, words_of

import tierloom as package
from tierloom import migration_simulator, traces
from tierloom.errors import PlacementError, ProfileError, RequestError, TraceError, WorkloadError
from tierloom.migration_simulator import Simulation, Workload, import_trace, simulate, simulate_trace

if TYPE_CHECKING:
    from tierloom.schema import WorkloadDoc

NODES = ["ldram", "cxl"]
MACHINE = package.Machine.load("liu-a")


@pytest.fixture(autouse=True)
def in_an_empty_folder(folder: Path) -> Path:
    return folder


def test_every_policy_runs_on_a_published_workload(tierloom: Tierloom) -> None:
    ask = ("simulate", "-w", "pagerank", "-m", "liu-a", "--nodes", "ldram,cxl", "--fast-memory", "50%")
    result = tierloom(*ask, "--policy", "none,autonuma,tiering,hemem,tierloom", "--json")
    assert result.exit_code == 0
    runs = {run["policy"]: run for run in json.loads(result.stdout)["runs"]}
    assert list(runs) == ["none", "autonuma", "tiering", "hemem", "tierloom"]
    assert runs["none"]["counters"]["numa_hint_faults"] == 0
    assert runs["autonuma"]["counters"]["numa_hint_faults_local"] > 0
    assert runs["tiering"]["counters"]["pgpromote_success"] > 0
    assert min(runs, key=lambda name: runs[name]["time_s"]) == "tierloom"
    for run in runs.values():
        assert sum(run["parts"].values()) == pytest.approx(run["time_s"])
        assert run["series"][-1]["counters"] == run["counters"]


def test_the_tables_and_the_picture(tierloom: Tierloom, folder: Path) -> None:
    ask = ("simulate", "-w", "zipf", "--size", "1GiB", "--seconds", "5", "-m", "liu-a", "--nodes", "ldram,cxl")
    result = tierloom(*ask, "--fast-memory", "512MiB", "--plot", "runs.svg")
    assert result.exit_code == 0
    for words in ("numa_hint_faults", "from fast memory", "tierloom", "below"):
        assert words in result.stdout
    drawn = words_of(folder / "runs.svg")
    policies = {"none", "autonuma", "tiering", "tpp", "tierloom"}
    assert {"Where the time goes", "Served by fast memory", *policies} <= set(drawn)
    assert any(text.startswith("tierloom is fastest, ") for text in drawn), "the answer stands above"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--policy", "magic", "-w", "silo"), "use one of: tierloom, none"),
        (("-w", "sillo"), "did you mean silo"),
        (("-w", "silo", "--set", "hot_threshold_ms=x"), "is no number"),
        (("-w", "silo", "--policy", "none", "--set", "speed=1"), "it has none"),
        (("-w", "silo", "--placement", "heap"), "first-touch"),
        (("-w", "silo", "--nodes", "ram"), "rdram, ldram, cxl"),
        ((), "one of PROFILE, --workload and --trace has to be given, and none of them is"),
        (("mg-e", "-w", "silo"), "and 2 are"),
        (("mg-e", "--size", "1GiB"), "--size does nothing without --workload zipf|"),
        (("mg-e", "--mlp", "8"), "--mlp does nothing without"),
        (("-w", "silo", "--ran-on", "liu-a"), "--ran-on does nothing without PROFILE"),
        (("-w", "silo", "--threads", "8"), "--threads does nothing beside --workload silo"),
        (("-w", "silo", "--ns-per-access", "5"), "--ns-per-access does nothing without --trace"),
        (("--trace", "t.npy", "--evaluator", "exact"), "--evaluator does nothing beside --trace"),
        (("-w", "silo", "--plan", "a.plan.toml", "--placement", "interleave"), "both say where"),
    ],
)
def test_wrong_requests_end_with_words_and_code_2(tierloom: Tierloom, words: tuple[str, ...], said: str) -> None:
    result = tierloom("simulate", "-m", "liu-a", *words)
    assert result.exit_code == 2
    assert said in result.stderr
    assert "hint:" in result.stderr


def test_data_that_does_not_fit_is_an_answer_not_a_mistake(tierloom: Tierloom) -> None:
    result = tierloom("simulate", "mg-e", "-m", "liu-a", "--nodes", "ldram,cxl", "--fast-memory", "8GiB")
    assert result.exit_code == 1
    assert "no room" in result.stderr
    with pytest.raises(PlacementError, match="no room"):
        simulate(package.Profile.load("mg-e"), MACHINE, "tierloom", nodes=NODES, fast_memory="8GiB")


@pytest.mark.parametrize("name", ["ft-d", "xsbench-xl", "cg-e"])
@pytest.mark.parametrize("memory", ["ldram", "rdram"])
def test_without_migration_it_is_the_prediction(name: str, memory: str) -> None:
    """`predict` and `tiering` share no code but the loads; where both can answer they answer alike."""
    profile = package.Profile.load(name)
    column = [node["name"] for node in MACHINE.data["memories"]].index(memory)
    row = [1.0 if index == column else 0.0 for index in range(3)]
    predicted = package.predict(profile, MACHINE, [row] * len(profile.data["objects"]), threads=32)
    moved = simulate(profile, MACHINE, "none", placement=f"preferred:{memory}", threads=32)
    assert moved.time_s == pytest.approx(predicted.time_s, rel=1e-6)


@pytest.mark.parametrize("memory", ["ldram", "cxl"])
def test_a_run_that_was_recorded_waits_as_in_its_prediction(memory: str) -> None:
    """Each access waits by a factor of its own, and the kernel brought some of the lines."""
    document = json.loads(package.Profile.load("xsbench-xl").text)
    accesses = [access for phase in document["phases"] for access in phase["accesses"]]
    for at, access in enumerate(accesses):
        bytes_read = access["dram_read_bytes"]
        access["touched"] = {"bytes": 2 * bytes_read, "filled_bytes": 0.1 * at * bytes_read, "mlp": 4.0}
        access["touched"]["cache_wait_s"] = 0.0
        access["wait_s"] = 200.0 * (at + 1)
    document["sampling"] = {"event": "cpu-clock", "hz": 997.0, "samples": 10000, "lost": 0, "skid_purity": 1.0}
    profile = package.Profile(json.dumps(document))
    policy = f"preferred:{memory}"
    planned = package.plan(profile, MACHINE, threads=32, policies=[policy], ran_on=MACHINE)
    moved = simulate(profile, MACHINE, "none", placement=policy, threads=32, ran_on=MACHINE)
    alone = simulate(profile, MACHINE, "none", placement=policy, threads=32)
    assert moved.time_s == pytest.approx(planned.policy(policy)["prediction"]["time_s"], rel=1e-6)
    assert moved.time_s != pytest.approx(alone.time_s, rel=0.05)
    assert (moved.ran_on, alone.ran_on) == ("liu-a", None)


def test_spread_data_takes_as_long_as_predicted() -> None:
    profile = package.Profile.load("ft-d")
    predicted = package.predict(profile, MACHINE, [[0.0, 0.5, 0.5]] * 3, threads=32)
    moved = simulate(profile, MACHINE, "autonuma", placement="interleave:ldram+cxl", threads=32)
    assert moved.time_s == pytest.approx(predicted.time_s, rel=1e-4)
    assert moved.data["counters"]["numa_hint_faults"] == 0


@pytest.mark.parametrize("name", ["silo", "pagerank", "graph500", "btree"])
@pytest.mark.parametrize("machine", ["liu-a", "bytedance-spr-a1000"])
def test_ours_is_at_least_as_fast_as_the_best_of_the_others(name: str, machine: str) -> None:
    """On a subset; `benches/tiering_policies.py` tries every workload, policy and amount of memory."""
    workload, place = Workload.load(name), package.Machine.load(machine)

    def run(policy: str, placement: str | None = None) -> float:
        return simulate(workload, place, policy, placement=placement, nodes=NODES, fast_memory="50%").time_s

    others = [
        run("none"),
        run("none", "interleave"),
        run("none", "soar"),
        run("tiering"),
        run("colloid"),
        run("memtis"),
    ]
    assert run("tierloom") <= min(others) * 1.01


def lackey(rows: int) -> str:
    return "==1== Lackey\n" + "".join(
        f" {'LS'[i % 5 == 0]} {0x10000 + (i * 4096) % (1 << 24):x},8\n" for i in range(rows)
    )


def test_a_trace_is_imported_and_run(tierloom: Tierloom, folder: Path) -> None:
    (folder / "t.txt").write_text(lackey(20_000))
    result = tierloom("trace", "import", "t.txt", "--format", "lackey", "--json")
    told = {"kind": "trace", "version": 2, "lines": 20_001, "accesses": 20_000, "output": "t.npy"}
    assert json.loads(result.stdout) == told
    rows = np.load("t.npy")
    assert rows["write"].sum() == 4000
    runs = tierloom("simulate", "--trace", "t.npy", "-m", "liu-a", "--policy", "none,autonuma", "--json")
    for run in json.loads(runs.stdout)["runs"]:
        assert sum(node["used_pages"] for node in run["nodes"]) == 4096
        assert run["counters"]["numa_hit"] == 4096


def test_packed_text_and_a_cache(folder: Path) -> None:
    with gzip.open(folder / "t.gz", "wt") as file:
        file.write(lackey(10_000))
    assert import_trace("t.gz", "all.npy", "lackey")[1] == 10_000
    # 4096 lines that each come again after 4096 others: a cache of 1 MiB holds them, one of 64 KiB none.
    assert import_trace("t.gz", "few.npy", "lackey", llc="1MiB")[1] == 4096
    assert import_trace("t.gz", "most.npy", "lackey", llc="64KiB")[1] > 10_000


@pytest.mark.parametrize(("text", "row"), [(" L 10,8\n L zz,8\n", 2), (" S 10\n", 1), (" L 1,8\n" * 9 + " M ,4", 10)])
def test_a_bad_row_of_text_is_named(folder: Path, text: str, row: int) -> None:
    (folder / "t.txt").write_text(text)
    with pytest.raises(TraceError, match=f"t.txt:{row}:"):
        import_trace("t.txt", "t.npy", "lackey")
    assert not (folder / "t.npy").exists()


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (np.array([1.5, 2.5]), "not whole numbers"),
        (np.array([[1, 2], [3, 4]]), "2 dimensions"),
        (np.array([4096, -1]), r"t.npy:2: address is -1"),
        (np.array([(1, 7)], dtype=[("address", "<u8"), ("write", "<u8")]), r"t.npy:1: write is 7"),
        (np.array([(1, 256)], dtype=[("address", "<u8"), ("write", "<u8")]), r"t.npy:1: write is 256"),
        (np.array([(1, 2**32)], dtype=[("address", "<u8"), ("thread", "<u8")]), r"t.npy:1: thread is 4294967296"),
        (np.array([(1,), (2**52,)], dtype=[("page", "<u8")]), r"t.npy:2: page is 4503599627370496"),
        (np.array([(1,)], dtype=[("where", "<u8")]), "one of them has to be `address`"),
        (np.array([(9, 1), (5, 1)], dtype=[("time_ns", "<u8"), ("address", "<u8")]), r"t.npy:2: time 5 ns"),
    ],
)
def test_a_bad_trace_is_named(folder: Path, rows: np.ndarray, said: str) -> None:
    np.save(folder / "t.npy", rows)
    with pytest.raises(TraceError, match=said):
        simulate_trace("t.npy", MACHINE, "none")


def test_a_trace_that_is_cut_off_says_in_which_row() -> None:
    np.save("whole.npy", np.zeros(1000, dtype=traces.ROW))
    Path("t.npy").write_bytes(Path("whole.npy").read_bytes()[:-30])
    with pytest.raises(TraceError, match=r"t.npy:999: the file ends in this row of 1000"):
        simulate_trace("t.npy", MACHINE, "none")


def test_a_trace_that_cannot_be_written_is_named(folder: Path) -> None:
    Path("lackey.txt").write_text(" L 1000,8\n")
    with pytest.raises(RequestError, match=r"missing.t\.npy: No such file"):
        import_trace("lackey.txt", folder / "missing" / "t.npy", "lackey")


def test_columns_may_be_few() -> None:
    pages = np.array([(5, 0), (6, 1), (5, 1)], dtype=[("page", "<u4"), ("write", "u1")])
    np.save("pages.npy", pages)
    np.save("addresses.npy", pages["page"].astype("<u8") * 4096)
    both = [simulate_trace(name, MACHINE, "none") for name in ("pages.npy", "addresses.npy")]
    assert [sum(node["used_pages"] for node in run.data["nodes"]) for run in both] == [2, 2]


@given(st.binary(max_size=400))
def test_any_bytes_are_answered(blob: bytes) -> None:
    Path("fuzz.npy").write_bytes(blob)
    with pytest.raises(TraceError):
        simulate_trace("fuzz.npy", MACHINE, "none")


def test_a_trace_is_read_a_block_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(traces, "BLOCK_ROWS", 1000)
    np.save("t.npy", np.arange(5000, dtype="<u8") * 64)
    sizes = [len(block) // traces.ROW.itemsize for block in traces.blocks(Path("t.npy"))]
    assert sizes == [1000] * 5


PEAK = """
import sys
from tierloom import Machine, simulate_trace
simulate_trace(sys.argv[1], Machine.load("liu-a"), "tiering")
status = dict(line.split(":") for line in open("/proc/self/status"))
print(status["VmHWM"].split()[0])
"""
"""Peak of resident memory in KiB; what getrusage says includes the parent's at the time of the fork."""


def test_a_long_trace_takes_no_more_memory_than_a_short_one(folder: Path) -> None:
    """Same pages, 24 times as many rows: 130 MB of them."""
    peaks = []
    for blocks in (1, 24):
        pages = np.arange(blocks << 18, dtype="<u8") % 4096
        rows = np.zeros(len(pages), dtype=traces.ROW)
        rows["address"] = pages * 4096
        np.save(folder / "long.npy", rows)
        done = subprocess.run(
            [sys.executable, "-c", PEAK, str(folder / "long.npy")], capture_output=True, text=True, check=True
        )
        peaks.append(int(done.stdout) << 10)
    assert peaks[1] < peaks[0] + (32 << 20)


def recorded(folder: Path) -> package.Profile:
    """32 MiB: 2 s in its first half, then 2 s in its second; a sample every ms."""
    size, bytes_read = 32 << 20, 4e9
    access = {"object": "data", "pattern": "random", "mlp": 1.0, "reads": 4e7, "writes": 0.0}
    access |= {"read_bytes": 3.2e8, "write_bytes": 0.0, "dram_read_bytes": bytes_read, "dram_write_bytes": 0.0}
    phase = {"name": "whole", "start_s": 0.0, "end_s": 4.0, "threads": 1, "compute_s": 0.5, "accesses": [access]}
    item = {"name": "data", "kind": "heap", "site": {"name": "data"}, "size_bytes": size, "allocations": 1}
    item |= {"first_s": 0.0, "last_s": 4.0, "first_touch_s": 0.0}
    program = {"command": ["toy"], "wall_s": 4.0, "cpu_s": 4.0, "threads": 1, "cpu": "any", "llc_bytes": 1 << 20}
    document = {"version": 1, "name": "toy", "program": program, "objects": [item], "phases": [phase]}
    kinds = [("time_ns", "<u8"), ("offset", "<u8"), ("thread", "<u4"), ("object", "<i4"), ("access", "u1")]
    rows = np.zeros(4000, dtype=kinds)
    rows["time_ns"] = np.arange(4000) * 1_000_000
    rows["offset"] = np.arange(4000) * 40_961 % (size // 2) + (rows["time_ns"] >= 2_000_000_000) * (size // 2)
    rows["object"][::100] = -1
    rows["access"] = 1
    packed = io.BytesIO()
    np.save(packed, rows)
    profile = package.Profile(json.dumps(document))
    profile.save(folder / "toy.profile", packed.getvalue())
    return package.Profile.load(folder / "toy.profile")


def test_samples_are_followed_in_the_order_of_time(folder: Path, tierloom: Tierloom) -> None:
    profile = recorded(folder)

    def early_and_late(**how: bool) -> tuple[float, float]:
        run = simulate(profile, MACHINE, "none", nodes=NODES, fast_memory="50%", evaluator="exact", **how)
        times = [point["time_s"] for point in run.data["series"]]
        assert sorted(set(times)) == times, "a point of no time has no bandwidth"
        assert times[-1] == pytest.approx(run.data["time_s"])
        shares = [point["fast_share"] for point in run.data["series"]]
        third = len(shares) // 3
        return sum(shares[:third]) / third, sum(shares[-third:]) / third

    early, late = early_and_late(samples=True)
    # Seven eighths of the first half are in fast memory; the visits of the rest take longer.
    assert early > 0.6
    assert late < 0.05
    assert early_and_late() == pytest.approx((0.47, 0.47), abs=0.08)
    ask = ("simulate", "toy.profile", "--samples", "-m", "liu-a", "--nodes", "ldram,cxl", "--fast-memory", "50%")
    runs = json.loads(tierloom(*ask, "--json").stdout)["runs"]
    assert [run["policy"] for run in runs] == ["none", "autonuma", "tiering", "tpp"]
    assert all(run["evaluator"] == "exact, along 3960 samples" for run in runs)


def test_a_run_that_mostly_moves_pages_says_what_that_comes_to(folder: Path, tierloom: Tierloom) -> None:
    recorded(folder)
    ask = ("simulate", "toy.profile", "-m", "bytedance-spr-a1000", "--nodes", "ldram,cxl", "--fast-memory", "50%")
    by_object = " ".join(tierloom(*ask, "--policy", "none,tpp").stdout.split())
    assert re.search(r"tpp: [\d,]+ promotions at 31 faults and 2.0 copies each, [\d.]+ \S+ together, take", by_object)
    assert "--samples follows the pages" in by_object
    along = " ".join(tierloom(*ask, "--policy", "none,tpp", "--samples").stdout.split())
    assert "--samples follows" not in along


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("mg-e", "--samples"), "has no samples"),
        (("-w", "silo", "--samples"), "only a recorded profile"),
        (("toy.profile", "--samples", "--policy", "tierloom"), "page by page"),
        (("toy.profile", "--samples", "--evaluator", "cohort"), "page by page"),
    ],
)
def test_samples_that_cannot_be_followed(folder: Path, tierloom: Tierloom, words: tuple[str, ...], said: str) -> None:
    recorded(folder)
    result = tierloom("simulate", "-m", "liu-a", *words)
    assert result.exit_code == 2
    assert said in result.stderr
    assert "hint:" in result.stderr


def test_broken_samples_are_named(folder: Path) -> None:
    profile = recorded(folder)
    (folder / "toy.profile/samples.npy").write_bytes(b"no samples")
    with pytest.raises(ProfileError, match=r"toy\.profile/samples\.npy: no whole array of samples"):
        simulate(profile, MACHINE, "none", samples=True)


def parquet_of(rows: dict[str, list]) -> Path:
    pa.parquet.write_table(pa.table(rows), "t.parquet", row_group_size=700)
    return Path("t.parquet")


def test_parquet_says_what_npy_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(traces, "BLOCK_ROWS", 500)
    addresses = [0x10000 + (i * 4160) % (1 << 22) for i in range(3000)]
    columns = {"time_ns": list(range(3000)), "address": addresses, "thread": [1] * 3000, "write": [0, 0, 1] * 1000}
    rows = np.zeros(3000, dtype=traces.ROW)
    for name, column in columns.items():
        rows[name] = column
    np.save("t.npy", rows)
    found = parquet_of({"note": ["ignored"] * 3000, **columns})
    assert b"".join(traces.blocks(found)) == rows.tobytes()
    assert max(len(block) for block in traces.blocks(found)) <= 500 * traces.ROW.itemsize
    both = [simulate_trace(name, MACHINE, "autonuma", fast_memory="1MiB").data for name in ("t.npy", found)]
    assert both[0] == both[1]


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ({"address": [1, None, 3]}, r"t.parquet:2: address is missing"),
        ({"address": ["a", "b"]}, "not whole numbers"),
        ({"page": [4, -1]}, r"t.parquet:2: page is -1"),
        ({"where": [1]}, "one of them has to be `address`"),
    ],
)
def test_a_bad_parquet_is_named(rows: dict[str, list], said: str) -> None:
    with pytest.raises(TraceError, match=said):
        simulate_trace(parquet_of(rows), MACHINE, "none")


def test_what_is_no_parquet_is_named() -> None:
    Path("t.parquet").write_bytes(b"PAR1 and then nothing")
    for path in ("t.parquet", "none.parquet"):
        with pytest.raises(TraceError, match=rf"{path}: .*\nhint: give a Parquet file"):
            simulate_trace(path, MACHINE, "none")


def test_parquet_without_pyarrow_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(TraceError, match="pip install pyarrow"):
        simulate_trace("t.parquet", MACHINE, "none")


def test_the_catalog_of_workloads_reads_and_cites() -> None:
    assert {"btree", "btree-cited", "graph500", "pagerank", "silo"} <= set(Workload.names())
    for name in Workload.names():
        workload = Workload.load(name)
        assert workload.name == name
        keys = set(workload.data["sources"])
        cited = [region["source"] for region in workload.data["regions"]]
        cited += [stream["source"] for phase in workload.data["phases"] for stream in phase["streams"]]
        assert all(source.split(":")[0] in keys for source in cited)
    assert 120e9 < Workload.load("silo").footprint_bytes < 140e9


def test_checked_searches_are_the_same_searches() -> None:
    """Both files stand alone; what is one program in them is held alike here."""
    bare, checked = (Workload.load(name).data for name in ("graph500", "graph500-checked"))
    sizes = [{region["name"]: region["size_bytes"] for region in data["regions"]} for data in (bare, checked)]
    assert all(sizes[0][name] == sizes[1][name] for name in ("edge list", "xoff", "xadj", "bfs tree"))

    def random(data: WorkloadDoc, region: str) -> list[dict[str, object]]:
        streams = data["phases"][0]["streams"]
        return [stream for stream in streams if stream["region"] == region and stream["pattern"] == "random"]

    assert random(bare, "xadj") == random(checked, "xadj")
    assert random(bare, "xoff") == random(checked, "xoff")
    (search,), (both,) = random(bare, "bfs tree"), random(checked, "bfs tree")
    assert both["visits"] == 2 * cast("float", search["visits"])


def test_a_bad_workload_names_the_place(folder: Path) -> None:
    text = (Path(package.__file__).parent / "catalog/workloads/silo.toml").read_text()
    (folder / "w.toml").write_text(text.replace('region = "leaves 1"', 'region = "leafs"', 1))
    with pytest.raises(
        WorkloadError, match=r"w\.toml: phases\[0\]\.streams\[\d+\]\.region: there is no region `leafs`"
    ):
        Workload.load(folder / "w.toml")


def test_terms_name_every_policy_with_its_knobs() -> None:
    terms = migration_simulator.terms()
    knobs = {name: {knob["name"] for knob in knobs} for name, _, knobs in terms["policies"]}
    assert "numa_balancing_promote_rate_limit_MBps" in knobs["tiering"]
    assert "demote_scale_factor" in knobs["tpp"]
    assert all(figure["source"] for figure in terms["costs"].values())  # type: ignore[attr-defined]


def test_synthetic_workloads_are_checked() -> None:
    with pytest.raises(RequestError, match="use one of: zipf"):
        Workload.synthetic("spiral")
    moved: Simulation = simulate(
        Workload.synthetic("phases", size="4GiB", seconds=40), MACHINE, "tiering", nodes=NODES, fast_memory="1GiB"
    )
    assert moved.data["counters"]["pgdemote_kswapd"] > 0


def sparse_trace() -> Path:
    """A thousand pages, each some 33 times, and three of every four pages between them never."""
    path = Path("sparse.npy")
    np.save(path, (np.arange(33_333, dtype=np.uint64) * 7 % 1000) * np.uint64(4 * 4096) + np.uint64(8))
    return path


def test_a_share_of_a_trace_is_one_of_the_pages_that_it_touches(tierloom: Tierloom) -> None:
    path = sparse_trace()
    assert traces.footprint_bytes(path) == 1000 * 4096
    half = simulate_trace(path, MACHINE, "none", nodes=NODES, fast_memory="50%").data
    assert half["nodes"][0]["pages"] == 500
    assert half == simulate_trace(path, MACHINE, "none", nodes=NODES, fast_memory=500 * 4096).data
    asked = ("simulate", "--trace", str(path), "-m", "liu-a", "--nodes", "ldram,cxl", "--fast-memory", "50%")
    result = tierloom(*asked, "--policy", "none,tiering", "--json")
    assert result.exit_code == 0
    assert json.loads(result.stdout)["runs"][0]["nodes"] == half["nodes"]


@given(pages=st.lists(st.integers(0, 2**52 - 1), min_size=1, max_size=40), repeats=st.integers(1, 3))
def test_a_footprint_counts_each_page_once(pages: list[int], repeats: int) -> None:
    np.save("any.npy", np.array(pages * repeats, dtype=np.uint64) * np.uint64(4096))
    assert traces.footprint_bytes(Path("any.npy")) == len(set(pages)) * 4096


def test_a_share_of_an_empty_trace_is_refused() -> None:
    np.save("empty.npy", np.empty(0, dtype=np.uint64))
    with pytest.raises(RequestError):
        simulate_trace("empty.npy", MACHINE, "none", fast_memory="50%")
