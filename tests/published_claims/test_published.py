"""Verdicts on the claims that are quick to compute are those of `docs/reproduce.md`, and move only with it."""

from __future__ import annotations

import re

import pytest
from support import ROOT

from tierloom.nouns import Machine
from tierloom.pmem import groups
from tierloom.published_claims import claims, expansion, reproduce
from tierloom.report.tables import claims as shown

PAGE = ROOT / "docs" / "reproduce.md"
QUICK = ("bytedance24", "fridman23", "micron24", "liu24.[!p]*", "cxlgpu25.setup", "cxlgpu25.workloads")
"""All but what takes long: the expander, and HPC programs under migration (pmo1 to pmo5)."""

ROW = re.compile(r"^\| (?P<id>[^| ]+) \|.*\| (?P<verdict>in band|missed|not modelled) \|$")


def written() -> dict[str, str]:
    """Verdicts by id, as the page has them."""
    found, study = dict[str, str](), ""
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        if told := re.search(r"`tierloom reproduce --only (\w+)`", line):
            study = told[1]
        if row := ROW.match(line):
            found[f"{study}.{row['id']}"] = row["verdict"]
    return found


def test_verdicts_are_those_of_the_page_and_every_miss_says_why() -> None:
    """What moves a verdict, moves the page with it: `tierloom reproduce --markdown docs/reproduce.md`."""
    on_page = written()
    assert on_page.keys() == {claim.id for claim in claims()}
    results = reproduce(claims(QUICK))
    assert {each.claim.id: each.verdict for each in results if each.verdict != on_page[each.claim.id]} == {}
    assert [each.claim.id for each in results if each.verdict != "in band" and not each.claim.why] == []


FEW_PASSES = 0.15
"""Six tenths of the accesses of the whole table."""


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = expansion.expand
    monkeypatch.setattr(expansion, "expand", lambda *words, **given: whole(*words, passes=FEW_PASSES, **given))


@pytest.mark.slow
@pytest.mark.usefixtures("short")
def test_the_expander_keeps_what_it_reproduces_on_shorter_runs() -> None:
    kept = ("fig9b.sr.all", "fig9b.sr.streams", "fig9e", "hits.cxl.seq", "hits.cxl.around", "hits.dyn.seq")
    wanted = [claim for claim in claims([f"cxlgpu25.{name}" for name in kept]) if written()[claim.id] == "in band"]
    results = {result.claim.id: result.verdict for result in reproduce(wanted, workers=1)}
    assert set(results.values()) == {"in band"}, results


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_the_document_is_what_the_command_writes() -> None:
    results = reproduce(claims())
    page = PAGE.read_text(encoding="utf-8")
    assert shown.markdown(results) in page
    assert all(result.claim.why for result in results if result.verdict != "in band")


@pytest.mark.parametrize(
    ("memory", "socket", "series"),
    [
        ("ldram", "socket0", "2.b on-node DDR5"),
        ("rdram", "socket0", "2.a remote DDR5"),
        ("cxl", "socket1", "2.a CXL from the other socket"),
    ],
)
def test_the_fpga_machine_reaches_the_highest_published_triad(memory: str, socket: str, series: str) -> None:
    """It was made so; STREAM counts three of the four lines that its Triad moves."""
    group, _, name = series.partition(" ")
    (found,) = [each for each in groups.group(group).series if each.name == name]
    peak = Machine.load("fridman-spr-fpga").curve(socket, memory, 0.75).peak_gb_s
    assert 0.75 * peak == pytest.approx(max(found.triad_gb_s.values()), rel=0.005)
