"""Every file of `fuzz/corpus` that is a Python reader's is read or refused: what fuzzing found is never found again."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest
from support import ROOT


def _readers() -> ModuleType:
    spec = importlib.util.spec_from_file_location("readers", ROOT / "fuzz/python/readers.py")
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    sys.modules["readers"] = made
    spec.loader.exec_module(made)
    return made


READERS = _readers()
KEPT = [path for target in READERS.TARGETS for path in sorted((READERS.CORPUS / target).iterdir())]


@pytest.mark.parametrize("path", KEPT, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_what_fuzzing_kept_is_read_or_refused(path: Path) -> None:
    READERS.TARGETS[path.parent.name](path.read_bytes())


def test_every_reader_has_a_corpus_that_is_not_large() -> None:
    held = {target: [path.stat().st_size for path in (READERS.CORPUS / target).iterdir()] for target in READERS.TARGETS}
    assert all(held.values())
    assert sum(path.stat().st_size for path in READERS.CORPUS.rglob("*") if path.is_file()) < 2 << 20
