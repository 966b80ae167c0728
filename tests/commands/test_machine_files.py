"""`tierloom machine import` and `export`: what is written, what is said, and how it ends."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support import Tierloom

import tierloom as package

CURVE = "40000\t158\n18300\t119\n320\t107\n"


@pytest.fixture(autouse=True)
def in_an_empty_folder(folder: Path) -> Path:
    return folder


def test_a_machine_goes_out_and_comes_back(tierloom: Tierloom, folder: Path) -> None:
    sent = tierloom("machine", "export", "liu-a", "--hwloc", "-o", "liu-a.xml")
    assert sent.exit_code == 0
    assert "lstopo -i liu-a.xml" in sent.stderr
    back = tierloom("machine", "import", "liu-a.xml", "--name", "again")
    assert back.exit_code == 0
    assert back.stdout.startswith("again: ")
    assert "next: tierloom machine show again.toml --sources" in back.stderr
    assert package.Machine.load(folder / "again.toml").data["memories"][2]["name"] == "cxl"


def test_the_export_goes_to_stdout_by_default(tierloom: Tierloom) -> None:
    assert tierloom("machine", "export", "liu-a", "--hwloc").stdout.startswith("<?xml")


def test_json_is_the_machine_with_its_warnings(tierloom: Tierloom, folder: Path) -> None:
    (folder / "curves").mkdir()
    (folder / "curves/bwlat_100.txt").write_text(CURVE)
    words = ("0:0=curves", "--cores", "8", "--node", "0=cxl:128GiB", "--json", "-o", "mine.toml")
    result = tierloom("machine", "import", *words)
    document = json.loads(result.stdout)
    assert document["machine"]["name"] == "curves"
    assert "read as ns" in document["warnings"][0]["what"]
    assert "warning: " in result.stderr
    assert package.Machine.load(folder / "mine.toml").data == document["machine"]


def test_an_imported_machine_can_be_planned_for(tierloom: Tierloom) -> None:
    tierloom("machine", "export", "liu-b", "--hwloc", "-o", "liu-b.xml")
    tierloom("machine", "import", "liu-b.xml", "--name", "b")
    assert tierloom("plan", "mg-e", "--machine", "b.toml", "--threads", "8").exit_code == 0


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("import", "nowhere.xml"), "nowhere.xml: No such file"),
        (("import", "/", "--node", "0"), "write for example 2=cxl:128GiB"),
        (("import", "/", "--node", "0=flash:1GiB"), "no kind of memory `flash`"),
        (("import",), "SOURCE"),
        (("export", "liu-a"), "--hwloc"),
        (("export", "liu-z", "--hwloc"), "did you mean"),
    ],
)
def test_a_wrong_request_ends_with_2(tierloom: Tierloom, words: tuple[str, ...], told: str) -> None:
    result = tierloom("machine", *words)
    assert result.exit_code == 2, result.stderr
    assert told in " ".join(result.stderr.split())
