"""What judges the machine is judged by repetition: two of three fresh attempts decide, and all are written down.

A plugin of pytest; `conftest.py` registers it. It takes tests that are marked `live`, and no others:

- `@pytest.mark.live`: what shows at once to be right is right; after a failure two of three attempts decide.
- `@pytest.mark.live(measures=True)`: two of three attempts decide, always. `record_property(NAME, NUMBER)` in such a
  test puts its figure into the table, where the spread is shown.

The table goes to `build/live.json`, and in words to the end of the output.
"""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from _pytest.runner import runtestprotocol

DECIDE = 2
ATTEMPT = "live attempt"
"""Name of the property of a report that holds one attempt."""
TABLE = Path(os.environ.get("TIERLOOM_LIVE_TABLE", Path(__file__).parent.parent / "build" / "live.json"))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Runs a live test as often as it takes to decide, and reports the attempt that decided."""
    marker = item.get_closest_marker("live")
    if marker is None:
        return None
    measures = bool(marker.kwargs.get("measures"))
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    attempts: list[dict] = []
    reports: list[pytest.TestReport] = []
    while undecided([each["outcome"] for each in attempts], measures=measures):
        reports = attempt(item, nextitem)
        attempts.append(told(reports))
    for report in reports:
        report.user_properties = [*report.user_properties, *((ATTEMPT, json.dumps(each)) for each in attempts)]
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


def undecided(outcomes: list[str], *, measures: bool) -> bool:
    """Whether one more attempt is needed after these."""
    at_once = "skipped" in outcomes or (outcomes == ["passed"] and not measures)
    return not at_once and max(outcomes.count("passed"), outcomes.count("failed")) < DECIDE


def attempt(item: pytest.Item, nextitem: pytest.Item | None) -> list[pytest.TestReport]:
    """Runs a test with fixtures of its own."""
    item.user_properties.clear()
    if hasattr(item, "_initrequest"):
        item._initrequest()
    return runtestprotocol(item, nextitem=nextitem, log=False)


def told(reports: list[pytest.TestReport]) -> dict:
    """One attempt: how it ended, how long it took, the load beside it, and what it measured."""
    outcomes = {report.outcome for report in reports}
    outcome = next((word for word in ("failed", "skipped") if word in outcomes), "passed")
    figures = {name: value for name, value in reports[-1].user_properties if isinstance(value, int | float)}
    words = next((report.longreprtext for report in reports if report.failed), "")
    return {
        "outcome": outcome,
        "seconds": round(sum(report.duration for report in reports), 2),
        "load": round(os.getloadavg()[0], 2),
        **({"figures": figures} if figures else {}),
        **({"said": words.strip().splitlines()[-1][:300]} if words.strip() else {}),
    }


class Table:
    """Collects what was told of every live test; in the process that prints, whoever ran it."""

    def __init__(self) -> None:
        self.rows: dict[str, list[dict]] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keeps the attempts of a test."""
        told_here = [json.loads(value) for name, value in report.user_properties if name == ATTEMPT]
        if told_here:
            self.rows[report.nodeid] = told_here

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Writes the table, and says what was not plain."""
        if not self.rows:
            return
        rows = [{"test": test, "verdict": verdict(tries), "attempts": tries} for test, tries in self.rows.items()]
        TABLE.parent.mkdir(parents=True, exist_ok=True)
        TABLE.write_text(json.dumps({"machine": machine(), "date": time.strftime("%F"), "tests": rows}, indent=1))
        counts = {word: sum(row["verdict"] == word for row in rows) for word in ("passed", "failed", "skipped")}
        terminalreporter.section(f"live on {machine()['processor']}, {machine()['cpus']} CPUs: {counts}")
        for line in remarkable(rows):
            terminalreporter.write_line(line)


def verdict(attempts: list[dict]) -> str:
    """What the attempts say: that of the last, which decided."""
    return str(attempts[-1]["outcome"])


def remarkable(rows: list[dict]) -> Iterator[str]:
    """Lines for tests that took more than one attempt, or measured something."""
    for row in rows:
        outcomes = "/".join(each["outcome"] for each in row["attempts"])
        figures: dict[str, list[float]] = {}
        for each in row["attempts"]:
            for name, value in each.get("figures", {}).items():
                figures.setdefault(name, []).append(value)
        spread = ", ".join(f"{name} {min(all_):.4g} to {max(all_):.4g}" for name, all_ in figures.items())
        if len(row["attempts"]) > 1 or spread:
            yield f"{outcomes}  {row['test']}  {spread}".rstrip()


def machine() -> dict[str, object]:
    """What ran the tests."""
    cpuinfo = Path("/proc/cpuinfo").read_text(encoding="utf-8") if Path("/proc/cpuinfo").exists() else ""
    models = [line.partition(":")[2].strip() for line in cpuinfo.splitlines() if line.startswith("model name")]
    return {
        "processor": models[0] if models else platform.processor(),
        "cpus": os.cpu_count(),
        "kernel": platform.release(),
        "load": round(os.getloadavg()[0], 2),
    }
