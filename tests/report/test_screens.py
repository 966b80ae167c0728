"""What a reader sees of each kind of result, wide and narrow, light and dark, against pictures that were looked at.

Letters are those of one font, which is on every machine that the tests run on: a reader has others. Where a page should
look otherwise, `--snapshot-update` keeps the new pictures; look at them in `build/report` first.
"""

from __future__ import annotations

from pathlib import Path

import pictures
import pytest
from browser import Browser
from syrupy.assertion import SnapshotAssertion

from tierloom.report.pages import builders, html_file, sources, vega

FONT = "/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf"
CODE = 'ui-monospace, "SFMono-Regular", '
"""Fonts before that of code that the tests have."""
WIDTHS = (1200, 390)
HEIGHT = 800
THEMES = ("light", "dark")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.xdist_group("report"),
    pytest.mark.timeout(1200),
    pytest.mark.needs("chromium", "chromedriver", FONT),
]


@pytest.fixture(scope="module")
def by_kind(results: Path) -> dict[str, sources.Source]:
    """A source of each kind."""
    return {source.kind: source for source in sources.read([str(results)])}


def test_every_kind_of_result_is_looked_at(by_kind: dict[str, sources.Source]) -> None:
    assert set(by_kind) == {*KINDS}
    assert set(builders.BUILDERS) < {*KINDS}


KINDS = [*builders.BUILDERS, "offload-catalog"]
"""The last is what no builder knows."""


@pytest.mark.parametrize("kind", KINDS)
def test_a_page_looks_as_it_did(
    browser: Browser, by_kind: dict[str, sources.Source], snapshot: SnapshotAssertion, tmp_path: Path, kind: str
) -> None:
    page = tmp_path / "page.html"
    page.write_text(in_the_tests_font(html_file.render([by_kind[kind]])), encoding="utf-8")
    pictures.SEEN.mkdir(parents=True, exist_ok=True)
    for width in WIDTHS:
        browser.open(page, (width, HEIGHT))
        for theme in THEMES:
            browser.turn((width, browser.height()), theme)
            seen = browser.picture(width)
            (pictures.SEEN / f"{kind}-{width}-{theme}.png").write_bytes(seen)
            assert seen == snapshot(name=f"{width}-{theme}", extension_class=pictures.Pictures)


PLANTED = {
    "the ranges of times": ("comparison", '"strokeWidth":1.5,"opacity":0.75', '"strokeWidth":1.5,"opacity":0'),
    "the dashes of a line": ("serving", '"strokeDash":[4,3]', '"strokeDash":[1,0]'),
    "the points of a line": ("spill-fit", '"size":60,"opacity":1', '"size":60,"opacity":0'),
    "contrast of text": ("machine", "--soft: ", "--soft: #aab; --once: "),
}
"""What a page may lose, in which kind, and how: the smallest of those that were tried."""


@pytest.mark.parametrize("lost", PLANTED)
def test_what_is_lost_is_seen(browser: Browser, by_kind: dict[str, sources.Source], tmp_path: Path, lost: str) -> None:
    kind, there, gone = PLANTED[lost]
    text = in_the_tests_font(html_file.render([by_kind[kind]]))
    assert there in text
    seen = []
    for told in (text, text.replace(there, gone)):
        (tmp_path / "page.html").write_text(told, encoding="utf-8")
        browser.open(tmp_path / "page.html", (WIDTHS[0], HEIGHT))
        seen.append(pictures.small(browser.picture(WIDTHS[0])))
    assert pictures.off(*seen) > pictures.MOST_OFF


def in_the_tests_font(page: str) -> str:
    fonts = vega.look()["--font"]
    assert fonts in page
    assert CODE in page
    return page.replace(fonts, '"DejaVu Sans"').replace(CODE, "")
