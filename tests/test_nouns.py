"""The Python face of the nouns: what is read is what was written."""

from __future__ import annotations

import io
import json
import pickle
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tierloom
from tierloom import Machine, Profile, Workload
from tierloom.errors import MachineError, PlanError, ProfileError, RequestError, TierloomError
from tierloom.report.tables.machines import sparkline
from tierloom.units import amount_in_bytes, bytes_text, fraction, percent_text, seconds_text, tally_text

FILES = ("profile.json", "samples.npy")


def toy_profile(**changes: object) -> str:
    program = {"command": ["toy"], "wall_s": 1.0, "cpu_s": 1.0, "threads": 1, "cpu": "any", "llc_bytes": 1 << 25}
    return json.dumps({"version": 1, "name": "toy", "program": program, "objects": [], "phases": [], **changes})


def test_every_noun_of_the_catalog_loads() -> None:
    assert tierloom.Machine.names()
    assert tierloom.Profile.names()
    for name in tierloom.Machine.names():
        assert tierloom.Machine.load(name).name == name
    for name in tierloom.Profile.names():
        profile = tierloom.Profile.load(name)
        assert profile.name == name
        assert profile.footprint_bytes > 2**30


def test_curves_rise_and_start_idle() -> None:
    for name in tierloom.Machine.names():
        machine = tierloom.Machine.load(name)
        for path in machine.data["paths"]:
            curve = machine.curve(path["from"], path["to"])
            latencies = [ns for _, ns in curve.points]
            assert latencies[0] == pytest.approx(path["idle_ns"]["value"], rel=0.02)
            assert latencies == sorted(latencies)
            assert curve.points[0][1] <= curve.latency_ns(0.5) <= curve.points[-1][1]


def test_a_path_that_is_not_there_is_answered_with_those_that_are() -> None:
    with pytest.raises(RequestError, match="use one of: socket1 to ldram"):
        tierloom.Machine.load("liu-a").curve("socket1", "hbm")


def test_a_profile_survives_its_folder(tmp_path: Path) -> None:
    profile = tierloom.Profile(toy_profile())
    with pytest.raises(ProfileError, match=r"no samples: .*\nhint: "):
        profile.samples()
    profile.save(tmp_path / "toy.profile", b"")
    again = tierloom.Profile.load(tmp_path / "toy.profile")
    assert again.data == profile.data
    with pytest.raises(ProfileError, match=r"without samples\nhint: "):
        again.samples()


@pytest.mark.parametrize("name", tierloom.Profile.names())
def test_a_profile_that_is_saved_and_loaded_is_the_same_to_the_byte(tmp_path: Path, name: str) -> None:
    profile = tierloom.Profile.load(name)
    profile.save(tmp_path / "first.profile")
    first = tierloom.Profile.load(tmp_path / "first.profile")
    assert (first.text, first.data) == (profile.text, profile.data)
    first.save(tmp_path / "second.profile")
    files = [[(tmp_path / f"{each}.profile" / file).read_bytes() for file in FILES] for each in ("first", "second")]
    assert files[0] == files[1]


def test_samples_go_where_their_profile_goes(tmp_path: Path) -> None:
    rows = io.BytesIO()
    np.save(rows, np.arange(7, dtype="u8").view([("time_ns", "<u8")]))
    tierloom.Profile(toy_profile()).save(tmp_path / "a.profile", rows.getvalue())
    tierloom.Profile.load(tmp_path / "a.profile").save(tmp_path / "b.profile")
    assert tierloom.Profile.load(tmp_path / "b.profile").samples()["time_ns"].tolist() == list(range(7))
    kept = tierloom.Profile.load(tmp_path / "b.profile")
    kept.save(tmp_path / "b.profile")
    assert len(kept.samples()) == 7, "saving into its own folder keeps them"


@pytest.mark.parametrize("kept", [100, 3000])
def test_samples_that_are_cut_off_name_their_file(tmp_path: Path, kept: int) -> None:
    rows = io.BytesIO()
    np.save(rows, np.zeros(1000, dtype=[("time_ns", "<u8"), ("object", "<i4")]))
    folder = tmp_path / "toy.profile"
    tierloom.Profile(toy_profile()).save(folder, rows.getvalue())
    profile = tierloom.Profile.load(folder)
    (folder / "samples.npy").write_bytes(rows.getvalue()[:kept])
    with pytest.raises(ProfileError, match=r"toy\.profile/samples\.npy: it is cut off or damaged\nhint:"):
        tierloom.Profile.load(folder)
    with pytest.raises(ProfileError, match=r"toy\.profile/samples\.npy: no whole array of samples: .*\nhint:"):
        profile.samples()
    with pytest.raises(ProfileError, match=r"toy\.profile/samples\.npy"):
        tierloom.simulate(profile, "liu-a", "none", samples=True)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (toy_profile()[:100].encode(), "it is cut off or damaged"),
        (b"", "it is cut off or damaged"),
        (b"\xff\xfe", "not a text file"),
        (toy_profile(colour="red").encode(), "remove the key"),
        (toy_profile(version=9).encode(), "update tierloom"),
    ],
)
def test_a_damaged_profile_is_made_again_and_one_that_was_edited_is_mended(
    tmp_path: Path, content: bytes, says: str
) -> None:
    folder = tmp_path / "toy.profile"
    folder.mkdir()
    (folder / "profile.json").write_bytes(content)
    with pytest.raises(ProfileError, match=says) as caught:
        tierloom.Profile.load(folder)
    assert ("hint: profile the program again" in str(caught.value)) == says.startswith(("it is", "not a"))


@pytest.mark.parametrize(
    ("read", "error"),
    [
        (lambda path: tierloom.Machine.load(path), MachineError),
        (lambda path: tierloom.Profile.load(path), ProfileError),
        (lambda path: tierloom.Plan.load(path), PlanError),
    ],
)
def test_any_text_is_answered_by_the_noun_s_own_error(read: object, error: type[Exception], tmp_path: Path) -> None:
    path = tmp_path / "a.toml"
    for text in ("", "[", "{}", "version = 1", '{"version": 1}', "\udcff".encode("utf-8", "surrogateescape").hex()):
        path.write_text(text)
        with pytest.raises(error, match=r"a\.toml"):
            read(path)
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(error, match="not a text file"):
        read(path)


@given(st.integers(min_value=0, max_value=2**60))
def test_bytes_are_read_as_they_are_written(amount: int) -> None:
    assert amount_in_bytes(bytes_text(amount), 0) == pytest.approx(amount, rel=0.06, abs=20)


@given(st.floats(min_value=0, max_value=100))
def test_a_percentage_is_of_the_whole(percent: float) -> None:
    assert amount_in_bytes(f"{percent}%", 10**9) == pytest.approx(percent * 1e7, abs=1)
    assert fraction(f"{percent}%") == pytest.approx(percent / 100)


@pytest.mark.parametrize("text", ["", "-1GiB", "many", "12 parsecs", "nan%", "-5%"])
def test_what_is_no_amount_is_refused(text: str) -> None:
    with pytest.raises(RequestError, match="hint:"):
        amount_in_bytes(text, 10**9)


def test_words_for_numbers() -> None:
    assert [seconds_text(s) for s in (123.4, 1.234, 0.01234, 2e-6, 1e-9)] == [
        *("123 s", "1.23 s", "12.3 ms", "2.00 µs", "0 µs")
    ]
    assert [percent_text(p) for p in (0.734, 0.0123, 0.0)] == ["73 %", "1.2 %", "0 %"]
    assert sparkline([1.0, 1.0, 2.0]) == "▁▁█"
    assert len(sparkline([3.0] * 7)) == 7


def test_few_accesses_are_written_plainly() -> None:
    """Also where they are no whole number, and up to where rounding reaches a thousand."""
    assert [tally_text(number) for number in (0, 0.4, 8.002, 999.4, 999.6, 7.842e8)] == [
        *("0", "0", "8", "999", "1.0e+03", "7.8e+08")
    ]


def test_nouns_go_to_other_processes() -> None:
    machine, profile, workload = Machine.load("liu-a"), Profile.load("mg-e"), Workload.load("graph500")
    plan = tierloom.plan(profile, machine, threads=32).plan()
    for noun in (machine, profile, workload, plan):
        assert pickle.loads(pickle.dumps(noun)).data == noun.data  # noqa: S301 (our own)


@pytest.mark.parametrize("document", [{1: object()}, {"version": 1}, [], None])
def test_a_document_that_holds_no_noun_is_refused_as_such(document: object) -> None:
    for noun in (Machine, Profile, Workload):
        with pytest.raises(TierloomError, match=noun.__name__.lower()):
            noun.from_data(document)
