"""A required check that did not run is no green.

Under ``TIERLOOM_REQUIRE=1`` a skipped test fails, unless its reason is in `allowed_skips.toml`. A plugin of
pytest: `conftest.py` registers it.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Generator
from pathlib import Path
from typing import TypeVar

import pytest

Report = TypeVar("Report", pytest.TestReport, pytest.CollectReport)

REQUIRED = os.environ.get("TIERLOOM_REQUIRE", "") not in ("", "0")
ALLOWED = tomllib.loads(Path(__file__).with_name("allowed_skips.toml").read_text())["allowed"]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Judges what became of a test."""
    return judged((yield))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Judges what became of a file."""
    return judged((yield))


def judged(report: Report) -> Report:
    """The report; a failure where it was skipped and may not be."""
    if REQUIRED and report.skipped and not hasattr(report, "wasxfail"):
        reason = reason_of(report)
        if not allowed(reason):
            report.outcome = "failed"
            report.longrepr = f"required, and did not run: {reason}\nhint: tests/allowed_skips.toml lists what may be"
    return report


def reason_of(report: pytest.TestReport | pytest.CollectReport) -> str:
    """Why it was skipped."""
    words = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    return words.removeprefix("Skipped: ")


def allowed(reason: str) -> bool:
    """Whether a reason is on the list."""
    return any(re.search(each["reason"], reason) for each in ALLOWED)
