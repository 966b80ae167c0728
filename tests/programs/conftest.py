"""Fixtures of the tests that run programs which nobody here wrote."""

from __future__ import annotations

import shutil

import pytest


@pytest.fixture
def installed(request: pytest.FixtureRequest) -> None:
    """Skips a test whose program is not on this machine: `@pytest.mark.needs("redis-server")`."""
    for marker in request.node.iter_markers("needs"):
        for program in marker.args:
            if shutil.which(program) is None:
                pytest.skip(f"{program} is not installed here; .ci/run installs it")
