"""Policies of users' own: asked as ours are, held against ours, and refused with the line that is at fault."""

from __future__ import annotations

import math
import pickle
import re
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from pages import blocks_of, is_file
from support import ROOT, Tierloom

import tierloom
from tierloom import Workload, user_policies
from tierloom.commands.simulate import policies_of
from tierloom.errors import PlacementError, RequestError
from tierloom.user_policies import MigrationView, PlacementQuestion

ON = {"threads": 12, "nodes": ["ldram", "cxl"], "fast_memory": "50%"}


def plan(*policies: object, **other: object) -> tierloom.Comparison:
    return tierloom.plan("ft-d", "bytedance-spr-a1000", policies=policies, **{**ON, **other})


def file(folder: Path, text: str, name: str = "mine.py") -> Path:
    (folder / name).write_text(text)
    return folder / name


def interleaved(question: PlacementQuestion) -> dict[str, str]:
    return dict.fromkeys((item["name"] for item in question.objects), f"interleave:{'+'.join(question.nodes)}")


class HeMem:
    """HeMem once more, from its paper and code, to hold the simulator's own against."""

    period_s = 0.01
    sample_period = 5003
    shootdowns = 1 / 512
    waits_for_copy = True

    def __init__(self) -> None:
        self.counts = np.zeros((0, 2))

    def look(self, view: MigrationView) -> Iterator[tuple[int, int, int, float]]:
        if not len(self.counts):
            self.counts = np.zeros((len(view.reads), 2))
        self.counts += np.stack([view.reads, view.writes], 1) * 512 * view.since_s / self.sample_period
        if (fullest := self.counts.max(initial=0.0)) > 18:
            self.counts *= 0.5 ** math.ceil(math.log2(fullest / 18))
        heat = (self.counts / [8, 4]).max(1)
        yield from self.exchanged(view, heat, 10e9 / 4096 * view.since_s)

    def exchanged(self, view: MigrationView, heat: np.ndarray, most: float) -> Iterator[tuple[int, int, int, float]]:
        order = np.argsort(-heat, kind="stable")
        free, held = max(view.free[0] - view.low[0], 0.0), view.pages.copy()
        victims = [group for group in order[::-1] if heat[group] < 1 and held[group, 0] > 0]
        for group in (group for group in order if heat[group] >= 1):
            wanted = min(held[group, 1], most)
            while wanted > 0 and most > 0:
                if (step := min(wanted, free)) > 0:
                    yield group, "cxl", "ldram", step
                    wanted, most, free = wanted - step, most - step, free - step
                    continue
                if not victims or heat[victims[0]] >= heat[group]:
                    return
                step = min(held[victims[0], 0], wanted, most)
                yield victims[0], "ldram", "cxl", step
                held[victims[0], 0] -= step
                most, free = most - step, free + step
                if held[victims[0], 0] <= 0:
                    victims.pop(0)


def test_everything_interleaved_takes_what_interleaving_takes() -> None:
    answer = plan("interleave:ldram+cxl", interleaved)
    ours, theirs = (answer.policy(name)["prediction"] for name in ("interleave:ldram+cxl", "interleaved"))
    assert theirs["time_s"] == ours["time_s"]
    assert answer.plan("interleaved").rows() == answer.plan("interleave:ldram+cxl").rows()


def test_ours_starts_from_a_users_policy_and_is_never_slower() -> None:
    def one_near(question: PlacementQuestion) -> dict[str, str]:
        assert list(question.nodes) == ["ldram", "cxl"]
        assert question.nodes["ldram"] == question.profile.footprint_bytes // 2
        return {question.objects[0]["name"]: f"bind:{question.fast}"}

    answer = plan("usual", one_near)
    policies = [policy["policy"] for policy in answer.brief["policies"]]
    assert policies[-2:] == ["one_near", "tierloom"]
    times = [policy["prediction"]["time_s"] for policy in answer.data["policies"] if "prediction" in policy]
    assert times[-1] <= min(times) * (1 + 1e-9)


def test_a_policy_is_asked_for_every_amount_of_fast_memory_that_is_tried() -> None:
    rooms = []

    def hot(question: PlacementQuestion) -> dict[str, str]:
        rooms.append(question.nodes[question.fast])
        return {item["name"]: "preferred:ldram" for item in question.objects}

    answer = plan(hot, "local", max_slowdown="5%", fast_memory=None)
    assert len(set(rooms)) > 3
    assert min(rooms) <= answer.chosen["fast_bytes"] < max(rooms)


def test_a_policy_that_has_no_answer_says_why_beside_those_that_have() -> None:
    def none(question: PlacementQuestion) -> dict[str, str]:
        message = f"nothing for {question.machine.name}\nhint: take another"
        raise PlacementError(message)

    refused = plan("local", none).policy("none")
    assert refused["refused"] == "nothing for bytedance-spr-a1000\nhint: take another"
    with pytest.raises(PlacementError, match="none: nothing for"):
        plan(none)


@pytest.mark.parametrize(
    ("told", "message"),
    [
        (
            lambda: 1 / 0,
            r"policy `bad`: ZeroDivisionError: division by zero \(.*test_user_policies.py:\d+\)\nhint: fix",
        ),
        (lambda: {"zorg": "local"}, "'zorg' is no object of this profile\nhint: use names such as: u0"),
        (lambda: {"u0": "everywhere"}, "policy `bad`, object `u0`: 'everywhere' is no place\nhint: write local"),
        (lambda: {"u0": 3}, "policy `bad`, object `u0`: 3 is no place"),
        (lambda: ["local"], "is no mapping\nhint: return a place by object"),
    ],
)
def test_what_a_placement_policy_may_not_do(told: Callable[[], object], message: str) -> None:
    def bad(question: PlacementQuestion) -> object:  # noqa: ARG001 (as it is called)
        return told()

    with pytest.raises(RequestError, match=message):
        plan("local", bad)


def test_a_memory_that_may_not_be_used_is_a_refusal_beside_the_others() -> None:
    def elsewhere(question: PlacementQuestion) -> dict[str, str]:
        return {question.objects[0]["name"]: "bind:hbm"}

    assert "`hbm`" in plan("local", elsewhere).policy("elsewhere")["refused"]


@pytest.mark.parametrize(("evaluator", "size"), [("cohort", "16GiB"), ("exact", "64MiB")])
def test_hemem_in_python_does_what_the_simulators_own_does(evaluator: str, size: str) -> None:
    workload = Workload.synthetic("zipf", size=size, seconds=0.5, gb_s=8, threads=4)
    runs = [
        tierloom.simulate(
            workload, "bytedance-spr-a1000", policy, nodes=["ldram", "cxl"], fast_memory="25%", evaluator=evaluator
        ).data
        for policy in ("hemem", HeMem)
    ]
    assert runs[1]["time_s"] == pytest.approx(runs[0]["time_s"], rel=1e-9)
    assert runs[1]["counters"] == pytest.approx(runs[0]["counters"], rel=1e-6)
    assert runs[1]["policy"] == "HeMem"
    assert runs[1]["about"].startswith("HeMem once more")


class Still:
    """Moves nothing."""

    period_s = 0.1

    def __init__(self, told: object = ()) -> None:
        self.told = told

    def look(self, view: MigrationView) -> object:
        assert view.pages.shape == (len(view.reads), len(view.nodes))
        assert view.nodes == ("ldram", "cxl")
        assert (view.pages.sum(0) >= 0).all()
        return self.told


def simulated(policy: object, **other: object) -> dict:
    workload = Workload.synthetic("uniform", size="64MiB", seconds=0.5)
    asked = {"nodes": ["ldram", "cxl"], "fast_memory": "50%", **other}
    return tierloom.simulate(workload, "bytedance-spr-a1000", policy, **asked).data


def test_a_policy_that_moves_nothing_is_none() -> None:
    none, still = simulated("none"), simulated(Still)
    assert still["time_s"] == pytest.approx(none["time_s"], rel=1e-9)
    assert still["counters"] == none["counters"]


@pytest.mark.parametrize(
    "told", [[(0, 0, 9, 1.0)], [(-1, 0, 1, 1.0)], [(0, "hbm", "cxl", 1)], [(0, 0, 1, math.nan)], [(1,)]]
)
def test_what_is_no_move_is_refused(told: list) -> None:
    class Bad(Still):
        def __init__(self) -> None:
            super().__init__(told)

    with pytest.raises(RequestError, match=r"policy `Bad`: .* is no move\nhint: return \(group, from, to, pages\)"):
        simulated(Bad)


def test_knobs_are_arguments() -> None:
    class Knobbed(Still):
        def __init__(self, hot: float = 1.0) -> None:
            super().__init__()
            assert hot == 3.0

    assert simulated(Knobbed, knobs={"hot": 3})["knobs"] == [{"name": "hot", "value": 3.0, "source": "asked"}]
    with pytest.raises(RequestError, match=r"policy `Knobbed`: TypeError: .*cold"):
        simulated(Knobbed, knobs={"cold": 3})


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("period_s = 0.0", "policy `made`, period_s: 0.0 is no such number\nhint: set period_s in the class"),
        ("", "policy `made`, period_s: None is no such number"),
        ("period_s = 1.0\n    shootdowns = -1", "policy `made`, shootdowns: -1 is no such number"),
        ("period_s = 1.0\n    look = None", "policy `made` has no `look`"),
    ],
)
def test_what_a_migration_policy_lacks_is_said(folder: Path, body: str, message: str) -> None:
    text = f"class Made:\n    def look(self, view):\n        return []\n    {body}\n"
    found = user_policies.policy(f"{file(folder, text)}:Made", user_policies.MIGRATION, list)
    assert isinstance(found, user_policies.UserPolicy)
    with pytest.raises(RequestError, match=message):
        user_policies.migrating(user_policies.UserPolicy("made", found.made_of), {})


def test_an_exception_while_pages_move_ends_the_run() -> None:
    class Late(Still):
        def look(self, view: MigrationView) -> object:
            if view.now_s > 0.2:
                message = "late"
                raise KeyError(message)
            return ()

    with pytest.raises(RequestError, match=r"policy `Late`: KeyError: 'late' \(.*:\d+\)"):
        simulated(Late)


def test_files_are_read_and_refused_by_name(folder: Path, tierloom: Tierloom) -> None:
    asked = ("plan", "ft-d", "-m", "bytedance-spr-a1000", "--policies")
    for named, message in [
        ("none.py:x", "none.py: no such file"),
        ("mine.py:x", "mine.py: it has no function or class `x`"),
        ("bad.py:x", "policy `bad.py:x`: SyntaxError"),
    ]:
        file(folder, "def y(question):\n    return {}\n")
        file(folder, "def (", "bad.py")
        told = tierloom(*asked, named)
        assert told.exit_code == 2
        assert message in told.stderr
    assert "no policy `zorg`" in tierloom(*asked, "zorg").stderr


PAGE = ROOT / "docs" / "policies.md"


@pytest.fixture
def package(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """`my_package` of docs/policies.md as pip leaves it: the page's policies in a module, its entry points beside."""
    site = folder / "site"
    files = [block for block in blocks_of(PAGE, "python") if is_file(block)]
    offered = tomllib.loads(blocks_of(PAGE, "toml")[0])["project"]["entry-points"]
    lines = [f"[{group}]\n" + "".join(f"{name} = {at}\n" for name, at in of.items()) for group, of in offered.items()]
    for name, text in {
        "my_package/__init__.py": "",
        "my_package/policies.py": "\n\n".join(files),
        "my_package-1.0.dist-info/METADATA": METADATA,
        "my_package-1.0.dist-info/entry_points.txt": "\n".join(lines),
    }.items():
        (site / name).parent.mkdir(parents=True, exist_ok=True)
        (site / name).write_text(text)
    for block in files:
        (folder / block.split()[1].strip(":")).write_text(block)
    monkeypatch.syspath_prepend(site)
    yield site
    for name in ("my_package", "my_package.policies"):
        sys.modules.pop(name, None)


METADATA = "Metadata-Version: 2.1\nName: my-package\nVersion: 1.0\n"


@pytest.mark.usefixtures("package")
def test_an_installed_package_offers_placement_policies() -> None:
    answer = plan("usual", "hottest-first", "hottest.py:hottest_first")
    theirs, file_s = (answer.policy(name) for name in ("hottest-first", "hottest.py:hottest_first"))
    assert theirs["prediction"] == file_s["prediction"]
    assert theirs["about"] == "Objects with the most accesses for their size get fast memory while it has room."
    assert answer.policy("tierloom")["prediction"]["time_s"] <= theirs["prediction"]["time_s"]


@pytest.mark.usefixtures("package")
def test_an_installed_package_offers_migration_policies() -> None:
    theirs, file_s = (simulated(name, knobs={"hot": 5}) for name in ("threshold", "threshold.py:Threshold"))
    assert theirs["counters"] == file_s["counters"]
    assert theirs["counters"] != simulated("none")["counters"], "it moves pages"


@pytest.mark.parametrize(
    ("verb", "parameters"),
    [
        ("plan", 'profile = "ft-d"\npolicies = ["local", "hottest-first"]\n[axes]\nthreads = [4, 8]\n'),
        (
            "simulate",
            'workload = "uniform"\nsize = "64MiB"\nseconds = 0.5\nfast_memory = "50%"\n'
            '[axes]\npolicy = ["none", "threshold"]\n',
        ),
    ],
)
def test_a_study_computes_again_under_another_version_of_a_package(
    folder: Path, package: Path, verb: str, parameters: str
) -> None:
    start = f'version = 1\nverb = "{verb}"\n[parameters]\nmachine = "bytedance-spr-a1000"\nnodes = "ldram,cxl"\n'
    study = file(folder, start + parameters, "own.toml")
    first, again = (tierloom.sweep(study, folder / "own.sweep", workers=0) for _ in range(2))
    assert (first.counts["done"], again.data["computed"]) == (2, 0)
    (package / "my_package-1.0.dist-info" / "METADATA").write_text(METADATA.replace("1.0", "1.1"))
    newer = tierloom.sweep(study, folder / "own.sweep", workers=0)
    assert newer.data["computed"] == {"plan": 2, "simulate": 1}[verb], "what the package has a part in"


@pytest.mark.usefixtures("package")
def test_a_package_that_is_broken_is_told_by_its_policy(package: Path) -> None:
    (package / "my_package" / "policies.py").write_text("def hottest_first(\n")
    with pytest.raises(RequestError, match="policy `hottest-first`: SyntaxError"):
        plan("local", "hottest-first")
    (package / "my_package" / "policies.py").write_text("hottest_first = 3\n")
    with pytest.raises(RequestError, match=r"my_package\.policies:hottest_first is no function"):
        plan("local", "hottest-first")


def test_a_study_computes_again_what_a_changed_policy_touches(folder: Path) -> None:
    policy = file(folder, "def far(question):\n    return {}\n")
    text = f"""version = 1\nverb = "plan"\n[parameters]\nprofile = "ft-d"\nmachine = "bytedance-spr-a1000"
nodes = "ldram,cxl"\npolicies = "{policy}:far"\n[axes]\nthreads = [4, 8]\n"""
    study = file(folder, text, "own.toml")
    first, again = (tierloom.sweep(study, folder / "own.sweep", workers=0) for _ in range(2))
    assert (first.data["computed"], again.data["computed"]) == (2, 0)
    file(folder, "def far(question):\n    return {item['name']: 'preferred:cxl' for item in question.objects}\n")
    changed = tierloom.sweep(study, folder / "own.sweep", workers=0)
    assert changed.data["computed"] == 2


def test_the_page_has_the_policy_in_rust_that_the_engine_tests() -> None:
    crate = ROOT / "crates" / "place"
    policy, entry = blocks_of(PAGE, "rust")
    assert policy == (crate / "tests" / "own_policy" / "hottest_first.rs").read_text(encoding="utf-8")
    assert entry.strip(" ,\n") in (crate / "src" / "policy" / "mod.rs").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "words", ["local", "preferred:cxl", "interleave:ldram+cxl", "weighted:ldram=3+cxl=1", "bind:ldram+cxl"]
)
def test_a_place_for_all_objects_is_the_policy_of_that_name(words: str) -> None:
    def everywhere(question: PlacementQuestion) -> dict[str, str]:
        return {item["name"]: words for item in question.objects}

    answer = plan(words, everywhere)
    assert answer.policy("everywhere")["fractions"] == answer.policy(words)["fractions"]


@pytest.mark.parametrize("words", ["bind", "bind:", "bind:a++b", "bind:a+a", "weighted:a=0", "weighted:a=256", "soar"])
def test_what_is_no_place(words: str) -> None:
    with pytest.raises(ValueError, match=re.escape(words)):
        user_policies.place(words)


def test_a_policy_may_sort_its_objects() -> None:
    def sorting(question: PlacementQuestion) -> dict[str, str]:
        objects = question.objects
        objects.sort(key=lambda item: item["name"], reverse=True)
        return {objects[0]["name"]: "preferred:cxl"}

    program = tierloom.profile("ft-d")
    before = [item["name"] for item in program.objects]
    answer = tierloom.plan(program, "bytedance-spr-a1000", policies=[sorting], **ON)
    far = [row["object"] for row in answer.plan().rows() if row["place"] == "prefer cxl"]
    assert far == [max(before)]
    assert [item["name"] for item in program.objects] == before


def test_names_stand_for_one_policy_each() -> None:
    def soar(question: PlacementQuestion) -> dict[str, str]:  # noqa: ARG001 (as it is called)
        return {}

    with pytest.raises(RequestError, match="`soar` is a policy of ours\nhint: give your function another name"):
        plan(soar)
    with pytest.raises(RequestError, match="two policies are called `<lambda>`"):
        plan(lambda _: {}, lambda _: {"u0": "local"})
    names = [policy["policy"] for policy in plan("usual", "local", "usual", interleaved, interleaved).brief["policies"]]
    assert len(names) == len(set(names))
    assert names[-1] == "tierloom"


def test_a_file_may_hold_data_classes_and_travels_as_its_text(folder: Path) -> None:
    text = (
        "from __future__ import annotations\nfrom dataclasses import dataclass\n\n@dataclass\nclass Far:\n"
        "    share: float = 0.5\n\ndef far(question):\n    return {} if Far().share else None\n"
    )
    found = user_policies.policy(f"{file(folder, text)}:far", user_policies.PLACEMENT, list)
    again = pickle.loads(pickle.dumps(found))  # noqa: S301 (our own)
    (folder / "mine.py").unlink()
    assert plan("local", again).policy(again.name)["prediction"] == plan("local").chosen["prediction"]


def test_moves_may_be_an_array() -> None:
    class Arrays(Still):
        def look(self, view: MigrationView) -> object:
            moved = min(view.pages[0, 0], 10.0)
            return np.array([[0, 0, 1, moved]]) if view.now_s < 0.15 else np.zeros((0, 4))

    assert simulated(Arrays)["counters"] != simulated("none")["counters"]


def test_a_study_elsewhere_finds_the_files_beside_it(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    beside, here = folder / "there", folder / "here"
    beside.mkdir(), here.mkdir()
    file(beside, "class Still:\n    period_s = 1.0\n    def look(self, view):\n        return []\n", "own.py")
    study = file(
        beside,
        'version = 1\nverb = "simulate"\n[parameters]\nmachine = "bytedance-spr-a1000"\nworkload = "uniform"\n'
        'size = "64MiB"\nseconds = 0.5\nnodes = "ldram,cxl"\nfast_memory = "50%"\n'
        '[axes]\npolicy = ["none", "own.py:Still"]\n',
        "own.toml",
    )
    monkeypatch.chdir(here)
    found = tierloom.sweep(study, folder / "own.sweep", workers=0)
    assert found.counts["done"] == 2
    assert len({row["time_s"] for row in found.rows()}) == 1


def test_all_is_a_word_of_a_list_and_no_part_of_a_name() -> None:
    assert policies_of("small.py:Still,tierloom", followed=True) == ["small.py:Still", "tierloom"]
    every = policies_of("all,small.py:Still", followed=True)
    assert (every[0], every[-1], "tierloom" in every) == ("none", "small.py:Still", False)
