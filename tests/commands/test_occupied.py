"""What somebody else wrote is never replaced: a verb writes over files of the kind that it writes, and no others."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from support import Tierloom

from tierloom.commands import occupied

SOURCE = "int main(void) { return 0; }\n"

WRITERS = {
    "plan mg-e --machine liu-a -o {}": "plan",
    "plan mg-e --machine liu-a --html {}": "report",
    "plan mg-e --machine liu-a --plot {}.png": "PNG picture",
    "machine show liu-a --plot {}.svg": "SVG picture",
    "machine show liu-a --plot {}.pdf": "PDF picture",
    "machine export liu-a --hwloc -o {}": "hwloc topology",
    "machine export liu-a --toml -o {}": "machine",
    "machine import liu-a.xml -o {}": "machine",
    "machine measure --quick -o {}": "machine",
    "trace import lackey.txt --format lackey -o {}": "trace",
    "expand --write-set {}": "parameter set",
    "expand calibrate --measured h200 -o {}": "parameter set",
    "offload infer --model opt-66b --gpu a10 --machine liu-a --prompt 512 --emit flexgen -o {}": "plan for flexgen",
    "offload infer --model opt-66b --gpu a10 --machine liu-a --prompt 512 --emit vllm -o {}": "plan for vllm",
    "offload infer --model opt-66b --gpu a10 --machine liu-a --prompt 512 --emit deepspeed -o {}": "plan for deepspeed",
    "offload infer --model opt-66b --gpu a10 --machine liu-a --prompt 512 --emit lmcache -o {}": "plan for lmcache",
    "offload infer --model opt-66b --gpu a10 --machine liu-a --prompt 512 --emit tierloom-plan -o {}": "plan",
    "capacity measure redis --data 1MiB --memory 1MiB -o {}": "table of runs",
    "report liu-a -o {}": "report",
    "analyse some.recording -o {}": "profile",
    "profile -o {} -- true": "profile",
    "validate --plot {}.svg -- true": "SVG picture",
}
"""Commands that write, with ``{}`` where the file goes, and what they write."""

WAITS = ("machine measure", "trace", "capacity", "analyse", "profile", "validate")
"""What takes minutes or other programs: only the refusal is tried."""


@pytest.fixture(autouse=True)
def sources(folder: Path, tierloom: Tierloom) -> Path:
    assert tierloom("machine", "export", "liu-a", "--hwloc", "-o", "liu-a.xml").exit_code == 0
    for name in ("lackey.txt", "some.recording", "memory.c"):
        (folder / name).write_text(SOURCE)
    return folder


@pytest.mark.parametrize(("words", "kind"), WRITERS.items())
def test_a_file_of_another_kind_stays(tierloom: Tierloom, folder: Path, words: str, kind: str) -> None:
    (path,) = [word.replace("{}", "copy.c") for word in shlex.split(words) if "{}" in word]
    (folder / path).write_text(SOURCE)
    result = tierloom(*shlex.split(words.replace("{}", "copy.c")))
    assert result.exit_code == 2, result.stderr
    assert f"{path} exists and is no {kind}" in " ".join(result.stderr.split())
    assert "hint: choose another name with -" in result.stderr
    assert (folder / path).read_text() == SOURCE


@pytest.mark.parametrize("words", [words for words in WRITERS if not words.startswith(WAITS)])
def test_a_file_of_the_same_kind_is_written_again(tierloom: Tierloom, folder: Path, words: str) -> None:
    for _ in range(2):
        result = tierloom(*shlex.split(words.replace("{}", "mine.out")))
        assert result.exit_code == 0, result.stderr
    assert [path for path in folder.iterdir() if path.name.startswith("mine.out")]


@pytest.mark.parametrize(
    ("default", "words"),
    [
        ("mg-e.plan.toml", "plan mg-e --machine liu-a"),
        ("liu-a.toml", "machine import liu-a.xml"),
        ("cxl-share.sweep", "sweep cxl-share"),
        ("report.html", "report liu-a"),
        ("demo/report.html", "demo"),
        ("lackey.npy", "trace import lackey.txt --format lackey"),
    ],
)
def test_a_default_name_is_looked_at_as_well(tierloom: Tierloom, folder: Path, default: str, words: str) -> None:
    (folder / default).parent.mkdir(exist_ok=True)
    (folder / default).write_text(SOURCE)
    result = tierloom(*words.split())
    assert result.exit_code == 2, result.stderr
    assert f"{default} exists and is no" in result.stderr
    assert (folder / default).read_text() == SOURCE


def test_a_folder_of_others_gets_no_results(tierloom: Tierloom, folder: Path) -> None:
    (folder / "src").mkdir()
    (folder / "src" / "study.py").write_text("")
    result = tierloom("sweep", "cxl-share", "-o", "src")
    assert result.exit_code == 2
    assert "src exists and is no sweep" in result.stderr
    assert [path.name for path in (folder / "src").iterdir()] == ["study.py"]


def test_what_is_empty_or_a_device_may_be_written(folder: Path) -> None:
    (folder / "empty").write_text("")
    (folder / "folder").mkdir()
    for path in (folder / "empty", folder / "none", Path("/dev/null")):
        assert all(occupied.is_free(path, kind) for kind in occupied.FILES)
    assert all(occupied.is_free(folder / "folder", kind) for kind in occupied.FOLDERS)
    assert not occupied.is_free(folder / "memory.c", "table of runs")


def test_a_trace_is_known(tierloom: Tierloom, folder: Path) -> None:
    (folder / "lackey.txt").write_text("I  04000000,3\n L 1ffeffe7e0,8\n S 1ffeffe7e0,8\n")
    for _ in range(2):
        assert tierloom("trace", "import", "lackey.txt", "--format", "lackey").exit_code == 0
    assert not occupied.is_free(folder / "lackey.npy", "plan")
