"""`tierloom plan`: what is asked is what is answered, and what is written can be read again."""

from __future__ import annotations

import itertools
import json
import shlex
from pathlib import Path

import pytest
from support import Tierloom
from syrupy.assertion import SnapshotAssertion

import tierloom as package
from tierloom import catalog
from tierloom.node_match import is_rehearsal, match_nodes
from tierloom.report.pages.html_file import CHARTS

pytestmark = pytest.mark.smoke

ASK = ("plan", "mg-e", "--machine", "liu-a", "--threads", "32", "--fast-memory", "64GiB")


@pytest.fixture(autouse=True)
def in_an_empty_folder(folder: Path) -> Path:
    return folder


def test_the_tables(tierloom: Tierloom, snapshot: SnapshotAssertion) -> None:
    result = tierloom(*ASK)
    assert result.exit_code == 0
    assert result.stdout == snapshot
    assert "wrote mg-e.plan.toml" in result.stderr


def test_json_is_one_document_with_every_policy(tierloom: Tierloom) -> None:
    result = tierloom(*ASK, "--json")
    answer = json.loads(result.stdout)
    usable = [p for p in answer["policies"] if "prediction" in p]
    chosen = next(p for p in usable if p["policy"] == answer["chosen"])
    assert chosen["prediction"]["time_s"] == min(p["prediction"]["time_s"] for p in usable)
    assert all(p["fast_bytes"] <= 64 * 2**30 for p in usable)
    times = [point["time_s"] for point in answer["frontier"]]
    assert times == sorted(times, reverse=True)


def test_the_plan_reads_back_and_names_every_object(tierloom: Tierloom, folder: Path) -> None:
    tierloom(*ASK, "-o", "mine.toml")
    plan = package.Plan.load(folder / "mine.toml")
    objects = {item["name"] for item in package.Profile.load("mg-e").data["objects"]}
    assert {rule["object"] for rule in plan.data["rules"]} == objects
    assert plan.data["machine"] == "liu-a"
    assert plan.data["predicted"]["threads"] == 32


def test_a_share_of_the_data_is_an_amount_of_fast_memory(tierloom: Tierloom) -> None:
    whole = package.Profile.load("mg-e").footprint_bytes
    answer = json.loads(tierloom(*ASK[:-1], "25%", "--json").stdout)
    assert answer["budget_bytes"] == pytest.approx(whole / 4, abs=1)


def test_a_bound_on_the_slowdown_takes_less_fast_memory_the_looser_it_is(tierloom: Tierloom) -> None:
    used = []
    for bound in ("1%", "20%", "100%"):
        answer = json.loads(tierloom(*ASK[:-2], "--max-slowdown", bound, "--json").stdout)
        used.append(next(p["fast_bytes"] for p in answer["policies"] if p["policy"] == answer["chosen"]))
    assert used[0] > used[1] > used[2]


def test_only_the_named_policies_and_nodes_are_used(tierloom: Tierloom) -> None:
    words = (*ASK[:-2], "--nodes", "ldram,cxl", "--policies", "preferred:ldram, interleave:ldram+cxl", "--json")
    answer = json.loads(tierloom(*words).stdout)
    assert {p["policy"] for p in answer["policies"]} == {"preferred:ldram", "interleave:ldram+cxl"}
    for policy in answer["policies"]:
        assert all(row[0] == 0.0 for row in policy["fractions"]), "rdram was left out"


def test_the_report_names_every_object_and_is_the_same_twice(tierloom: Tierloom, folder: Path) -> None:
    if catalog.native_file(CHARTS) is None:
        pytest.skip("the charts' scripts are not there: make install")
    for name in ("one.html", "two.html"):
        assert tierloom(*ASK, "--html", name).exit_code == 0
    page = (folder / "one.html").read_text(encoding="utf-8")
    assert page == (folder / "two.html").read_text(encoding="utf-8")
    assert str(folder) not in page
    for item in package.Profile.load("mg-e").data["objects"]:
        assert f"<td>{item['name']}</td>" in page


@pytest.mark.parametrize("name", package.Profile.names())
def test_every_profile_of_the_catalog_can_be_planned_for_every_machine(tierloom: Tierloom, name: str) -> None:
    for machine in package.Machine.names():
        result = tierloom("plan", name, "--machine", machine, "--threads", "8", "--json")
        assert result.exit_code in (0, 1), result.stderr
        if result.exit_code == 1:
            assert "too much" in result.stderr
            assert "hint:" in result.stderr


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (("plan", "mg-f", "--machine", "liu-a"), 2, "did you mean mg-e"),
        (("plan", "liu-a", "--machine", "liu-a"), 2, "`liu-a` is a machine of the catalog; give it as `--machine`"),
        (("plan", "no.profile", "--machine", "liu-a"), 2, "No such file"),
        (("plan", "mg-e"), 2, "--machine"),
        (("plan", "mg-e"), 2, "`tierloom machine list` has names"),
        (("plan", "mg-e"), 2, "`tierloom machine measure` writes"),
        (("plan", "mg-e", "--machine", "liu-z"), 2, "did you mean"),
        ((*ASK, "--socket", "socket7"), 2, "use one of: socket1, socket0"),
        ((*ASK, "--nodes", "hbm"), 2, "rdram, ldram, cxl"),
        ((*ASK, "--nodes", ""), 2, "no memory may be used"),
        ((*ASK, "--policies", "magic"), 2, "there is no policy `magic`"),
        ((*ASK[:-1], "lots"), 2, "64GiB"),
        ((*ASK[:-1], "-3GiB"), 2, "64GiB"),
        ((*ASK[:-2], "--max-slowdown", "fast"), 2, "write for example 5%"),
        ((*ASK[:-2], "--max-slowdown", "5"), 2, "write 5% or 500%"),
        ((*ASK[:-2], "--threads", "0"), 2, "x>=1"),
        ((*ASK[:-2], "--threads", "5000"), 2, "ask for 32 threads or fewer"),
        ((*ASK, "--nodes", "cxl"), 1, "too much"),
        ((*ASK, "--max-slowdown", "0.1%", "--fast-memory", "1GiB"), 1, "no placement keeps the slow-down"),
        ((*ASK, "--plot", "frontier.doc"), 2, "let the name end with .png"),
    ],
)
def test_what_cannot_be_is_said_with_what_can(tierloom: Tierloom, words: tuple[str, ...], code: int, told: str) -> None:
    result = tierloom(*words)
    assert result.exit_code == code, result.stderr
    assert told in result.stderr
    assert result.stdout == ""


def sampled(folder: Path, cpu: str = "AMD EPYC 9354") -> str:
    """mg-e as if it had been recorded on such a processor."""
    data = json.loads(package.Profile.load("mg-e").text)
    data["program"] |= {"command": ["./mg", "e f"], "cpu": cpu}
    data["sampling"] = {"event": "cpu-clock", "hz": 997.0, "samples": 1000, "lost": 0, "skid_purity": 1.0}
    package.Profile(json.dumps(data)).save(folder / "mg.profile", b"")
    return "mg.profile"


def test_the_next_command_names_the_nodes_that_this_machine_cannot_tell(tierloom: Tierloom, folder: Path) -> None:
    result = tierloom("plan", sampled(folder), *ASK[2:], "--policies", "interleave:ldram+cxl", "-o", "mg.plan.toml")
    _, words = result.stderr.split("next: ")
    command = shlex.split(words.splitlines()[0])
    assert command[-3:] == ["--", "./mg", "e f"]
    given = [word.split("=") for option, word in itertools.pairwise(command) if option == "--node"]
    plan = package.Plan.load(folder / "mg.plan.toml")
    matches = match_nodes(plan, {name: int(node) for name, node in given})
    assert {match["memory"] for match in matches} == {"ldram", "cxl"}
    assert ("a rehearsal: " in words) == is_rehearsal(plan, matches)


@pytest.mark.parametrize(("unseen", "following"), [(1, "run --plan mg.plan.toml"), (3, "profile -- ./mg 'e f'")])
def test_a_rule_that_finds_nothing_in_the_running_program_is_told(
    tierloom: Tierloom, folder: Path, unseen: int, following: str
) -> None:
    """A file of `perf` has mappings, and no allocations."""
    path = folder / sampled(folder) / "profile.json"
    text = path.read_text()
    names = [item["name"] for item in json.loads(text)["objects"]][:unseen]
    for number, name in enumerate(names):
        text = text.replace(json.dumps(name), json.dumps(f"[anon:{number} 9GiB]"))
    path.write_text(text.replace('"kind": "static"', '"kind": "mmap"').replace('"kind":"static"', '"kind":"mmap"'))
    result = tierloom("plan", "mg.profile", *ASK[2:], "-o", "mg.plan.toml")
    assert result.exit_code == 0, result.stderr
    assert "`run` cannot find [anon:0 9GiB]" in " ".join(result.stderr.split())
    assert f"next: tierloom {following}" in result.stderr


@pytest.mark.parametrize(
    ("cpu", "told"),
    [
        ("Intel(R) Xeon(R) Processor", "was not recorded on liu-a: it ran on Intel(R) Xeon(R) Processor"),
        ("AMD EPYC 9354", None),
        ("AMD EPYC 9354 32-Core Processor", None),
        ("AMD EPYC Processor", None),
    ],
)
def test_a_machine_with_another_processor_is_not_that_of_the_run(
    tierloom: Tierloom, folder: Path, cpu: str, told: str | None
) -> None:
    result = tierloom("plan", sampled(folder, cpu), *ASK[2:], "--ran-on", "liu-a")
    assert result.exit_code == (2 if told else 0), result.stderr
    assert (told or "wrote mg-e.plan.toml") in result.stderr


def test_a_plan_is_not_read_as_a_profile(tierloom: Tierloom) -> None:
    assert tierloom(*ASK, "-o", "mg.plan.toml").exit_code == 0
    result = tierloom("plan", "mg.plan.toml", "--machine", "liu-a")
    assert result.exit_code == 2
    assert "mg.plan.toml: a plan is no profile" in result.stderr


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("mix.c", "int main(void) { return 0; }", ("plan", "mix.c", "-m", "liu-a")),
        ("mix.c", "int main(void) { return 0; }", ("plan", "./mix.c", "--emit", "numactl", "-m", "liu-a")),
        ("mix.c", "int main(void) { return 0; }", ("simulate", "./mix.c", "-m", "liu-a")),
        ("a.json", "{}", ("plan", "a.json", "-m", "liu-a")),
        ("a.profile/profile.json", "{}", ("plan", "a.profile", "-m", "liu-a")),
        ("a.json", '{"time_s": 1}', ("plan", "a.json", "-m", "liu-a")),
    ],
)
def test_what_is_no_profile_is_told_so(
    tierloom: Tierloom, folder: Path, name: str, content: str, words: tuple[str, ...]
) -> None:
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_text(content)
    result = tierloom(*words)
    assert result.exit_code == 2
    assert f"{name}: this is no profile" in result.stderr
    assert "hint: `tierloom profile -- CMD` makes one" in result.stderr


@pytest.mark.parametrize("name", ["mg.profile", "mg.profile/profile.json"])
def test_a_profile_is_not_read_as_a_plan(tierloom: Tierloom, folder: Path, name: str) -> None:
    package.Profile.load("mg-e").save(folder / "mg.profile")
    result = tierloom("run", "--plan", name, "--", "true")
    assert result.exit_code == 2
    assert f"{name}: a profile is no plan" in result.stderr
    assert f"hint: make a plan of it with `tierloom plan {name}`" in result.stderr


def test_a_profile_without_objects_is_told_to_have_nothing_to_place(tierloom: Tierloom, folder: Path) -> None:
    empty = json.loads(package.Profile.load("mg-e").text)
    empty["objects"], empty["phases"][0]["accesses"] = [], []
    package.Profile(json.dumps(empty)).save(folder / "empty.profile", b"")
    result = tierloom("plan", "empty.profile", "--machine", "liu-a")
    assert result.exit_code == 0
    assert "no data objects, so there is nothing to place" in result.stderr
    assert "at most 0B" not in result.stdout


def test_what_no_rule_can_select_is_told_and_has_none(tierloom: Tierloom, folder: Path) -> None:
    made = package.Profile.load("mg-e")
    constants = made.data["objects"][0]
    constants["kind"] = "constant"
    (folder / "made.profile").mkdir()
    (folder / "made.profile" / "profile.json").write_text(json.dumps(made.data), encoding="utf-8")
    ask = ("plan", "made.profile", "--machine", "liu-a", "--fast-memory", "50%")
    shown = tierloom(*ask, "-o", "made.toml").stdout
    assert "first touch (no rule)" in shown
    assert "no rule: small objects together" in shown
    assert json.loads(tierloom(*ask, "--json").stdout)["unselected"] == [constants["name"]]
    rules = package.Plan.load(folder / "made.toml").data["rules"]
    assert rules
    assert constants["name"] not in {rule["object"] for rule in rules}


def test_a_broken_profile_is_named_by_file_and_key(tierloom: Tierloom, folder: Path) -> None:
    text = package.Profile.load("mg-e").text
    broken = json.loads(text)
    broken["phases"][0]["accesses"][0]["mlp"] = 0
    (folder / "bad.profile").mkdir()
    (folder / "bad.profile" / "profile.json").write_text(json.dumps(broken))
    result = tierloom("plan", "bad.profile", "--machine", "liu-a")
    assert result.exit_code == 2
    assert "bad.profile/profile.json: phases[0].accesses[0].mlp" in result.stderr.replace("\n", "")


def test_a_folder_that_cannot_be_written_is_a_wrong_request(tierloom: Tierloom) -> None:
    result = tierloom(*ASK, "-o", "no/such/folder/plan.toml")
    assert result.exit_code == 2
    assert "no/such/folder/plan.toml" in result.stderr
    assert "hint:" in result.stderr


@pytest.mark.parametrize(
    ("form", "told"), [("numactl", "#!/bin/sh"), ("libnuma", "#include <numa.h>"), ("hwloc", "#include <hwloc.h>")]
)
def test_a_plan_is_printed_for_other_tools(tierloom: Tierloom, form: str, told: str) -> None:
    planned = tierloom(*ASK, "--emit", form)
    assert planned.exit_code == 0
    assert told in planned.stdout
    assert "wrote mg-e.plan.toml" in planned.stderr
    again = tierloom("plan", "mg-e.plan.toml", "--emit", form)
    assert again.stdout == planned.stdout, "a plan that was written says the same"
    assert again.exit_code == 0


def edited(path: Path) -> str:
    """A plan with another place of its first object: TOML that the tool itself could have written."""
    text = path.read_text().replace("ldram", "rdram", 1)
    path.write_text(text)
    return text


@pytest.mark.parametrize("words", [(), ("-o", "mg-e.plan.toml")], ids=["default", "named"])
def test_a_plan_that_was_edited_is_kept(tierloom: Tierloom, folder: Path, words: tuple[str, ...]) -> None:
    path = folder / "mg-e.plan.toml"
    assert "kept" not in tierloom(*ASK, *words).stderr
    written = path.read_text()
    assert "kept" not in tierloom(*ASK, *words).stderr, "nobody touched it"
    assert "kept" not in tierloom(*ASK[:-1], "32GiB", *words).stderr, "another plan, and nobody touched it"
    for number in (1, 2):
        mine = edited(path)
        again = tierloom(*ASK, *words)
        assert again.exit_code == 0
        assert f"mg-e.plan.toml was edited by hand, so it was kept as mg-e.plan.toml.{number}" in again.stderr
        assert (folder / f"mg-e.plan.toml.{number}").read_text() == mine
        assert path.read_text() == written


def test_a_comment_is_an_edit(tierloom: Tierloom, folder: Path) -> None:
    tierloom(*ASK)
    path = folder / "mg-e.plan.toml"
    path.write_text(f"{path.read_text()}# u has to stay\n")
    assert "kept as mg-e.plan.toml.1" in tierloom(*ASK).stderr
    assert "# u has to stay" in (folder / "mg-e.plan.toml.1").read_text()
    assert package.Plan.load(path).data["machine"] == "liu-a", "the mark is a comment"


def test_a_program_and_a_document_do_not_fit_on_one_stdout(tierloom: Tierloom) -> None:
    result = tierloom(*ASK, "--emit", "libnuma", "--json")
    assert result.exit_code == 2
    assert "ask for one of them" in result.stderr
