"""Figures in the documents are those of the engines: those that they draw, and those that they name in a sentence."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from document_figures import DOCS, FIGURES, draw
from support import ROOT
from terminal_pictures import PICTURES

import tierloom
from tierloom import offload


@pytest.mark.usefixtures("executable")
@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_is_what_is_drawn_today(name: str, tmp_path: Path) -> None:
    assert draw(name, tmp_path).read_bytes() == (DOCS / name).read_bytes(), "python tools/document_figures.py"


def test_every_picture_comes_from_a_tool_or_is_drawn_by_hand() -> None:
    by_hand = {"flow.svg", "cost.svg"}
    measured = {"story.png"}
    known = {*FIGURES, *(picture.file.name for picture in PICTURES), *by_hand, *measured}
    assert {path.name for path in DOCS.iterdir() if path.suffix in {".png", ".svg"}} == known


def text(name: str) -> str:
    return " ".join((ROOT / name).read_text(encoding="utf-8").split())


def test_the_readme_says_what_the_picture_shows() -> None:
    answer = tierloom.plan("cg-e", "liu-a", threads=32, nodes=["ldram", "cxl"], fast_memory="50%")
    best = answer.chosen["prediction"]["time_s"]
    touch, pages = (answer.policy(name)["prediction"]["time_s"] for name in ("local", "interleave:ldram+cxl"))
    said = f"to take {touch / best:.1f} times as long as the best placement, and page interleaving {pages / best:.1f}"
    assert said in text("README.md")
    points = answer.brief["frontier"]
    (little,) = [point for point in points if 0 < point["fast_bytes"] < 2e-3 * answer.profile.footprint_bytes][-2:-1]
    assert "With just 0.1 % of the data in DRAM, it already runs 3 times as fast as with none" in text("README.md")
    assert little["fast_bytes"] / answer.profile.footprint_bytes == pytest.approx(1e-3, rel=0.5)
    assert points[0]["time_s"] / little["time_s"] == pytest.approx(3.1, rel=0.05)


def test_the_readme_says_no_more_than_the_story() -> None:
    said = "first touch is predicted to take more than 1.5 times as long as Tierloom's plan"
    assert said in text("README.md")
    (gain,) = re.findall(r"first touch takes \*\*(\S+) times as long\*\* as the plan", text("docs/story.md"))
    assert float(gain) > 1.5


def test_the_tutorial_for_architects_says_what_the_planner_does() -> None:
    on = tierloom.Machine.load("32 cores, dram 64GiB 100ns 300GB/s, cxl 512GiB 250ns 60GB/s")
    answer = tierloom.plan("cg-e", on, threads=32, max_slowdown="10%")
    assert "a quarter of the DRAM will do" in text("docs/tutorial-architect.md")
    assert answer.chosen["fast_bytes"] / 2**36 == pytest.approx(0.25, abs=0.02)
    assert "would take more than three times as long" in text("docs/tutorial-architect.md")
    assert answer.policy("local")["prediction"]["time_s"] > 3 * answer.chosen["prediction"]["time_s"]


def test_the_tutorial_for_language_models_says_what_the_plan_gains() -> None:
    answer = offload.infer("qwen3-235b-a22b", "a10", "liu-a", users=4)
    ours = answer.plan.tokens_s
    gains = {rival["policy"]: ours / rival["tokens_s"] - 1 for rival in answer.data["policies"]}
    said = f"{gains['first-touch']:.0%} faster than first touch, and {gains['interleave']:.0%} faster than interleaving"
    assert said.replace("%", " %") in text("docs/tutorial-llm.md")
