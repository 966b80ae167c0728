"""Writes the locks: what uv chooses today for the ranges of ``pyproject.toml``, on every Python that we claim.

``user.txt`` is what `make demo` installs, ``dev.txt`` that and the rest: the same versions, so that an
environment grows from one into the other. ``release.txt`` is what `make release` builds with. None names an index:
where packages come from is the machine's business.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import tomllib
import venv
from pathlib import Path

HERE = Path(__file__).parent
PROJECT = HERE.parent / "pyproject.toml"
UV = "uv==0.13.9"

USER_EXTRAS = ("report",)
"""The demo draws."""

NOT_TESTED = ("spark",)
"""Extras too large for everyone who runs the tests."""

PLATFORM = "platform_machine == 'x86_64' and sys_platform == 'linux'"
"""The one platform that the locks are for; saying so again at each package would only hide the other markers."""

HEADER = "# Written by `make lock`; see README.md in this folder.\n"


def main() -> None:
    """Writes the files."""
    project = tomllib.loads(PROJECT.read_text(encoding="utf-8"))
    oldest = project["project"]["requires-python"].removeprefix(">=")
    tested = [extra for extra in project["project"]["optional-dependencies"] if extra not in NOT_TESTED]
    user = HERE / "user.txt"
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        subprocess.run([f"{folder}/bin/pip", "install", "--quiet", "--disable-pip-version-check", UV], check=True)
        resolve = [f"{folder}/bin/uv", "pip", "compile", "--universal", "--python-version", oldest]
        user.write_text(_locked([*resolve, str(PROJECT)], USER_EXTRAS, ("builder",)), encoding="utf-8")
        resolve += ["--constraint", str(user)]
        developer = _locked([*resolve, str(PROJECT)], tested, ("builder", "developer"))
        (HERE / "dev.txt").write_text(developer, encoding="utf-8")
        (HERE / "release.txt").write_text(_locked(resolve, (), ("release",)), encoding="utf-8")


def _locked(resolve: list[str], extras: list[str] | tuple[str, ...], groups: tuple[str, ...]) -> str:
    """The lock of some extras and groups, each package with the hashes of its files."""
    chosen = [f"--extra={extra}" for extra in extras] + [f"--group={PROJECT}:{group}" for group in groups]
    # One version for every Python where there is one: the same packages, so the same answers.
    plain = [
        "--quiet",
        "--fork-strategy=fewest",
        "--generate-hashes",
        "--no-header",
        "--no-annotate",
        "--no-emit-index-url",
    ]
    found = subprocess.run([*resolve, *plain, *chosen], check=True, stdout=subprocess.PIPE, text=True).stdout
    return HEADER + found.replace(f" ; {PLATFORM}", "").replace(f" and {PLATFORM}", "")


if __name__ == "__main__":
    sys.exit(main())
