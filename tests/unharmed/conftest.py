"""What the tests of this gate share: a program's behaviour alone is seen twice, then held against every way."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from unharmed.behaviour import Behaviour, differences


@pytest.fixture(scope="session")
def alone() -> Callable[[str, Callable[[], Behaviour]], Behaviour]:
    """The behaviour of a program on its own, by its name; the program runs twice when it is asked for the first time.

    Where one run differs from the other the fault is the case's: nothing can be said of Tierloom by it. `words` is
    whether its stderr must be the same.
    """
    seen: dict[str, Behaviour] = {}

    def call(name: str, observe: Callable[[], Behaviour], *, words: bool = True) -> Behaviour:
        if name not in seen:
            first, second = observe(), observe()
            if found := differences(first, second, words=words):
                pytest.fail("a fault of the case: alone it differs from itself\n" + "\n".join(found))
            seen[name] = first
        return seen[name]

    return call


@pytest.fixture
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where programs run: always the same folder, as its name may be part of what they say. Other users may enter it:
    servers and programs with other rights still have to get in."""
    folder = tmp_path_factory.getbasetemp() / "place"
    for part in (folder, *folder.parents[:3]):
        part.mkdir(exist_ok=True)
        if part.owner() == folder.owner() and part.name.startswith(("pytest", "popen", "place")):
            part.chmod(0o755)
    return folder
