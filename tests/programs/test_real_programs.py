"""Programs that nobody here wrote go through `profile` and `run` unharmed, with a sensible object table.

What they do is in `real.py`. All of them run in `make live`; what
it costs them, `benches/real_programs.py` measures.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from programs import real
from support import ROOT
from three_ways import run_three_ways

if TYPE_CHECKING:
    from pathlib import Path

MIB = 1 << 20


def sizes(profile: dict) -> list[int]:
    return [item["size_bytes"] for item in profile["objects"]]


def keeps_its_window_in_statics(profile: dict) -> None:
    assert any("statics" in item["name"] for item in profile["objects"]), "gzip has static arrays and no symbols"


def has_a_dictionary(profile: dict) -> None:
    assert max(sizes(profile)) >= 2 * MIB, "the dictionary of level 2 has 2 MiB, its hash chains more"


def holds_the_waves(profile: dict) -> None:
    waves = 128**3 * 16
    assert any(waves <= size <= 4 * waves for size in sizes(profile)), "128^3 complex numbers are an object"


def holds_the_values(profile: dict) -> None:
    assert profile["sampling"]["samples"] > 50
    assert sum(sizes(profile)) > 20_000 * 500, "the values are somewhere"


OBJECTS = {
    "gzip": keeps_its_window_in_statics,
    "xz": has_a_dictionary,
    "numpy and scipy": holds_the_waves,
    "redis": holds_the_values,
}
"""What we know of the data of some."""


def sensible(profile: dict) -> None:
    """Laws that hold for the object table of any program."""
    for item in profile["objects"]:
        assert item["name"]
        assert item["size_bytes"] > 0
        assert item["first_s"] <= item["last_s"]
    shares = [item["stall"]["share"] for item in profile["objects"] if "stall" in item]
    shares += [rest["stall"]["share"] for rest in profile.get("unattributed", [])]
    if profile["sampling"]["samples"]:
        assert sum(shares) == pytest.approx(1.0, abs=1e-6)
    assert profile["program"]["cpu_s"] > 0


def cases() -> list:
    """All programs by name; the heavy ones are marked `long`."""
    marks = {True: [pytest.mark.long], False: []}
    return [pytest.param(program, id=program.name, marks=marks[program.heavy]) for program in real.PROGRAMS]


@pytest.mark.live
@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("program", cases())
def test_a_program_runs_as_ever(
    program: real.Program, executable: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if missing := program.missing():
        pytest.skip(missing)
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "1")
    let_servers_in(folder)
    ways = run_three_ways(executable, folder, program.run_in(folder))
    assert program.says in ways.alone.stdout, ways.alone.stderr.decode()
    ways.unharmed(program.visible)
    ways.complete()
    sensible(ways.profile)
    OBJECTS.get(program.name, lambda _profile: None)(ways.profile)


def let_servers_in(folder: Path) -> None:
    """Servers drop root's rights and still have to reach their folder; pytest keeps its own to itself."""
    for own in (folder, *(parent for parent in folder.parents[:3] if "pytest" in parent.name)):
        own.chmod(0o755)


def test_twenty_programs_are_listed() -> None:
    assert len({program.command[0:2] for program in real.PROGRAMS}) >= 20
    assert len({program.name for program in real.PROGRAMS}) == len(real.PROGRAMS)


def test_the_published_table_knows_no_harm() -> None:
    page = (ROOT / "docs" / "real-programs.md").read_text(encoding="utf-8")
    table = page.split("<!-- table: begin -->")[1].split("<!-- table: end -->")[0]
    rows = [line.strip("| ").split(" | ") for line in table.splitlines() if line.startswith("|")][2:]
    names = [name for name, *_ in rows]
    assert len(names) >= 20
    assert names == [program.name for program in real.PROGRAMS if program.name in names]
    assert all(row[2:4] == ["yes", "yes"] for row in rows)
