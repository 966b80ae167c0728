"""How a program ended is told in words, too: who reads only the table must learn that it is of a program that died."""

from __future__ import annotations

from pathlib import Path

import pytest
from unharmed.building import built
from unharmed.harness import observe
from unharmed.ways import TYPED


@pytest.mark.live
@pytest.mark.parametrize(("end", "name"), [("segv", "SIGSEGV"), ("kill", "SIGKILL"), ("abort", "SIGABRT")])
def test_a_signal_is_told_by_its_name(end: str, name: str, place: Path) -> None:
    told = observe(TYPED[0], [str(built("endings.c")), end], place).stderr.decode()
    assert name in told, f"not a word of {name} among {len(told.splitlines())} lines on stderr"
