"""What changed between two profiles or two results, and whether it is more than chance."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from support import Tierloom

from tierloom import Machine, Profile, differences
from tierloom import plan as tierloom_plan
from tierloom.errors import RequestError


@pytest.fixture
def recorded() -> dict[str, Any]:
    """A recorded profile: two arrays with intervals, and what belongs to none."""
    data = json.loads(Profile.load("mg-e").text)
    data["objects"] = data["objects"][:2]
    names = {item["name"] for item in data["objects"]}
    for phase in data["phases"]:
        phase["accesses"] = [access for access in phase["accesses"] if access["object"] in names]
    for item, share in zip(data["objects"], (0.6, 0.3), strict=True):
        item["stall"] = {"share": share, "low": share - 0.02, "high": share + 0.02}
    data["unattributed"] = [{"name": "[compute]", "stall": {"share": 0.1, "low": 0.09, "high": 0.11}}]
    return data


def write(folder: Path, name: str, data: object) -> str:
    (folder / name).write_text(json.dumps(data))
    return name


def by_place(found: differences.Difference) -> dict[tuple[str, str], differences.Change]:
    return {(change.where, change.what): change for change in found.changes}


def test_a_profile_against_itself_shows_nothing(tierloom: Tierloom) -> None:
    answer = tierloom("diff", "mg-e", "mg-e", "--check")
    assert answer.exit_code == 0
    assert answer.stdout == "nothing changed\n"


def test_shares_change_only_beyond_both_intervals(recorded: dict[str, Any], folder: Path) -> None:
    later = copy.deepcopy(recorded)
    first, second = later["objects"]
    first["stall"] = {"share": 0.62, "low": 0.60, "high": 0.64}
    second["stall"] = {"share": 0.20, "low": 0.18, "high": 0.22}
    found = differences.diff(write(folder, "a.json", recorded), write(folder, "b.json", later))
    changes = by_place(found)
    assert changes[first["name"], "stall.share"].verdict == "within uncertainty"
    assert changes[second["name"], "stall.share"].verdict == "changed"
    assert found.changed == 1
    assert found.changes[0].where == second["name"], "what changed comes first"


@pytest.mark.parametrize(
    ("factor", "interval", "verdict"),
    [
        (1.6, None, "within uncertainty"),
        (2.5, None, "changed"),
        (1.1, 0.02, "changed"),
        (1.1, 0.2, "within uncertainty"),
    ],
)
def test_counts_change_beyond_their_own_intervals_and_estimates_beyond_how_far_such_are_off(
    recorded: dict[str, Any], folder: Path, factor: float, interval: float | None, verdict: str
) -> None:
    later = copy.deepcopy(recorded)
    name = recorded["objects"][0]["name"]
    for data, times in ((recorded, 1.0), (later, factor)):
        accesses = [access for phase in data["phases"] for access in phase["accesses"] if access["object"] == name]
        for access in accesses:
            for key in ("reads", "writes", "read_bytes", "write_bytes", "dram_read_bytes", "dram_write_bytes"):
                access[key] *= times
        count = sum(access["reads"] + access["writes"] for access in accesses)
        if interval is not None:
            known = {"count": count, "low": count * (1 - interval), "high": count * (1 + interval)}
            data["objects"][0]["accesses"] = known
    found = differences.diff(write(folder, "a.json", recorded), write(folder, "b.json", later))
    assert by_place(found)[name, "accesses"].verdict == verdict


def test_a_run_that_took_another_time_is_remarked(recorded: dict[str, Any], folder: Path) -> None:
    recorded["program"] = {"command": ["./app"], "wall_s": 2.0, "cpu_s": 2.0, "threads": 1, "cpu": "x", "llc_bytes": 1}
    later = copy.deepcopy(recorded)
    later["program"]["cpu_s"] = 2.6
    (remark,) = differences.diff(write(folder, "a.json", recorded), write(folder, "b.json", later)).remarks
    assert remark.startswith("B took +30% CPU time for the command of A")


@pytest.mark.parametrize("width", [120, 80, 60])
def test_a_and_b_are_shown_at_any_width(
    recorded: dict[str, Any], folder: Path, tierloom: Tierloom, monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    later = copy.deepcopy(recorded)
    recorded["objects"][0]["stall"] = {"share": 0.0001573, "low": 0.0000278, "high": 0.000891}
    later["objects"][0]["stall"] = {"share": 0.0003677, "low": 0.000101, "high": 0.00134}
    later["objects"][1]["size_bytes"] = 3 << 40
    monkeypatch.setenv("COLUMNS", str(width))
    shown = tierloom("diff", write(folder, "a.json", recorded), write(folder, "b.json", later)).stdout
    assert all(figure in shown for figure in ("0.0001573", "0.0003677", "3TiB")), shown
    gone = shown.partition("Left out at")[2].partition(".")[0].replace(",", "").split()
    assert not {"A", "B", "verdict"} & set(gone)


def test_many_shares_raise_no_more_false_alarms_than_one(recorded: dict[str, Any], folder: Path) -> None:
    """2.5 standard errors are a change alone, and none among thirty."""
    one = recorded["objects"][0]
    step = 2.5 * 2**0.5 * 0.02 / differences.INTERVAL_Z
    later = copy.deepcopy(recorded)
    later["objects"][0]["stall"] = {"share": 0.6 - step, "low": 0.58 - step, "high": 0.62 - step}
    alone = [copy.deepcopy(each) for each in (recorded, later)]
    for data in alone:
        data["unattributed"] = []
        del data["objects"][1]["stall"]
    crowd = [copy.deepcopy(each) for each in (recorded, later)]
    for data in crowd:
        data["unattributed"] = [
            {"name": f"[{index}]", "stall": {"share": 0.01, "low": 0.0, "high": 0.02}} for index in range(30)
        ]
    for pair, verdict in ((alone, "changed"), (crowd, "within uncertainty")):
        found = differences.diff(*(write(folder, f"{i}.json", data) for i, data in enumerate(pair)))
        assert by_place(found)[one["name"], "stall.share"].verdict == verdict


def test_objects_are_found_again_under_another_name_where_they_are_allocated(
    recorded: dict[str, Any], folder: Path
) -> None:
    frame = {"module": "app", "build_id": "aa", "offset": 64, "function": "setup"}
    recorded["objects"][0]["site"] = {"stack": [frame]}
    later = copy.deepcopy(recorded)
    old = later["objects"][0]["name"]
    later["objects"][0].update(
        name="grid", size_bytes=1 << 30, site={"stack": [{**frame, "build_id": "bb", "offset": 80}]}
    )
    for phase in later["phases"]:
        for access in phase["accesses"]:
            access["object"] = "grid" if access["object"] == old else access["object"]
    found = differences.diff(write(folder, "a.json", recorded), write(folder, "b.json", later))
    assert [(change.where, change.what, change.b) for change in found.changes] == [
        (f"{old} (grid in B)", "size_bytes", float(1 << 30))
    ]


def allocated_in(program: str, function: str, offset: int, data: dict[str, Any], name: str) -> dict[str, Any]:
    """The profile with its first object under another name, allocated in a function of a program."""
    made = copy.deepcopy(data)
    made["program"] = {
        "command": [f"./{program}"],
        "wall_s": 1.0,
        "cpu_s": 1.0,
        "threads": 1,
        "cpu": "x",
        "llc_bytes": 1,
    }
    made["sampling"] = {"event": "cpu-clock", "hz": 2000.0, "samples": 2000, "lost": 0, "skid_purity": 1.0}
    old = made["objects"][0]["name"]
    frame = {"module": program, "build_id": f"{program}1", "offset": offset, "function": function}
    made["objects"][0].update(name=name, site={"stack": [frame]})
    for access in (access for phase in made["phases"] for access in phase["accesses"]):
        access["object"] = name if access["object"] == old else access["object"]
    return made


@pytest.mark.parametrize(
    ("program", "offset"), [("spmv", 64), ("lu", 80)], ids=["of another program", "of another place in one build"]
)
def test_objects_of_another_name_and_place_are_in_one_profile_only(
    recorded: dict[str, Any], folder: Path, program: str, offset: int
) -> None:
    a = allocated_in("lu", "main", 64, recorded, "mat")
    b = allocated_in(program, "main", offset, recorded, "rowptr")
    found = differences.diff(write(folder, "a.json", a), write(folder, "b.json", b))
    assert {(change.where, change.verdict) for change in found.changes} == {
        ("mat", "only in A"),
        ("rowptr", "only in B"),
    }
    of_two = ["A is of lu and B of spmv: what has one name in both need not be the same data"]
    assert list(found.remarks) == (of_two if program == "spmv" else [])


def test_objects_of_one_function_are_not_told_apart_after_a_rebuild(recorded: dict[str, Any], folder: Path) -> None:
    a, b = ({**recorded, "objects": copy.deepcopy(recorded["objects"]), "phases": []} for _ in range(2))
    for data, build, names in ((a, "aa", ("mat", "rhs")), (b, "bb", ("val", "col"))):
        for index, name in enumerate(names):
            frame = {"module": "app", "build_id": build, "offset": 64 + index, "function": "main"}
            data["objects"][index].update(name=name, site={"stack": [frame]})
    found = differences.diff(write(folder, "a.json", a), write(folder, "b.json", b))
    assert {(change.where, change.verdict) for change in found.changes} == {
        ("mat", "only in A"),
        ("rhs", "only in A"),
        ("val", "only in B"),
        ("col", "only in B"),
    }


def test_objects_of_one_side_are_named(tierloom: Tierloom) -> None:
    answer = tierloom("diff", "bt-e", "sp-e", "--check", "--json")
    assert answer.exit_code == 1
    data = json.loads(answer.stdout)
    only = {row["where"] for row in data["changes"] if row["verdict"] == "only in B"}
    assert only == {"lhs", "speed"}
    assert (data["kind"], data["compared"]) == ("difference", "profiles")
    assert data["changed"] == len(data["changes"])


def test_results_are_compared_by_name_and_range(folder: Path) -> None:
    def policy(name: str, time_s: float, spread: float) -> dict[str, Any]:
        return {"policy": name, "time_s": time_s, "low_s": time_s - spread, "high_s": time_s + spread, "note": "x"}

    a = {"policies": [policy("local", 10.0, 1.0), policy("soar", 8.0, 1.0)], "threads": 32}
    b = {"policies": [policy("soar", 8.5, 1.0), policy("local", 20.0, 1.0)], "threads": 32}
    found = differences.diff(write(folder, "a.json", a), write(folder, "b.json", b))
    assert {(change.where, change.what): change.verdict for change in found.changes} == {
        ("policies.local", "time_s"): "changed",
        ("policies.soar", "time_s"): "within uncertainty",
    }


def test_results_of_real_verbs_are_compared(tierloom: Tierloom, folder: Path) -> None:
    for name, threads in (("a.json", "4"), ("b.json", "32")):
        answer = tierloom("plan", "ft-d", "--machine", "liu-a", "--threads", threads, "--json", "-o", f"{name}.toml")
        (folder / name).write_text(answer.stdout)
    changes = json.loads(tierloom("diff", "a.json", "b.json", "--json").stdout)["changes"]
    assert changes[0]["where"].count(".") < changes[-1]["where"].count("."), "what concerns all comes first"
    assert ("policies.local.prediction", "time_s") in {(row["where"], row["what"]) for row in changes}
    assert tierloom("diff", "a.json", "a.json", "--check").exit_code == 0


def test_what_two_plans_choose_comes_first(tierloom: Tierloom, folder: Path) -> None:
    for name, most in (("a.json", "25%"), ("b.json", "75%")):
        answer = tierloom("plan", "mg-e", "--machine", "liu-a", "--fast-memory", most, "--json", "-o", f"{name}.toml")
        (folder / name).write_text(answer.stdout)
    a, b = (json.loads((folder / name).read_text()) for name in ("a.json", "b.json"))
    shown = " ".join(tierloom("diff", "a.json", "b.json").stdout.split())
    policies = (a["chosen"], b["chosen"])
    chosen = f"Both choose {policies[0]}: " if len({*policies}) == 1 else "A chooses {} and B {}: ".format(*policies)
    assert shown.startswith(chosen)
    found = differences.diff(folder / "a.json", folder / "b.json")
    assert "less" in found.answer[0]
    assert [(each.where, each.what) for each in found.changes[:2]] == [("chosen", "time_s"), ("chosen", "fast_bytes")]
    moved = [each.where for each in found.changes if each.where.startswith("chosen.")]
    assert moved
    assert "B places otherwise: " in found.answer[1]
    places = [each.where.startswith("frontier.") for each in found.changes]
    assert places == sorted(places), "points without a name come last"
    same = differences.diff(folder / "a.json", folder / "a.json")
    assert not same.changes
    assert same.answer[1] == "No object has another place."


@pytest.mark.parametrize(
    ("a", "b", "reason"),
    [
        ("mg-e", "result.json", "mg-e is a profile and result.json a result"),
        ("nowhere.profile", "mg-e", "nowhere.profile"),
        ("broken.json", "mg-e", "broken.json: no JSON document"),
        ("a.toml", "mg-e", "a.toml: this is a plan"),
        ("mg-e", "a.toml", "`tierloom plan mg-e --machine liu-a --json > a.json`"),
        ("b.toml", "mg-e", "b.toml: this is a machine, and no profile nor a result"),
        ("mix.c", "mg-e", "mix.c: this is no JSON, and no profile nor a result"),
    ],
)
def test_what_cannot_be_compared_is_refused(tierloom: Tierloom, folder: Path, a: str, b: str, reason: str) -> None:
    (folder / "broken.json").write_text("{")
    (folder / "mix.c").write_text("int main(void) { return 0; }")
    (folder / "a.toml").write_text(tierloom_plan("mg-e", "liu-a", policies=["local"]).plan().text)
    (folder / "b.toml").write_text(Machine.load("liu-a").text)
    write(folder, "result.json", {"time_s": 1.0})
    answer = tierloom("diff", a, b)
    assert answer.exit_code == 2
    assert reason in answer.stderr
    assert "hint:" in answer.stderr
    assert "Expecting" not in answer.stderr or a == "broken.json"


def test_unknown_kinds_of_lists_are_compared_in_order(folder: Path) -> None:
    found = differences.diff(write(folder, "a.json", [{"x": 1.0}]), write(folder, "b.json", [{"x": 2.0}, {"x": 3.0}]))
    assert {(change.where, change.what, change.verdict) for change in found.changes} == {
        ("1", "", "only in B"),
        ("0", "x", "changed"),
    }


def test_a_file_that_is_missing_is_a_wrong_request(folder: Path) -> None:
    with pytest.raises(RequestError, match="hint: give a profile's folder"):
        differences.diff(str(folder / "none.json"), "mg-e")
