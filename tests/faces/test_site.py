"""The documentation as a site: it builds without a warning, with every document and the whole public API."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from support import ROOT

import tierloom


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_the_site_builds_without_a_warning_and_has_everything(tmp_path: Path) -> None:
    """A warning is a link that leads nowhere, a document in no table of contents, or a docstring that is not read."""
    words = ["-W", "--keep-going", "-q", "-b", "html", "-c", ROOT / "docs" / "site", ROOT, tmp_path]
    done = subprocess.run([sys.executable, "-m", "sphinx", *words], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    for document in [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")]:
        assert (tmp_path / document.relative_to(ROOT)).with_suffix(".html").is_file()
    api = (tmp_path / "docs" / "site" / "api.html").read_text(encoding="utf-8")
    missing = [name for name in tierloom.__all__ if f'id="tierloom.{name}"' not in api]
    assert set(missing) == {"TierloomError", *tierloom.ROOMS}, "errors stand together, rooms have parts of their own"
    assert 'id="tierloom.errors.TierloomError"' in api
