"""The report in a real browser: Chromium without a screen, driven through its own driver.

One browser serves the whole file. It opens the page from disk, so whatever the page fetched would fail.
"""

from __future__ import annotations

import csv
import importlib.util
import json
from pathlib import Path

import pytest
from browser import DESK, PHONE, Browser

from tierloom import Profile
from tierloom.report.pages import html_file, sources

pytestmark = [
    pytest.mark.slow,
    pytest.mark.xdist_group("report"),
    pytest.mark.timeout(1200),
    pytest.mark.needs("chromium", "chromedriver"),
]


@pytest.fixture(scope="module")
def opened(browser: Browser, page: Path) -> Browser:
    """A fresh view of the page at a desk, in the light."""
    browser.complaints()
    browser.open(page)
    return browser


BOXES = """
return [...document.querySelectorAll('.chart')].map((chart) => {
  const drawn = chart.querySelector('svg.marks, canvas.marks');
  const box = drawn ? drawn.getBoundingClientRect() : {width: 0, height: 0};
  return {name: chart.dataset.name, width: box.width, height: box.height, room: chart.clientWidth,
          marks: drawn && drawn.tagName === 'svg' ? drawn.querySelectorAll('path, rect, line, text').length : 99};
});
"""


def test_it_opens_from_disk_with_nothing_to_complain_about(opened: Browser) -> None:
    assert opened.complaints() == []
    assert opened.run("return performance.getEntriesByType('resource').map((each) => each.name)") == []


def test_every_chart_is_there_and_fits(opened: Browser) -> None:
    boxes = opened.run(BOXES)
    assert len(boxes) > 30
    for box in boxes:
        assert box["width"] > 200, box
        assert box["height"] > 40, box
        assert box["width"] <= box["room"] + 1, box
        assert box["marks"] > 4, box


def test_every_chart_has_a_table_of_its_data(opened: Browser) -> None:
    rows = opened.run(
        "return [...document.querySelectorAll('figure')]"
        ".map((each) => each.querySelectorAll('details.data tbody tr').length)"
    )
    assert len(rows) > 30
    assert all(rows)


def test_all_data_can_be_shown_at_once(opened: Browser) -> None:
    shut = "[...document.querySelectorAll('details.data')].filter((each) => !each.open).length"
    assert opened.run(f"return {shut}") > 30
    opened.run("document.getElementById('tables').click()")
    assert opened.run(f"return {shut}") == 0
    opened.run("document.getElementById('tables').click()")
    assert opened.run(f"return {shut}") > 30


def test_everything_fits_a_telephone(browser: Browser, page: Path) -> None:
    browser.complaints()
    browser.open(page, PHONE)
    assert browser.run("return document.documentElement.scrollWidth") <= PHONE[0]
    boxes = browser.run(BOXES)
    assert len(boxes) > 30
    for box in boxes:
        assert 200 < box["width"] <= box["room"] + 1, box
    assert browser.complaints() == []


def test_long_names_fit_a_telephone(browser: Browser, results: Path, tmp_path: Path) -> None:
    document = json.loads((results / "app.profile" / "profile.json").read_text())
    for at, item in enumerate(document["objects"]):
        item["name"] = f"make_a_rather_long_solver_field_name_{at}<Mesh<double>, 3>@the/solver/of/fields.cpp:{at}"
    document["phases"] = []
    page = tmp_path / "long.html"
    page.write_text(html_file.render([sources.of_profile(Profile(json.dumps(document)))]), encoding="utf-8")
    browser.open(page, PHONE)
    assert browser.run("return document.documentElement.scrollWidth") <= PHONE[0]


CUT = """
const within = (inner, outer) => inner.left >= outer.left - 1 && inner.right <= outer.right + 1
  && inner.top >= outer.top - 1 && inner.bottom <= outer.bottom + 1;
return [...document.querySelectorAll('.chart svg.marks')].flatMap((chart) => [...chart.querySelectorAll('text')]
  .filter((text) => getComputedStyle(text).opacity !== '0' && text.textContent)
  .filter((text) => !within(text.getBoundingClientRect(), chart.getBoundingClientRect()))
  .map((text) => `${chart.closest('.chart').dataset.name}: ${text.textContent}`));
"""


@pytest.mark.parametrize("size", [DESK, PHONE])
def test_no_word_of_a_chart_is_cut(browser: Browser, page: Path, size: tuple[int, int]) -> None:
    browser.open(page, size)
    assert browser.run(CUT) == []


@pytest.fixture
def few(browser: Browser, short: Path) -> Browser:
    """A fresh view of a page with a few charts of each sort."""
    browser.complaints()
    browser.open(short)
    return browser


def test_the_theme_can_be_changed_is_remembered_and_charts_follow(few: Browser, short: Path) -> None:
    ink = "getComputedStyle(document.querySelector('.chart svg.marks .role-axis-label text')).fill"
    paper = "getComputedStyle(document.body).backgroundColor"
    before = few.run(f"return [{ink}, {paper}]")
    few.run("document.getElementById('theme').click()")
    few.drawn()
    assert few.run("return document.documentElement.dataset.theme") == "dark"
    assert all(new != old for new, old in zip(few.run(f"return [{ink}, {paper}]"), before, strict=True))
    few.driver.get(short.as_uri())
    assert few.run("return document.documentElement.dataset.theme") == "dark"
    few.run("document.getElementById('theme').click()")
    few.drawn()
    assert few.run(f"return [{ink}, {paper}]") == before
    assert few.complaints() == []


def test_the_keyboard_reaches_the_buttons_and_works_them(few: Browser) -> None:
    from selenium.webdriver.common.keys import Keys

    reached = []
    for _ in range(3):
        few.press(Keys.TAB)
        reached.append(few.run("return document.activeElement.id || document.activeElement.className"))
    assert reached == ["skip", "tables", "theme"]
    few.press(Keys.ENTER)
    assert few.run("return document.documentElement.dataset.theme") == "dark"
    few.drawn()
    few.press(Keys.TAB)
    assert few.run("return document.activeElement.closest('nav') !== null")
    unreachable = "[...document.querySelectorAll('.scroll')].filter((each) => each.tabIndex !== 0).length"
    assert few.run(f"return {unreachable}") == 0


@pytest.mark.parametrize(("theme", "size"), [("light", DESK), ("dark", DESK), ("dark", PHONE)])
def test_it_follows_the_system(browser: Browser, short: Path, theme: str, size: tuple[int, int]) -> None:
    browser.complaints()
    browser.open(short, size, theme)
    assert browser.run("return document.documentElement.dataset.theme") == theme
    assert browser.run("return document.documentElement.scrollWidth") <= size[0]
    assert browser.complaints() == []


FRAMES = """
const chart = document.querySelector('[data-name="objects-by-call-stack"] svg.marks');
const frames = [...chart.querySelectorAll('.mark-rect.frame path')];
"""


def test_a_frame_of_the_flame_graph_widens_when_it_is_clicked(few: Browser) -> None:
    widths = f"{FRAMES} return frames.map((each) => each.getBBox().width);"
    before = few.run(widths)
    assert min(before) < max(before) / 2
    narrowest = few.run(
        f"{FRAMES} const least = frames.reduce((a, b) => (b.getBBox().width < a.getBBox().width ? b : a));"
        "least.scrollIntoView({block: 'center', behavior: 'instant'}); return least;"
    )
    narrowest.click()
    wide = max(before) - 5
    few.wait(f"(() => {{ {widths} }})().filter((width) => width > {wide}).length > {sum(w > wide for w in before)}")


def test_a_frame_of_the_flame_graph_widens_from_the_keyboard(few: Browser) -> None:
    from selenium.webdriver.common.keys import Keys

    widths = f"{FRAMES} return frames.map((each) => each.getBBox().width);"
    whole = max(few.run(widths)) - 5
    before = sum(width > whole for width in few.run(widths))
    few.run("document.querySelector('[data-name=objects-by-call-stack] select[name=widened]').focus()")
    few.press(Keys.END)
    few.wait(f"(() => {{ {widths} }})().filter((width) => width > {whole}).length > {before}")
    few.press(Keys.HOME)
    few.wait(f"(() => {{ {widths} }})().filter((width) => width > {whole}).length === {before}")
    assert few.complaints() == []


AXE = """
const done = arguments[arguments.length - 1];
const where = (each) => each.nodes.slice(0, 3).map((node) => node.target.join(' ')).join(', ');
axe.run(document, {resultTypes: ['violations']}).then((told) => done(told.violations.map((each) =>
  `${each.impact} ${each.id}: ${each.help}: ${where(each)}`)));
"""
SERIOUS = ("serious", "critical")


def axe() -> str:
    """The script of axe-core, which a package of Python's brings."""
    package = importlib.util.find_spec("selenium_axe_python")
    assert package is not None
    assert package.origin is not None
    return (Path(package.origin).parent / "axe-core" / "axe.min.js").read_text(encoding="utf-8")


def barriers(browser: Browser) -> list[str]:
    """What axe-core finds by WCAG and its own good practice."""
    browser.run(axe())
    return browser.driver.execute_async_script(AXE)


@pytest.mark.parametrize(("theme", "size"), [("light", DESK), ("dark", DESK), ("light", PHONE)])
def test_nobody_is_shut_out(browser: Browser, short: Path, theme: str, size: tuple[int, int]) -> None:
    browser.open(short, size, theme)
    assert not [each for each in barriers(browser) if each.startswith(SERIOUS)]


@pytest.mark.long
@pytest.mark.parametrize(("theme", "size"), [("light", DESK), ("dark", DESK), ("light", PHONE)])
def test_nobody_is_shut_out_of_any_kind_of_result(
    browser: Browser, page: Path, theme: str, size: tuple[int, int]
) -> None:
    browser.open(page, size, theme)
    assert not [each for each in barriers(browser) if each.startswith(SERIOUS)]


def test_a_barrier_is_found(few: Browser) -> None:
    few.run("document.querySelector('h1').insertAdjacentHTML('afterend', '<img src=data:,><button></button>')")
    few.run("document.querySelector('h1').style.color = '#ccc'")
    found = {each.split()[1] for each in barriers(few) if each.startswith(SERIOUS)}
    assert found >= {"image-alt:", "button-name:", "color-contrast:"}


def test_a_long_table_is_saved_unpacked(browser: Browser, results: Path, tmp_path: Path) -> None:
    """The file is packed in the page, and a reader gets CSV."""
    document = json.loads((results / "app.profile" / "profile.json").read_text())
    document["objects"] += [{**document["objects"][0], "name": f"o{index}"} for index in range(200)]
    page = tmp_path / "long.html"
    page.write_text(html_file.render([sources.of_profile(Profile(json.dumps(document)))]), encoding="utf-8")
    browser.open(page)
    behaviour = {"behavior": "allow", "downloadPath": str(tmp_path)}
    browser.driver.execute_cdp_cmd("Browser.setDownloadBehavior", behaviour)
    browser.run("document.querySelector('.tables a.packed').click()")
    browser.wait_for(lambda: list(tmp_path.glob("*.csv")))
    (saved,) = tmp_path.glob("*.csv")
    rows = list(csv.DictReader(saved.read_text(encoding="utf-8").splitlines()))
    assert {row["object"] for row in rows} == {item["name"] for item in document["objects"]}
    assert browser.complaints() == []


def test_the_slider_moves_objects_and_the_time(browser: Browser, page: Path) -> None:
    browser.open(page)
    title = "document.querySelector('[data-name^=which-objects-are-in] .role-title-text text').textContent"
    before = browser.run(f"return {title}")
    browser.run(
        "const slider = document.querySelector('[data-name^=which-objects-are-in] input[type=range]');"
        "slider.value = slider.min; slider.dispatchEvent(new Event('input'));"
    )
    browser.wait(f"{title} !== {json.dumps(before)}")


def test_printing_leaves_out_what_paper_cannot_do(browser: Browser, short: Path) -> None:
    browser.open(short, theme="dark")
    browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    shown = "return ['nav', '.tools'].map((each) => getComputedStyle(document.querySelector(each)).display)"
    assert browser.run(shown) == ["none", "none"]
    assert browser.run("return getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
