"""Charts as files: the same on every machine and each time, text as text, several beside each other."""

from __future__ import annotations

import re
import struct
import subprocess
import sys
from pathlib import Path

import pytest
from support import words_of

import tierloom
from tierloom.errors import RequestError
from tierloom.report import picture
from tierloom.report.pages import comparison, machine, vega
from tierloom.report.pages.parts import Picture


@pytest.fixture(scope="module")
def drawn() -> Picture:
    answer = tierloom.plan("mg-e", "liu-a", threads=32, fast_memory="64GiB", policies=["local", "tierloom"])
    return comparison.picture(answer)


def test_a_picture_says_the_answer_and_shows_the_charts_of_the_page(drawn: Picture, tmp_path: Path) -> None:
    picture.save(drawn, tmp_path / "plan.svg")
    words = words_of(tmp_path / "plan.svg")
    assert {"mg-e on liu-a, 32 threads", "Time by policy", "What ldram buys", "predicted time, s"} <= set(words)
    assert any("in ldram" in word and "less than first touch" in word for word in words), "the planner's sentence"
    assert not [word for word in words if "slider" in word], "nobody can drag one here"


AXIS = re.compile(r"<g [^>]*role-axis-label[^>]*>(.*?)</g>", re.DOTALL)
MARK = re.compile(r"<text[^>]*translate\((-?[\d.]+),(-?[\d.]+)\)[^>]*>([\d,]+)</text>")


def test_bars_beside_another_chart_grow_to_the_right(drawn: Picture) -> None:
    """Their scale leaves room for figures: it needs a width that a view beside others does not know."""
    marks = [MARK.findall(axis) for axis in AXIS.findall(picture.svg(vega.together(drawn)))]
    times, _, amounts = [[(float(x), int(text.replace(",", ""))) for x, _, text in each] for each in marks if each]
    for along in (times, amounts):
        assert len(along) > 2
        assert along == sorted(along), "as the numbers, so the places"
    assert times[-1][0] > vega.PANEL_WIDTH / 2


def test_text_is_measured_in_the_font_that_the_converter_carries(drawn: Picture) -> None:
    made = picture.svg(vega.together(drawn))
    assert set(re.findall(r'font-family="([^"]*)"', made)) == {picture.FONT}
    alone = vega.standalone(drawn.charts[0])
    assert set(re.findall(r'font-family="([^"]*)"', picture.svg(alone))) == {picture.FONT}, "of a notebook, too"
    assert f'aria-label="{drawn.title}' in made
    assert not re.search(r"var\(--|https?://(?!www\.w3\.org)", made)


ELSEWHERE = """
import sys
from tierloom.report import picture
from tierloom.report.pages import machine
import tierloom
picture.save(machine.picture(tierloom.machine("liu-a")), __import__("pathlib").Path(sys.argv[1]))
"""


@pytest.mark.parametrize("ending", picture.ENDINGS)
def test_another_process_with_another_language_draws_the_same_bytes(tmp_path: Path, ending: str) -> None:
    here, there = tmp_path / f"here{ending}", tmp_path / f"there{ending}"
    for _ in range(2):
        picture.save(machine.picture(tierloom.machine("liu-a")), here)
    env = {"LC_ALL": "de_DE.UTF-8", "LANG": "de_DE.UTF-8", "TZ": "Asia/Tokyo", "HOME": str(tmp_path)}
    subprocess.run([sys.executable, "-c", ELSEWHERE, there], check=True, env={"PYTHONPATH": ":".join(sys.path), **env})
    assert here.read_bytes() == there.read_bytes()


def test_a_png_is_packed_and_whole(drawn: Picture, tmp_path: Path) -> None:
    picture.save(drawn, tmp_path / "plan.png")
    content = (tmp_path / "plan.png").read_bytes()
    svg = picture.svg(vega.together(drawn))
    width, height = map(int, re.search(r'width="(\d+)" height="(\d+)"', svg).groups())  # type: ignore[union-attr]
    assert struct.unpack(">II", content[16:24]) == (2 * width, 2 * height)
    assert picture.packed(content) == content
    assert len(content) < 200_000


def test_a_chart_of_a_notebook_is_saved_by_its_ending(tmp_path: Path) -> None:
    charts = tierloom.profile("mg-e").charts()
    for chart in charts:
        chart.save(tmp_path / "one.svg")
        assert chart.title in " ".join(words_of(tmp_path / "one.svg"))
    charts[0].save(str(tmp_path / "one.pdf"))
    assert (tmp_path / "one.pdf").read_bytes().startswith(b"%PDF")
    with pytest.raises(
        RequestError, match=r"one\.jpg: `\.jpg` is no kind of picture\nhint: let the name end with \.png"
    ):
        charts[0].save(tmp_path / "one.jpg")
