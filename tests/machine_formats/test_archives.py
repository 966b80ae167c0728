"""Trees as hwloc-gather-topology packs them: the same machine packed or not, and nothing leaves its archive."""

from __future__ import annotations

import io
import tarfile
import zipfile
from pathlib import Path

import pytest
from machine_formats.topologies import places, size, sockets, sys_tree

from tierloom.errors import MachineError
from tierloom.machine_formats import import_machine

FILES = {
    "/proc/cpuinfo": "processor\t: 0\nmodel name\t: Some CPU\n",
    "cpu/online": "0-1",
    "node/online": "0-1",
    "node/node0/cpulist": "0-1",
    "node/node0/meminfo": size(0, 16),
    "node/node1/cpulist": "",
    "node/node1/meminfo": size(1, 64),
    "/sys/devices/LNX/ndbus0/region0/dax0.0/target_node": "1",
}
DAX = "sys/bus/dax/devices/dax0.0"


def packed(folder: Path, ending: str, links: dict[str, str], names: dict[str, str] | None = None) -> Path:
    """The tree in a folder of its own; `names` are further files by name."""
    tree = sys_tree(folder / "tree", FILES)
    file = folder / f"packed{ending}"
    with tarfile.open(file, f"w:{ending.rpartition('.')[2] if ending.count('.') > 1 else ''}") as archive:
        archive.add(tree, "machine")
        for name, target in links.items():
            link = tarfile.TarInfo(name)
            link.type, link.linkname = tarfile.SYMTYPE, target
            archive.addfile(link)
        for name, content in (names or {}).items():
            told = tarfile.TarInfo(name)
            told.size = len(content)
            archive.addfile(told, io.BytesIO(content.encode()))
    return file


@pytest.mark.parametrize("ending", [".tar.bz2", ".tar.gz", ".tar.xz", ".tar"])
def test_an_archive_is_the_tree_in_it(tmp_path: Path, ending: str) -> None:
    device = "../../../devices/LNX/ndbus0/region0/dax0.0"
    found = import_machine([packed(tmp_path, ending, {f"machine/{DAX}": device})])
    assert sockets(found) == {"socket0": 2}
    assert places(found) == {"node0": ("dram", "socket0"), "node1": ("pmem", "socket0")}
    assert found.machine.name == "packed"
    assert "tierloom-tree-" not in found.machine.text


def test_a_link_that_leads_out_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/target_node").write_text("1\n")
    circle = {"machine/sys/a": "b", "machine/sys/b": "a"}
    through = {
        "machine/here": ".",
        f"machine/{DAX}": "../../../../here/../../../../../../../.." + str(tmp_path / "outside"),
    }
    for links in ({f"machine/{DAX}": str(tmp_path / "outside")}, through, circle):
        found = import_machine([packed(tmp_path, ".tar.gz", links)])
        assert places(found)["node1"][0] == "cxl"
        assert any("guess" in warning["what"] for warning in found.warnings)


@pytest.mark.parametrize("name", ["../escaped", "/tmp/escaped", "machine/../../escaped"])  # noqa: S108 (never written)
def test_a_path_that_leaves_its_archive_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(MachineError, match="a path that leaves the archive\nhint: "):
        import_machine([packed(tmp_path, ".tar", {}, {name: "1"})])
    assert not list(tmp_path.rglob("escaped"))


def test_nothing_is_written_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    file = packed(tmp_path, ".tar", {"machine/door": str(tmp_path / "outside")}, {"machine/door/file": "1"})
    assert sockets(import_machine([file])) == {"socket0": 2}
    assert not list((tmp_path / "outside").iterdir())


def test_a_damaged_archive_is_said_to_be_one(tmp_path: Path) -> None:
    whole = packed(tmp_path, ".tar.bz2", {}).read_bytes()
    (tmp_path / "half.tar.bz2").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(MachineError, match=r"half\.tar\.bz2: no whole archive"):
        import_machine([tmp_path / "half.tar.bz2"])


def test_an_error_inside_names_the_archive(tmp_path: Path) -> None:
    file = packed(tmp_path, ".tar", {}, {"machine/sys/devices/system/node/node0/distance": "near"})
    with pytest.raises(MachineError) as caught:
        import_machine([file])
    assert str(caught.value).startswith(f"{file}/sys/devices/system/node/node0/distance: `near`")


def test_an_archive_of_something_else_is_refused(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "other.tar.gz", "w:gz") as archive:
        archive.addfile(tarfile.TarInfo("readme"))
    with pytest.raises(MachineError, match=r"holds no machine's sys/devices/system"):
        import_machine([tmp_path / "other.tar.gz"])


def test_an_archive_that_is_not_opened_is_called_one(tmp_path: Path) -> None:
    file = tmp_path / "machine.zip"
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("sys/devices/system/node/online", "0")
    with pytest.raises(MachineError, match=r"an archive of zip, which is not opened here\nhint: unpack it"):
        import_machine([file])
