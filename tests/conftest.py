"""What all tests share: a quiet environment, and the command line called in this process."""

from __future__ import annotations

import os
from pathlib import Path

import click.testing
import live_judging
import pytest
import required_checks
from hypothesis import settings
from support import ROOT, Tierloom, lacking

from tierloom.commands import main
from tierloom.debian.packages import bringing

# The same cases in every run: a test that fails fails again.
settings.register_profile("house", max_examples=50, derandomize=True, deadline=None)
settings.load_profile("house")


OTHER_RINGS = ("live", "long", "lab")
"""Marks of the tests that `make test` leaves out."""
INSTALLED = ("build", "verbs", "tests")
"""Groups of packages that `make test` installs: a new machine has no others, whatever this one has."""


def installed_for_others(programs: tuple[str, ...]) -> str | None:
    """The first of some programs whose package only other rings install."""
    packages = [package for program in programs if (package := bringing(program)) is not None]
    return next((f"{each.name} is in group `{each.group}`" for each in packages if each.group not in INSTALLED), None)


def pytest_configure(config: pytest.Config) -> None:
    """Where checks are required, one that does not run is no green; what judges the machine is judged by repetition."""
    config.pluginmanager.register(required_checks)
    config.pluginmanager.register(live_judging)
    config.pluginmanager.register(live_judging.Table())


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skips a test whose programs are not on this machine: `@pytest.mark.needs("redis-server")`."""
    is_of_first_ring = not any(item.get_closest_marker(ring) for ring in OTHER_RINGS)
    for marker in item.iter_markers("needs"):
        if is_of_first_ring and (other := installed_for_others(marker.args)):
            pytest.fail(f"{other}: move it to `tests`, or the test to `live`")
        if reason := lacking(*marker.args):
            pytest.skip(reason)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What takes long comes first, so that no processor waits for it alone at the end."""
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)


@pytest.fixture(autouse=True)
def quiet_environment(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Golden output does not depend on who runs the tests, nor on what was measured here."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
    monkeypatch.setenv("COLUMNS", "160")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("LANG", "C.UTF-8")
    monkeypatch.delenv("LD_PRELOAD", raising=False)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty current folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def tierloom() -> Tierloom:
    """Calls `tierloom WORDS…` in this process; verbs that start programs use the real executable."""

    def call(*words: str) -> click.testing.Result:
        return click.testing.CliRunner().invoke(main, [str(word) for word in words], catch_exceptions=False)

    return call


@pytest.fixture(scope="session")
def workloads() -> Path:
    """Folder of our own programs at -O2."""
    path = ROOT / "build" / "workloads" / "O2"
    if not path.is_dir():
        pytest.skip("the workloads are not built: make workloads")
    return path


@pytest.fixture(scope="session")
def executable() -> Path:
    """The installed command."""
    import sys

    path = Path(sys.executable).parent / "tierloom"
    if not os.access(path, os.X_OK):
        pytest.skip("tierloom is not installed: make install")
    return path
