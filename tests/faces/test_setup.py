"""Setting up: what is refused before anything is built, which packages are asked for, and what documents tell."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from programs import real
from support import ROOT
from unharmed import debian as unharmed_programs

from tierloom.debian import packages, sources
from tierloom.extras import EXTRAS

pytestmark = pytest.mark.smoke

CHECK = ROOT / "tools" / "check_toolchain.sh"
RUST = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["rust-version"]


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """A PATH with nothing on it but what the script itself calls, and programs made up here."""
    for program in ("dirname", "sed", "sort", "head", "sh"):
        (tmp_path / program).symlink_to(f"/usr/bin/{program}")
    programs(tmp_path, cargo="echo cargo 1.99.0", **{"g++": "true"})
    (tmp_path / "python3").symlink_to(sys.executable)
    return tmp_path


def programs(folder: Path, **bodies: str) -> None:
    for name, body in bodies.items():
        (folder / name).write_text(f"#!/bin/sh\n{body}\n")
        (folder / name).chmod(0o755)


def checked(folder: Path, python: str = "python3") -> str:
    done = subprocess.run([CHECK, python], env={"PATH": str(folder)}, capture_output=True, text=True, check=False)
    assert done.returncode == (1 if done.stderr else 0)
    assert done.stdout == ""
    return done.stderr


def test_a_machine_with_everything_is_taken_without_a_word(machine: Path) -> None:
    assert checked(machine) == ""


@pytest.mark.parametrize("version", ["1.63.0", f"{RUST.rpartition('.')[0]}.{int(RUST.rpartition('.')[2]) - 1}.9"])
def test_an_old_cargo_is_refused_with_the_version_wanted_and_where_to_get_it(machine: Path, version: str) -> None:
    programs(machine, cargo=f"echo 'cargo {version} (0123abcd 2023-01-01)'")
    told = checked(machine)
    assert told.startswith(f"error: cargo is version {version}, and Tierloom takes {RUST} or newer\nhint: ")
    assert "https://rustup.rs" in told


def test_the_version_wanted_itself_is_taken(machine: Path) -> None:
    programs(machine, cargo=f"echo 'cargo {RUST}.0 (0123abcd 2025-01-01)'")
    assert checked(machine) == ""


def test_an_old_python_is_refused(machine: Path) -> None:
    programs(machine, python3_old="echo Python 3.10.12")
    assert "python3_old is Python 3.10.12, and Tierloom takes 3.11 or newer\nhint: " in checked(machine, "python3_old")


def test_a_python_without_venv_names_the_package(machine: Path) -> None:
    programs(machine, python3_bare='[ "$1" = --version ] && echo Python 3.11.2')
    assert "makes no virtual environments\nhint: apt-get install python3-venv" in checked(machine, "python3_bare")


@pytest.mark.parametrize(
    ("program", "told"),
    [
        ("cargo", "there is no cargo here"),
        ("g++", "there is no g++ here\nhint: apt-get install g++"),
        ("python3", "there is no Python here\nhint: apt-get install python3 python3-venv"),
    ],
)
def test_what_is_missing_is_named(machine: Path, program: str, told: str) -> None:
    (machine / program).unlink()
    assert told in checked(machine)


def test_every_package_says_what_it_serves_once() -> None:
    names = [package.name for package in packages.listed()]
    assert len(names) == len(set(names))
    assert all(package.serves for package in packages.listed())


EVERYWHERE = {"/usr/bin/python3", "bash", "cc", "objcopy", "rustc", "sed", "setpriv", "tar"}
"""What every Debian has, or comes with one of the compilers."""


def test_every_program_that_a_test_needs_comes_with_a_package_of_the_list() -> None:
    """What stands in no list is installed by nothing, and its tests do not run on a fresh machine."""
    texts = [path.read_text(encoding="utf-8") for path in (ROOT / "tests").glob("**/*.py")]
    calls = [call for text in texts for call in re.findall(r"(?:mark\.needs|lacking)\(([^()]*)\)", text)]
    named = {word for call in calls for word in re.findall(r'"([^"]+)"', call)}
    named |= {need for program in unharmed_programs.ALL for need in program.needs or program.command[:1]}
    named |= {need for program in real.PROGRAMS for need in program.needs or program.command[:1]}
    optional = {"Rscript", "octave-cli", "ffmpeg"}  # tests/allowed_skips.toml
    of_debian = {need for need in named if not need.startswith("module:")} - EVERYWHERE - optional
    assert {need for need in of_debian if packages.bringing(need) is None} == set()
    assert {"redis-server", "guile", "/usr/bin/convert"} <= of_debian


@pytest.mark.parametrize("group", sorted({package.group for package in packages.listed()}))
def test_the_document_tells_of_every_package_what_the_list_does(group: str) -> None:
    told = (ROOT / "docs/setup.md").read_text().splitlines()
    for package in packages.listed():
        if package.group == group:
            assert f"| `{package.name}` | {package.serves} |" in told


@pytest.mark.parametrize("extra", EXTRAS)
def test_the_document_tells_of_every_extra(extra: str) -> None:
    told = (ROOT / "docs/setup.md").read_text()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    brought = ", ".join(wanted.partition(">")[0] for wanted in project[extra])
    assert f"| `tierloom[{extra}]` | {brought} | {EXTRAS[extra]} |" in told.splitlines()


def test_the_hints_of_doctor_are_the_list(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from tierloom.doctor import CHECKS

    monkeypatch.setenv("PATH", str(tmp_path))
    (found,) = [check(Path("/")) for check in CHECKS if check.name == "valgrind"]
    assert (found.serves, found.remedy) == ("profile --count, trace import", packages.named("valgrind").hint)


def test_missing_packages_are_told_and_fail_nothing(tmp_path: Path) -> None:
    words = [sys.executable, ROOT / "tools" / "install_packages.py", "bare", "lab"]
    done = subprocess.run(words, env={"PATH": str(tmp_path)}, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")
    names = " ".join(package.name for package in packages.listed() if package.group in ("lab", "bare"))
    assert done.stderr.startswith(f"packages not installed: {names}\nhint: as root: apt-get install {names}")


TOLD = """\
test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s
test result: ok. 4 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s
SKIPPED [2] tests/a.py:30: gdb is not installed here: apt-get install gdb
SKIPPED [1] tests/b.py:7: gdb is not installed here: apt-get install gdb
===== 10 passed, 3 skipped in 1.50s =====
"""


def test_a_run_on_a_bare_debian_is_counted_with_the_reasons(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", sys.path.copy())
    spec = importlib.util.spec_from_file_location("bare_root", ROOT / "tools" / "bare_root.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert list(module.tally(TOLD)) == [
        "cargo: 7 passed, 0 failed, 1 ignored",
        "10 passed, 3 skipped in 1.50s",
        "skipped 3: gdb is not installed here: apt-get install gdb",
    ]


OLD_FORM = """\
# a comment
deb [arch=amd64 signed-by=/usr/share/keyrings/theirs.gpg] http://mirror.example/debian bookworm main contrib # ours
deb-src http://mirror.example/debian bookworm main
"""

NEW_FORM = """\
Types: deb deb-src
# in between
URIs: http://mirror.example/debian
Suites: trixie trixie-updates
Components: main
Signed-By:
 -----BEGIN PGP PUBLIC KEY BLOCK-----
 .
 mQINBF
 -----END PGP PUBLIC KEY BLOCK-----

Enabled: no
Types: deb
URIs: http://other.example/debian
Suites: trixie
Components: main
"""


def debian(folder: Path, name: str, sources_file: str, text: str, distribution: str = "debian") -> Path:
    """A machine's root with one file of sources."""
    path = folder / "etc/apt" / sources_file
    path.parent.mkdir(parents=True)
    path.write_text(text)
    (folder / "etc/os-release").write_text(f'ID={distribution}\nVERSION_CODENAME="{name}"\n')
    return folder


def test_the_older_form_of_sources_is_read(tmp_path: Path) -> None:
    found = sources.debian(debian(tmp_path, "bookworm", "sources.list", OLD_FORM))
    assert found is not None
    assert (found.uri, found.suite, found.components) == (
        "http://mirror.example/debian",
        "bookworm",
        ("main", "contrib"),
    )
    assert found.of("bookworm-backports").text == (
        "Types: deb\nURIs: http://mirror.example/debian\nSuites: bookworm-backports\nComponents: main\n"
        "Signed-By: /usr/share/keyrings/theirs.gpg\n"
    )


def test_the_newer_form_of_sources_is_read_with_keys_inside(tmp_path: Path) -> None:
    root = debian(tmp_path, "trixie", "sources.list.d/debian.sources", NEW_FORM)
    assert [(each.uri, each.suite) for each in sources.listed(root)] == [
        ("http://mirror.example/debian", "trixie"),
        ("http://mirror.example/debian", "trixie-updates"),
    ]
    found = sources.debian(root)
    assert found is not None
    text = found.of("trixie-backports").text
    assert "Suites: trixie-backports\n" in text
    assert text.endswith(
        "Signed-By: \n -----BEGIN PGP PUBLIC KEY BLOCK-----\n .\n mQINBF\n -----END PGP PUBLIC KEY BLOCK-----\n"
    )
    (root / "etc/apt/sources.list.d/debian.sources").write_text(text)
    assert [each.text for each in sources.listed(root)] == [text]


def test_another_distribution_has_no_mirror_of_debian(tmp_path: Path) -> None:
    assert sources.debian(debian(tmp_path, "noble", "sources.list", OLD_FORM, "ubuntu")) is None


INSIDE = """
import pytest

def test_that_lacks_a_program():
    pytest.skip("no-such-program is not installed here")

def test_that_may_be_skipped():
    pytest.skip("pyspark is not installed")

def test_that_passes():
    pass
"""


@pytest.mark.parametrize(("required", "counts"), [("1", "1 failed, 1 passed, 1 skipped"), ("", "1 passed, 2 skipped")])
def test_a_required_check_that_does_not_run_is_no_green(tmp_path: Path, required: str, counts: str) -> None:
    (tmp_path / "test_inside.py").write_text(INSIDE)
    words = [sys.executable, "-m", "pytest", "-c", "/dev/null", "-p", "required_checks", "-p", "no:cacheprovider", "."]
    variables = {**os.environ, "PYTHONPATH": str(ROOT / "tests"), "TIERLOOM_REQUIRE": required}
    done = subprocess.run(words, cwd=tmp_path, env=variables, capture_output=True, text=True, check=False)
    assert counts in done.stdout
    assert ("required, and did not run: no-such-program is not installed here" in done.stdout) == bool(required)
