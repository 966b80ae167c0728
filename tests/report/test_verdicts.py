"""The first sentence of a plan: what to do, what it brings, and what the run took that it was made from."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

import tierloom
from tierloom import measured_hosts
from tierloom.errors import MachineError
from tierloom.nouns import Machine, Profile
from tierloom.report.verdicts import came_of, doubtful_traffic, measured, moved, of_another_cache, verdict, waited
from tierloom.units import bytes_text, seconds_text


def answer(fast_memory: str) -> tierloom.Comparison:
    return tierloom.plan("mg-e", "liu-a", threads=32, fast_memory=fast_memory)


def test_what_does_not_fit_is_named_with_where_it_goes_and_what_that_costs() -> None:
    comparison = answer("64GiB")
    text = verdict(comparison)
    assert "of 211.0GiB in ldram" in text
    chosen, usual = (comparison.policy(name)["prediction"]["time_s"] for name in (comparison.data["chosen"], "local"))
    assert f"{100 * (1 - chosen / usual):.0f} % less than first touch with as much" in text
    assert "more than with" in text
    names = [item["name"] for item in comparison.profile.data["objects"]]
    assert all(f"{name} in " in text for name in names)


@pytest.mark.parametrize(
    ("shares", "others"),
    [
        ([0.0], "1 more object"),
        ([0.5], "parts of 1 more object"),
        ([0.0, 0.5, 0.0], "2 more objects, parts of 1 more object"),
    ],
)
def test_objects_that_are_not_named_are_said_to_go_whole_or_in_parts(shares: list[float], others: str) -> None:
    """Three are named, those with most bytes outside fast memory."""
    inside = [0.0] * 3 + shares
    rows = [{"name": f"o{index}", "size_bytes": 1 << (40 - index)} for index in range(len(inside))]
    uses = [{"object": row["name"], "stall_s": 0.0} for row in rows]
    prediction = {"tiers": [{"memory": "ldram"}, {"memory": "cxl"}], "objects": uses}
    chosen = {
        "prediction": {**prediction, "time_s": 1.0},
        "fast_bytes": 0,
        "fractions": [[share, 1 - share] for share in inside],
        "actions": ["first_touch"] * len(rows),
    }
    brief = {"fast_memory": "ldram", "frontier": [], "policies": [], "budget_bytes": 0}
    profile = SimpleNamespace(data={"objects": rows}, footprint_bytes=1 << 41)
    text = verdict(SimpleNamespace(chosen=chosen, brief=brief, profile=profile))
    assert f"o0 in cxl, o1 in cxl, o2 in cxl, {others}: 1.00 s" in text


def small(factor: float, threads: int | None = None) -> Profile:
    """mg-e with smaller objects, and as if it had been recorded with some threads."""
    data = json.loads(Profile.load("mg-e").text)
    for item in data["objects"]:
        item["size_bytes"] = int(item["size_bytes"] * factor)
    if threads:
        data["program"]["threads"] = threads
        data["sampling"] = {"event": "cpu-clock", "hz": 997.0, "samples": 1000, "lost": 0, "skid_purity": 1.0}
    return Profile(json.dumps(data))


def test_what_fits_needs_no_plan() -> None:
    comparison = tierloom.plan(small(0.1), "liu-a", threads=32, nodes=["ldram"])
    took = seconds_text(comparison.chosen["prediction"]["time_s"])
    assert verdict(comparison) == f"{took}: all 21.1GiB of data fit in ldram, nothing to place."


def test_where_first_touch_does_its_time_stands_beside_that_with_more_fast_memory() -> None:
    comparison = tierloom.plan("mg-e", "liu-a", threads=32, fast_memory="64GiB", policies=["local"])
    text = verdict(comparison)
    assert f"first touch does: {seconds_text(comparison.chosen['prediction']['time_s'])}, " in text
    assert "more than with 145" in text


def anchored(wall_s: float, measured_s: float, modelled_s: float) -> SimpleNamespace:
    """A plan from a run that was measured."""
    program = {"wall_s": wall_s, "threads": 1, "sampled_s": wall_s - measured_s}
    anchor = {"machine": "vm", "threads": 1, "measured_s": measured_s, "least_s": measured_s, "most_s": measured_s}
    brief = {"threads": 1, "anchor": {**anchor, "modelled_s": modelled_s}}
    return SimpleNamespace(profile=SimpleNamespace(data={"program": program, "sampling": {}}), brief=brief)


def test_what_the_model_alone_says_stands_beside_what_it_is_held_against() -> None:
    text = measured(anchored(6.96, 6.47, 6.35))
    assert "anchored to the 6.47 s that it would have taken alone on vm" in text
    assert "the model alone, without that run, says 6.35 s (-2%)" in text


@pytest.mark.parametrize(
    ("modelled_s", "sampling", "told"),
    [
        (0.89, {}, None),
        (2.2, {}, "`tierloom profile --count traffic -- CMD` counts it"),
        (2.2, {"counted_traffic": {}}, "the profile's counts of memory traffic are doubtful"),
    ],
)
def test_a_model_that_is_off_by_more_than_the_run_took_is_a_warning(
    modelled_s: float, sampling: dict[str, object], told: str | None
) -> None:
    plan = anchored(0.448, 0.448, modelled_s)
    plan.profile.data["sampling"] = sampling
    text = doubtful_traffic(plan)
    assert (text is None) == (told is None)
    assert (told or "") in (text or "")
    assert ("--count" in (text or "")) == (told is not None and not sampling)


def test_a_profile_on_paper_was_never_measured() -> None:
    assert measured(answer("64GiB")) is None


@pytest.mark.parametrize("threads", [1, 32])
def test_the_measured_time_stands_beside_the_prediction_of_as_many_threads(threads: int) -> None:
    profile = small(1.0, threads)
    text = measured(tierloom.plan(profile, "liu-a", threads=32))
    assert text is not None
    assert seconds_text(profile.data["program"]["wall_s"]) in text
    assert ("predicted with one however many" in text) == (threads == 1)
    assert "not anchored" in text


def behind(llc_bytes: int) -> tierloom.Comparison:
    """A plan from a run behind such a last-level cache; the machine that is planned for has 32 MiB for a core."""
    data = json.loads(small(1.0, 4).text)
    data["program"]["llc_bytes"] = llc_bytes
    return tierloom.plan(Profile(json.dumps(data)), "liu-a", threads=4)


@pytest.mark.parametrize(("mib", "than"), [(480, "more"), (8, "less"), (48, None)])
def test_a_cache_that_lets_other_lines_through_is_told(mib: int, than: str | None) -> None:
    told = of_another_cache(behind(mib << 20))
    assert (told is None) == (than is None)
    assert told is None or f"may wait for memory {than} than" in told


def test_caches_make_no_difference_to_data_that_fits_in_both() -> None:
    data = json.loads(small(1e-5, 4).text)
    data["program"]["llc_bytes"] = 480 << 20
    assert of_another_cache(tierloom.plan(Profile(json.dumps(data)), "liu-a", threads=4)) is None


def test_a_profile_that_knows_what_other_caches_let_through_needs_no_warning() -> None:
    data = json.loads(small(1.0, 4).text)
    data["program"]["llc_bytes"] = 480 << 20
    touched = {"bytes": 1e9, "filled_bytes": 0.0, "mlp": 4.0, "cache_wait_s": 0.1}
    data["phases"][0]["accesses"][0]["touched"] = touched
    assert of_another_cache(tierloom.plan(Profile(json.dumps(data)), "liu-a", threads=4)) is None


def test_a_profile_says_first_what_the_program_waits_for_and_what_is_known_roughly() -> None:
    data = json.loads(small(1.0, 4).text)
    data["program"]["wall_s"] = 12.0
    names = [item["name"] for item in data["objects"]]
    for item, share, off in zip(data["objects"], (0.4, 0.3, 0.01), (0.1, 0.6, 0.9), strict=False):
        item["stall"] = {"share": share, "low": share, "high": share}
        item["accesses"] = {"count": 100.0, "low": 100.0 * (1 - off), "high": 100.0 * (1 + off)}
    text = waited(Profile(json.dumps(data)))
    assert text.startswith("12.0 s with 4 threads and 211.0GiB of data. ")
    assert f"it waits 40 % for {names[0]} and 30 % for {names[1]}." in text
    assert f"{names[1]} (±60 %)" in text.split("Accesses of")[1]
    assert f"{names[0]} (" not in text


def test_runs_without_the_profiler_are_named_as_what_predictions_are_anchored_to() -> None:
    comparison = tierloom.plan(small(1.0, 4), "liu-a", threads=4)
    anchor = {"machine": "here", "threads": 4, "measured_s": 2.0, "least_s": 1.8, "most_s": 2.2, "modelled_s": 2.1}
    of_one = SimpleNamespace(profile=comparison.profile, brief={**comparison.brief, "anchor": anchor})
    text = measured(of_one)
    assert text is not None
    assert "the 2.00 s that it would have taken alone on here" in text
    assert "if they never meet" in text
    lost = SimpleNamespace(profile=of_one.profile, brief={"threads": 4, "anchor": {**anchor, "least_s": 0.0}})
    text = measured(lost)
    assert text is not None
    assert "it would have taken at most 2.20 s, and nobody can say how much less" in text
    of_runs = SimpleNamespace(
        profile=comparison.profile, brief={"threads": 4, "anchor": {**anchor, "unprofiled_runs": 3}}
    )
    text = measured(of_runs)
    assert text is not None
    assert "the 2.00 s that 3 runs without the profiler took on here" in text
    assert "never meet" not in text


def test_objects_that_come_when_others_have_gone_are_told_apart() -> None:
    data = json.loads(small(1.0, 4).text)
    objects = data["objects"]
    half_s = data["program"]["wall_s"] / 2
    for item in objects[:-1]:
        item["first_s"], item["last_s"] = 0.0, half_s
    objects[-1]["first_s"], objects[-1]["last_s"] = half_s + 1.0, 2 * half_s
    sizes = [item["size_bytes"] for item in objects]
    profile = Profile(json.dumps(data))
    assert profile.bytes_at_once == max(sum(sizes[:-1]), sizes[-1])
    assert f"of which {bytes_text(profile.bytes_at_once)} are there at once" in waited(profile)


def test_a_program_that_waits_for_nothing_is_told_so() -> None:
    data = json.loads(small(1.0, 4).text)
    for item in data["objects"]:
        item["stall"] = {"share": 0.001, "low": 0.0, "high": 0.01}
    assert "No object is waited for in 2.0 % of the CPU time" in waited(Profile(json.dumps(data)))


@pytest.mark.parametrize(("still_s", "says"), [(10.05, "brings nothing"), (15.0, "33 % less than the 15.0 s without")])
def test_a_simulation_says_first_whether_moving_pages_pays(still_s: float, says: str) -> None:
    def one(policy: str, time_s: float) -> SimpleNamespace:
        return SimpleNamespace(time_s=time_s, data={"policy": policy, "placement": "first-touch"})

    assert says in moved([one("none", still_s), one("tpp", 10.0), one("autonuma", 11.0)])


@pytest.mark.parametrize(("elsewhere", "says"), [(0, "100 % of the pages"), (25, "75 % of the pages")])
def test_a_run_says_first_what_it_took_and_where_its_pages_were(elsewhere: int, says: str) -> None:
    predicted = {"threads": 4, "time_s": 2.0}
    plan = SimpleNamespace(data={"machine": "liu-a", "predicted": predicted, "default": {"prefer": "cxl"}})
    rule = {"residency": {"looked": 120, "absent": 20, "elsewhere": elsewhere}}
    text = came_of(plan, {"wall_s": 2.2, "rules": [rule], "memories": []})
    assert text.startswith("2.20 s, 10 % more than the 2.00 s predicted for liu-a with 4 threads.")
    assert says in text
    assert "No page" in came_of(plan, {"wall_s": 2.0, "rules": [], "memories": []})
    plan.data["default"] = "first_touch"
    assert "asks nothing of the kernel" in came_of(plan, {"wall_s": 2.0, "rules": [], "memories": []})


@pytest.mark.parametrize(("node", "kind"), [(0, "cxl"), (1, "dram")])
def test_a_rehearsal_is_not_held_against_the_prediction(node: int, kind: str) -> None:
    memories = [{"name": "dram", "kind": "dram"}, {"name": "cxl", "kind": "cxl"}]
    data = {"machine": "liu-a", "predicted": {"threads": 4, "time_s": 2.0}, "default": {"prefer": "cxl"}}
    matches = [{"memory": "dram", "node": 0, "kind": "dram"}, {"memory": "cxl", "node": node, "kind": kind}]
    plan = SimpleNamespace(data={**data, "memories": memories})
    text = came_of(plan, {"wall_s": 6.0, "rules": [], "memories": matches})
    assert text.startswith(
        "6.00 s in a rehearsal, which the 2.00 s predicted for liu-a with 4 threads say nothing about."
    )


def test_a_run_elsewhere_is_not_held_against_the_prediction() -> None:
    data = {"machine": "liu-a", "profile": "mix", "predicted": {"threads": 4, "time_s": 2.0}, "default": "first_touch"}
    run = {"wall_s": 6.0, "rules": [], "memories": []}
    text = came_of(SimpleNamespace(data=data), run, is_elsewhere=True, ran="mix")
    told = "here, and not on liu-a, which the 2.00 s predicted for liu-a with 4 threads say nothing about."
    assert text.startswith(f"6.00 s {told}")


@pytest.mark.parametrize(("ran", "ranges", "is_other"), [("other", 0, True), ("other", 2, False), ("mix", 0, False)])
def test_a_run_of_another_program_is_not_held_against_the_prediction(ran: str, ranges: int, *, is_other: bool) -> None:
    """A profile may have any name: what has the plan's objects is what the plan is for."""
    data = {"machine": "liu-a", "profile": "mix", "predicted": {"threads": 4, "time_s": 2.0}, "default": "first_touch"}
    seen = {"looked": 0, "absent": 0, "elsewhere": 0}
    rules = [
        {"object": "u", "ranges": ranges, "residency": seen},
        {"object": "default", "ranges": 9, "residency": seen},
    ]
    text = came_of(SimpleNamespace(data=data), {"wall_s": 6.0, "rules": rules, "memories": []}, ran=ran)
    other = "6.00 s. The plan was made for mix, and nothing of it was seen in other: the 2.00 s predicted for liu-a"
    assert text.startswith(other) == is_other
    assert ("more than the 2.00 s" in text) != is_other


def test_a_plan_without_rules_does_not_tell_whose_it_is() -> None:
    data = {"machine": "liu-a", "profile": "mix", "predicted": {"threads": 4, "time_s": 2.0}, "default": "first_touch"}
    rules = [{"object": "default", "ranges": 9, "residency": {"looked": 0, "absent": 0, "elsewhere": 0}}]
    text = came_of(SimpleNamespace(data=data), {"wall_s": 6.0, "rules": rules, "memories": []}, ran="other")
    assert "has no rule by which that could be known from other" in text
    assert "nothing of it was seen" not in text


def test_a_machine_with_another_processor_is_another(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(measured_hosts, "CPUS", tmp_path / "cpuinfo")
    assert not measured_hosts.is_elsewhere("liu-a", None), "nothing tells what this one is"
    for model, elsewhere in (("AMD EPYC 9354 32-Core Processor", False), ("AMD EPYC", True), ("Xeon(R) Gold", True)):
        (tmp_path / "cpuinfo").write_text(f"processor\t: 0\nmodel name\t: {model}\n")
        assert measured_hosts.is_elsewhere("liu-a", None) == elsewhere
        assert not measured_hosts.is_elsewhere("planned", None), "an older plan does not say what its machine has"


GIB = 1 << 30


@pytest.mark.parametrize(
    ("memories", "elsewhere"),
    [
        ([("dram", 64)], False),
        ([("dram", 61)], False),
        ([("dram", 512)], True),
        ([("dram", 64), ("cxl", 1024)], True),
        ([("dram", 64), ("ssd", 1024)], False),
    ],
    ids=["as large", "the kernel keeps some", "larger", "one more", "a disk is no node"],
)
def test_a_machine_of_somebodys_own_is_another_where_no_node_has_the_size_of_its_memory(
    memories: list[tuple[str, int]], monkeypatch: pytest.MonkeyPatch, *, elsewhere: bool
) -> None:
    told = [{"name": kind, "kind": kind, "capacity_bytes": size * GIB, "idle_ns": 90.0} for kind, size in memories]
    nodes = [{"capacity_bytes": 62 * GIB}]
    monkeypatch.setattr(measured_hosts._core, "describe_machine", lambda _root: {"host": {"nodes": nodes}})
    assert measured_hosts.is_elsewhere("planned", None, told) is elsewhere


@pytest.mark.parametrize(("idle_ns", "elsewhere"), [(100.0, False), (125.0, False), (250.0, True)])
def test_where_this_machine_was_measured_its_latencies_tell(
    idle_ns: float, monkeypatch: pytest.MonkeyPatch, *, elsewhere: bool
) -> None:
    here = Machine.of("dram 64GiB 100ns 100GB/s")
    monkeypatch.setattr(measured_hosts, "kept", lambda _host: here)
    told = [{"name": "dram", "kind": "dram", "capacity_bytes": 64 * GIB, "idle_ns": idle_ns}]
    assert measured_hosts.is_elsewhere("mine", "host", told) is elsewhere
    assert measured_hosts.is_elsewhere(here.name, "host", told) is elsewhere, (
        "a what-if has the name of what it changes"
    )
    assert not measured_hosts.is_elsewhere(here.name, "host"), "an older plan for this machine"


def test_a_machine_that_nobody_describes_may_be_this_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(_root: str) -> None:
        message = "no memory node"
        raise MachineError(message)

    monkeypatch.setattr(measured_hosts._core, "describe_machine", refused)
    told = [{"name": "dram", "kind": "dram", "capacity_bytes": GIB, "idle_ns": 90.0}]
    assert not measured_hosts.is_elsewhere("planned", None, told)


def test_the_lab_is_not_held_against_the_prediction() -> None:
    predicted = {"threads": 4, "time_s": 2.0}
    plan = SimpleNamespace(data={"machine": "liu-a", "predicted": predicted, "default": {"prefer": "cxl"}})
    text = came_of(plan, {"wall_s": 6.0, "rules": [], "memories": []}, is_in_lab=True)
    assert text.startswith("6.00 s in the lab, which the 2.00 s predicted for liu-a with 4 threads say nothing about.")
