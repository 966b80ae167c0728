"""Pictures of a terminal in the documents are what it shows, and are for everybody."""

from __future__ import annotations

import re
import subprocess
import tempfile
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from support import ROOT
from terminal import Terminal
from terminal_pictures import COLUMNS, PICTURES, Picture, drawn, prompt, screen, sent

SVG = "http://www.w3.org/2000/svg"
DOCUMENTS = [ROOT / "README.md", *ROOT.glob("docs/*.md")]

each_picture = pytest.mark.parametrize("picture", PICTURES, ids=lambda picture: picture.name)


@each_picture
def test_a_picture_is_what_the_command_shows_today(picture: Picture) -> None:
    kept = picture.file.read_text(encoding="utf-8")
    assert drawn(picture) == kept, "draw them again, and look at them: python tools/terminal_pictures.py"


@each_picture
def test_a_picture_can_be_read_without_network_or_eyes(picture: Picture) -> None:
    text = picture.file.read_text(encoding="utf-8")
    assert re.findall(r"\w+://[^\"' )]*", text) == [SVG]
    assert not re.findall(r"url\(|href|@import|<script|<image", text)
    root = ET.fromstring(text)
    assert root.attrib["role"] == "img"
    assert root.attrib["aria-label"] == root.findtext(f"{{{SVG}}}title") == picture.command


@each_picture
def test_a_picture_shows_nothing_of_the_machine_that_drew_it(picture: Picture) -> None:
    text = picture.file.read_text(encoding="utf-8")
    assert not [place for place in (ROOT, Path.home(), tempfile.gettempdir()) if f"{place}/" in text]


@each_picture
def test_a_document_has_the_picture_with_words_and_its_command_to_copy(picture: Picture) -> None:
    pages = [path.read_text(encoding="utf-8") for path in DOCUMENTS]
    (page,) = (page for page in pages if f"{picture.name}.svg)" in page)
    (words,) = re.findall(rf"!\[([^\]]+)\]\((?:docs/)?{picture.name}\.svg\)", page)
    assert len(words.split()) > 8
    assert not [figure for figure in re.findall(r"\d[\d.]*", words) if figure not in picture.file.read_text("utf-8")]
    assert f"\n$ {picture.command}\n" in page


def test_no_row_is_wider_than_the_terminal() -> None:
    for picture in PICTURES:
        assert all(len(row) <= COLUMNS for row in prompt(picture.command))
    words = f"tierloom plan {'x' * 60} --nodes {'y' * 10} --fast-memory 50%"
    assert [row.plain for row in prompt(words)][1:] == ["    --fast-memory 50%"]


def test_what_was_erased_is_not_on_the_screen() -> None:
    spinner = "\x1b[?25l\x1b[32m-\x1b[0m planning\r\x1b[2K\x1b[32m|\x1b[0m planning\r\n\x1b[?25h\r\x1b[1A\x1b[2K"
    assert screen(f"before\r\n{spinner}done\r\n") == ["before", "done", ""]
    assert screen("\x1b[1mNUMA\x1b[0m, 4K\r\n1 %\r2 %") == ["\x1b[1mNUMA\x1b[0m, 4K", "2 %"]


def test_a_command_has_a_terminal_of_its_own(tmp_path: Path) -> None:
    told = sent(Terminal(tmp_path), "stty size <&1; echo $TERM $NO_COLOR")
    assert told.split() == ["60", str(COLUMNS), "xterm-256color"]


def test_a_number_has_one_colour(tmp_path: Path) -> None:
    told = sent(Terminal(tmp_path), "tierloom plan mg-e --machine liu-a")
    assert "\x1b[1m" in told
    assert not re.findall(r"\d\.?\x1b\[0m\d", told)


def test_a_command_that_fails_is_no_picture(tmp_path: Path) -> None:
    with pytest.raises(subprocess.CalledProcessError):
        sent(Terminal(tmp_path), "tierloom plan nothing")
