"""A study file: what it says is what is asked, and what it cannot say is answered with the key."""

from __future__ import annotations

import inspect
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tierloom
from tierloom.errors import RequestError, StudyError
from tierloom.placements import fractions
from tierloom.sweeps import Study, points
from tierloom.sweeps.axes import Choice, Span, axis
from tierloom.sweeps.keys import Addresses
from tierloom.sweeps.nouns import Nouns
from tierloom.sweeps.verbs import VERBS
from tierloom.what_if import scaled

START = 'version = 1\nverb = "predict"\n[parameters]\nprofile = "mg-e"\nmachine = "liu-a"\n'


def study(axes: str, sample: str = "", start: str = START) -> Study:
    return Study.parse(f"{start}[axes]\n{axes}\n{sample}")


def of(asked: Study) -> list[points.Point]:
    return [point for generation in points.generations(asked, lambda _: None) for point in generation]


def test_every_study_of_the_catalog_reads_and_says_what_it_is_for() -> None:
    assert Study.names()
    for name in Study.names():
        found = Study.load(name)
        assert found.title
        assert points.count(found) > 1


def test_a_grid_is_every_combination_the_last_axis_fastest() -> None:
    asked = study("threads = [8, 16]\n'place.u.cxl' = { from = 0.0, to = 1.0, steps = 3 }")
    assert [tuple(point.values()) for point in of(asked)] == [
        (8, 0.0), (8, 0.5), (8, 1.0), (16, 0.0), (16, 0.5), (16, 1.0),
    ]  # fmt: skip
    assert points.count(asked) == 6


@given(st.integers(1, 60), st.integers(0, 2**32 - 1))
def test_a_latin_hypercube_meets_every_slice_of_every_axis_once(many: int, seed: int) -> None:
    sample = f'[sample]\nmethod = "latin-hypercube"\npoints = {many}\nseed = {seed}'
    asked = study('"place.u.cxl" = { from = 0.0, to = 1.0 }\n"place.v.cxl" = { from = 0.0, to = 8.0 }', sample)
    found = of(asked)
    for name, width in (("place.u.cxl", 1.0), ("place.v.cxl", 8.0)):
        slices = sorted(math.floor(float(point[name]) / width * many) for point in found)
        assert slices == list(range(many))
    assert found == of(asked), "the same seed gives the same points"


@given(st.floats(0.0, 1.0))
def test_a_span_stays_within_its_ends(share: float) -> None:
    for span in (Span(3, 17, whole=True), Span(0.1, 9.0, log=True), Span(-2.0, 2.0)):
        value = span.at(share)
        assert isinstance(value, int | float)
        assert span.low <= value <= span.high
        assert isinstance(value, int) == span.whole
    assert Span(0.1, 9.0, log=True).at(1.0) == 9.0


def test_units_stay_with_their_numbers() -> None:
    assert axis({"from": "10%", "to": "30%", "steps": 3}, "a").grid() == ["10%", "20%", "30%"]
    assert axis({"from": "1GiB", "to": "4GiB", "steps": 3, "log": True}, "a").grid() == ["1GiB", "2GiB", "4GiB"]
    assert Choice(("a", "b", "c")).at(1.0) == "c"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[", "mend the text"),
        ('verb = "predict"', "version"),
        ("version = 2", "version: 2"),
        ('version = 1\nverb = "guess"', "use one of: predict, plan"),
        ("version = 1\ncolour = 3", "colour"),
        (START, "axes: nothing varies"),
        (f"{START}[axes]\nthreds = [1]", "did you mean threads"),
        (f"{START}[axes]\n'plice.u.cxl' = [1]", "no such parameter"),
        (f"{START}[axes]\nmachine = ['liu-a']", "among the parameters"),
        (f"{START}[axes]\nthreads = 8", "one value is a parameter"),
        (f"{START}[axes]\nthreads = []", "one value or more"),
        (f"{START}[axes]\nthreads = [[1]]", "one value or more"),
        (f"{START}[axes]\nthreads = {{ from = 8 }}", "from or to is missing"),
        (f"{START}[axes]\nthreads = {{ from = 8, to = 1, steps = 3 }}", "go upwards"),
        (f"{START}[axes]\nthreads = {{ from = 1, to = 8 }}", "a grid needs steps"),
        (f"{START}[axes]\nthreads = {{ from = 1, to = 8, steps = 1 }}", "two or more"),
        (f"{START}[axes]\nthreads = {{ from = 0, to = 8, steps = 2, log = true }}", "starts above 0"),
        (f"{START}[axes]\nthreads = {{ from = '1GiB', to = '8MiB', steps = 2 }}", "in one unit"),
        (f"{START}[axes]\nthreads = {{ from = 'few', to = 8, steps = 2 }}", "is no number"),
        ('version = 1\nverb = "predict"\n[axes]\nthreads = [1]', "profile: `predict` needs it"),
        (f"{START}[axes]\nthreads = [1]\n[sample]\nmethod = 'dice'", "use one of: grid"),
        (f"{START}[axes]\nthreads = [1]\n[sample]\nseed = 1", "sample.seed"),
        (f"{START}[axes]\nthreads = [1]\n[sample]\nmethod = 'latin-hypercube'", "sample.points"),
        (f"{START}[axes]\nthreads = [1]\n[sample]\nmethod = 'search'\npoints = 3", "says what is sought"),
        (f"{START}[axes]\nthreads = [1]\n[sample]\nmethod = 'search'\npoints = 0", "sample.points: 0"),
        ("version = 1\nverb = 'predict'\nparameters = 3", "has to be a table"),
    ],
)  # fmt: skip
def test_what_a_study_cannot_say_is_named_by_its_key(text: str, said: str) -> None:
    with pytest.raises(StudyError) as caught:
        Study.parse(text, "my.toml")
    assert said in str(caught.value)
    assert str(caught.value).startswith("my.toml: ")
    assert str(caught.value).count("\nhint: ") == 1


def test_all_mistakes_are_told_in_one_round() -> None:
    text = START.replace('"liu-a"', '"liu-z"') + (
        "thraeds = 3\n'scale.cxl.ilde' = 2\n[axes]\nprofile = ['mg-e']\nsocket = []\n[sample]\nmethod = 'dice'\n"
    )
    with pytest.raises(StudyError) as caught:
        Study.parse(text, "my.toml")
    told = str(caught.value)
    for each in (
        "thraeds: `predict` has no such parameter (did you mean threads?)",
        "axes.profile: it is among the parameters, too",
        "axes.socket: a list has to hold one value or more",
        "sample.method: 'dice' is none",
        "there is no machine `liu-z`",
    ):
        assert each in told, told


@pytest.mark.parametrize(
    ("axes", "told"),
    [
        ("'scale.cxll.idle' = [1]", "scale.cxll.idle: there is no `cxll`\nhint: did you mean cxl?"),
        ("'scale.cxl.ilde' = [1]", "scale.cxl.ilde: there is no `ilde`\nhint: did you mean idle?"),
        ("'scale.hbm.idle' = [1]", "scale.hbm.idle: there is no `hbm`\nhint: use one of: rdram, ldram, cxl"),
        ("'place.u.cxxl' = [1]", "place.u.cxxl: there is no `cxxl`\nhint: did you mean cxl?"),
        ("'place.w.cxl' = [1]", "place.w.cxl: there is no `w`\nhint: use one of: *, u, v, r"),
    ],
)
def test_a_part_that_the_machine_or_the_profile_has_not_is_told_before_anything_runs(axes: str, told: str) -> None:
    asked = study(axes)
    with pytest.raises(RequestError) as caught:
        Addresses(asked, Nouns(asked))
    assert told in str(caught.value)


def test_a_memory_of_one_of_several_machines_is_known() -> None:
    start = START.replace('machine = "liu-a"\n', "")
    asked = study("machine = ['liu-a', 'desktop-9950x']\n'scale.cxl.idle' = [1, 2]", start=start)
    Addresses(asked, Nouns(asked))


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ("kind = 'mainframe'", "use one of: htcondor"),
        ("workers = -1", "no number of workers"),
        ("options = { queue = 'long' }", "of what kind"),
        ("color = 1", "no such key"),
        ("kind = 'slurm'", "how many on slurm"),
        ("kind = 'slurm'\nworkers = 2", "pip install dask-jobqueue"),
    ],
)
def test_a_cluster_that_cannot_be_is_refused(folder: Path, table: str, said: str) -> None:
    from tierloom.sweeps import sweep

    with pytest.raises(RequestError, match=said):
        sweep(study("threads = [1, 2]", f"[cluster]\n{table}"), folder / "out")


def addresses(asked: Study) -> list[bytes]:
    address = Addresses(asked, Nouns(asked))
    return [address(point) for point in of(asked)]


def test_an_address_is_of_the_content_not_of_the_place(folder: Path) -> None:
    first = study("threads = [8, 16]")
    assert addresses(first) == addresses(study("threads = [8, 16]"))
    assert addresses(study("threads = [16, 8]")) == addresses(first)[::-1], "order does not matter"
    assert len({*addresses(first), *addresses(study("threads = [32]"))}) == 3
    machine = tierloom.Machine.load("liu-a")
    machine.save(folder / "mine.toml")
    copied = START.replace('"liu-a"', '"mine.toml"')
    assert addresses(study("threads = [8, 16]", start=copied)) == addresses(first), "the same machine in a file"
    scaled(machine, {"cxl.idle": 1.1}).save(folder / "mine.toml")
    assert not set(addresses(study("threads = [8, 16]", start=copied))) & set(addresses(first)), "a file that changed"


def test_an_address_depends_on_the_code(monkeypatch: pytest.MonkeyPatch) -> None:
    before = addresses(study("threads = [8]"))
    monkeypatch.setattr("tierloom.sweeps.keys.code_id", lambda: "1.2.3+abc")
    assert addresses(study("threads = [8]")) != before


def test_paths_are_relative_to_the_study(folder: Path) -> None:
    inner = folder / "studies"
    inner.mkdir()
    tierloom.Machine.load("liu-a").save(inner / "mine.toml")
    (inner / "a.toml").write_text(START.replace('"liu-a"', '"mine.toml"') + "[axes]\nthreads = [8]")
    found = Study.load(inner / "a.toml")
    assert addresses(found) == addresses(study("threads = [8]"))


def test_a_share_goes_where_it_is_sent_and_the_rest_stays() -> None:
    profile, machine = tierloom.Profile.load("mg-e"), tierloom.Machine.load("liu-a")
    found = fractions(profile, machine, {"*.cxl": 0.25, "u.cxl": 1.0, "u.rdram": 0.0})
    assert found == [[0.0, 0.0, 1.0], [0.0, 0.75, 0.25], [0.0, 0.75, 0.25]]
    for wrong, said in (({"w.cxl": 0.1}, "u, v, r"), ({"u.hbm": 0.1}, "rdram, ldram, cxl"), ({"u.cxl": 1.5}, "shares")):
        with pytest.raises(RequestError, match=said):
            fractions(profile, machine, wrong)


@pytest.mark.parametrize("name", tierloom.Machine.names())
def test_a_machine_can_be_stretched(name: str) -> None:
    machine = tierloom.Machine.load(name)
    memory = machine.data["memories"][-1]["name"]
    path = next(path for path in machine.data["paths"] if path["to"] == memory)
    wider = scaled(machine, {f"{memory}.bandwidth": 2.0}).curve(path["from"], memory)
    farther = scaled(machine, {f"{memory}.idle": 1.5}).curve(path["from"], memory)
    plain = machine.curve(path["from"], memory)
    assert wider.peak_gb_s == pytest.approx(2.0 * plain.peak_gb_s)
    assert wider.latency_ns(0.5) == pytest.approx(plain.latency_ns(0.5), rel=0.01)
    rise = farther.latency_ns(0.5) - plain.latency_ns(0.5)
    assert rise == pytest.approx(0.5 * path["idle_ns"]["value"], rel=0.01)
    larger = scaled(machine, {f"{memory}.capacity": 2.0}).data["memories"][-1]["capacity_bytes"]
    assert larger["value"] == pytest.approx(2 * machine.data["memories"][-1]["capacity_bytes"]["value"])
    assert larger["kind"] == "derived"
    with pytest.raises(RequestError, match="no such figure"):
        scaled(machine, {f"{memory}.colour": 2.0})


ASKED = {
    "predict": {"profile": "mg-e", "machine": "liu-a", "place.*.cxl": 0.2, "scale.cxl.idle": 1.2},
    "plan": {"profile": "mg-e", "machine": "liu-a", "fast_memory": "40%", "nodes": "ldram,cxl"},
    "simulate": {"workload": "scan", "size": "64MiB", "seconds": 1.0, "machine": "liu-a", "policy": "none"},
    "expand": {"workload": "vadd", "passes": 0.01, "set": ""},
    "offload infer": {"model": "opt-66b", "gpu": "a10", "machine": "liu-a", "nvme": "2TB:6.8:5"},
    "offload train": {"model": "gpt2-8b", "gpu": "a10", "machine": "liu-a"},
    "offload serve": {"model": "llama-3.1-70b", "gpu": "h100", "machine": "liu-a", "sessions": 30, "context": 8192},
    "offload cpu": {"model": "llama-7b", "machine": "bytedance-spr-a1000", "weight_bits": 4.5},
}


def test_every_verb_can_be_asked() -> None:
    assert set(ASKED) == set(VERBS)


@pytest.mark.parametrize("name", ASKED)
def test_a_verb_answers_with_one_flat_row(name: str) -> None:
    verb, asked = VERBS[name], ASKED[name]
    row = verb({key: verb.nouns[key](value) if key in verb.nouns else value for key, value in asked.items()})
    column, _ = verb.objective
    assert isinstance(row[column], float)
    assert row[column] > 0
    assert all(isinstance(cell, str | int | float | bool | None) for cell in row.values())
    assert not set(row) & set(verb.parameters), "a result must not have the name of a parameter"


def test_a_study_may_set_what_the_function_takes() -> None:
    assert set(inspect.signature(tierloom.plan).parameters) <= set(VERBS["plan"].parameters)
    verb, asked = VERBS["plan"], ASKED["plan"]
    given = {key: verb.nouns[key](value) if key in verb.nouns else value for key, value in asked.items()}
    assert verb({**given, "what_if": "cxl.idle=+200ns"})["time_s"] > verb(given)["time_s"]
