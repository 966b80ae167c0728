"""What pages show of an output."""

from __future__ import annotations

from pathlib import Path

import pytest
from terminal import Terminal, parts, shortened

TEXT = "first\nsecond\n\nthird   \nfourth\nfifth\n"


def test_parts_say_what_they_leave_out() -> None:
    assert parts(TEXT, ("second", 1), ("fourth", 1)) == "[1 more line]\nsecond\n[2 more lines]\nfourth\n[1 more line]\n"
    assert parts(TEXT, ("first", 2), ("third", 3)) == "first\nsecond\nthird\nfourth\nfifth\n"


def test_a_part_that_is_not_there_is_no_page() -> None:
    with pytest.raises(ValueError, match="no line begins with `sixth`"):
        parts(TEXT, ("sixth", 1))


def test_a_short_output_is_shown_whole() -> None:
    assert shortened(TEXT, 3) == "first\nsecond\n\nthird\nfourth\nfifth\n"
    assert shortened(TEXT, 1) == "first\n[4 more lines]\nfifth\n"


def test_a_terminal_keeps_what_failed_and_no_places(tmp_path: Path) -> None:
    terminal = Terminal(tmp_path)
    assert terminal.type("echo $PWD/here").text == "here\n"
    terminal.type("exit 3")
    assert terminal.failed == ["exit 3"]
