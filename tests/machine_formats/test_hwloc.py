"""hwloc's XML: what we write its own tools read, and what we wrote we read back."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support import works_or_explains

from tierloom import Machine
from tierloom.errors import MachineError
from tierloom.machine_formats import import_machine, to_hwloc

LSTOPO = shutil.which("lstopo-no-graphics")
ANNOTATE = shutil.which("hwloc-annotate")
needs_hwloc = pytest.mark.needs("lstopo-no-graphics", "hwloc-annotate")


def lstopo(*words: object) -> str:
    done = subprocess.run([str(LSTOPO), *map(str, words)], check=True, capture_output=True, text=True)
    assert "error" not in done.stderr.lower(), done.stderr
    return done.stdout


def exported(machine: Machine, folder: Path) -> Path:
    file = folder / f"{machine.name}.xml"
    file.write_text(to_hwloc(machine))
    return file


@pytest.mark.parametrize("name", Machine.names())
def test_what_was_exported_is_imported_again(name: str, tmp_path: Path) -> None:
    before = Machine.load(name)
    after = import_machine([exported(before, tmp_path)]).machine
    assert after.name == before.name
    for key in ("name", "kind", "socket"):
        assert [m[key] for m in after.data["memories"]] == [m[key] for m in before.data["memories"]]
    sizes = [[m["capacity_bytes"]["value"] for m in machine.data["memories"]] for machine in (before, after)]
    assert sizes[0] == sizes[1]
    assert [s["name"] for s in after.data["sockets"]] == [s["name"] for s in before.data["sockets"]]
    assert [s["cores"]["value"] for s in after.data["sockets"]] == [s["cores"]["value"] for s in before.data["sockets"]]
    kept = {(path["from"], path["to"]): path["idle_ns"]["value"] for path in after.data["paths"]}
    for path in before.data["paths"]:
        ends = (path["from"], path["to"])
        assert kept[ends] == pytest.approx(path["idle_ns"]["value"], abs=0.51)
        for share in (1.0, 0.0):
            peaks = [machine.curve(*ends, share).peak_gb_s for machine in (before, after)]
            assert peaks[0] == pytest.approx(peaks[1], rel=0.01), (ends, share)


def test_the_name_of_a_file_does_not_matter(tmp_path: Path) -> None:
    before = Machine.load("liu-a")
    file = exported(before, tmp_path).rename(tmp_path / "topology.txt")
    assert len(import_machine([file]).machine.data["memories"]) == len(before.data["memories"])


@needs_hwloc
@pytest.mark.parametrize("name", Machine.names())
def test_hwlocs_own_tools_read_every_attribute(name: str, tmp_path: Path) -> None:
    machine = Machine.load(name)
    told = lstopo("-i", exported(machine, tmp_path), "--memattrs")
    latencies = told[told.index("`Latency'") : told.index("`ReadLatency'")]
    for path in machine.data["paths"]:
        lines = [line for line in latencies.splitlines() if f'"{path["to"]}"' in line]
        assert any(f"= {round(path['idle_ns']['value'])} from" in line for line in lines), path["to"]


@needs_hwloc
def test_a_topology_that_hwloc_exported_is_read(tmp_path: Path) -> None:
    plain, told = tmp_path / "plain.xml", tmp_path / "told.xml"
    asked = "pack:2 [numa(memory=8GB)] l3:1(size=32MB) core:2 pu:2"
    lstopo("--no-io", "--if", "synthetic", "-i", asked, "--of", "xml", plain)
    annotate = [str(ANNOTATE), plain, told, "--", "numa:1", "--", "memattr", "Latency", "package:0", "139"]
    subprocess.run(annotate, check=True)
    machine = import_machine([told], "two").machine
    sockets = machine.data["sockets"]
    assert [(s["cores"]["value"], s["llc_bytes"]["value"]) for s in sockets] == [(2, 32_000_000)] * 2
    far = next(p for p in machine.data["paths"] if (p["from"], p["to"]) == ("socket0", "node1"))
    assert (far["idle_ns"]["value"], far["idle_ns"]["kind"]) == (139.0, "published")
    near = next(p for p in machine.data["paths"] if (p["from"], p["to"]) == ("socket0", "node0"))
    assert near["idle_ns"]["kind"] == "assumed"


@needs_hwloc
def test_this_machine_is_read(tmp_path: Path) -> None:
    lstopo("--no-io", "--of", "xml", tmp_path / "here.xml")
    assert import_machine([tmp_path / "here.xml"], "here").machine.data["memories"]


GOOD = to_hwloc(Machine.load("liu-a"))


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ('version="2.0"', 'version="1.0"', "topology version: `1.0`"),
        ("</topology>", "", "line "),
        ("<topology", "<!DOCTYPE t [<!ENTITY a 'b'>]><topology", "entities"),
        ('value="85"', 'value="fast"', "memattr Latency, target"),
        ('value="85"', 'value="0"', "`0` is not a number above 0"),
        ('local_memory="824633720832"', 'local_memory="-1"', "NUMANode os_index=0: local_memory"),
        ('cpuset="0xffffffff"', 'cpuset="0xnothing"', "cpuset `0xnothing`"),
        ('type="NUMANode"', 'type="Group"', "there is no NUMANode"),
        ('cache_size="33554432"', 'cache_size=""', "cache_size"),
    ],
)
def test_what_is_wrong_is_said_with_file_and_place(tmp_path: Path, old: str, new: str, told: str) -> None:
    assert old in GOOD
    file = tmp_path / "bad.xml"
    file.write_text(GOOD.replace(old, new))
    with pytest.raises(MachineError) as caught:
        import_machine([file])
    text = str(caught.value)
    assert text.startswith(str(file))
    assert told in text
    assert text.count("\nhint: ") == 1


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(place=st.floats(0, 1, exclude_max=True), length=st.integers(0, 40), text=st.text(max_size=12))
def test_damaged_files_end_in_one_clear_error_or_a_machine(
    tmp_path: Path, place: float, length: int, text: str
) -> None:
    at = int(place * len(GOOD))
    file = tmp_path / "fuzz.xml"
    file.write_text(GOOD[:at] + text + GOOD[at + length :], encoding="utf-8", errors="surrogateescape")
    works_or_explains(lambda: import_machine([file]))
