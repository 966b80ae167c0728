"""How a guest is made, without starting one: packages, image, topology, and QEMU's command line."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tierloom.debian.sources import Source
from tierloom.errors import LabError, RequestError
from tierloom.lab import image, packages, qemu
from tierloom.lab.image import Image
from tierloom.lab.qemu import Qemu, Setting
from tierloom.lab.topology import TOPOLOGIES, named

NEW = Qemu(Path("/usr/bin/qemu-system-x86_64"), (10, 0))
OLD = Qemu(Path("/usr/bin/qemu-system-x86_64"), (8, 2))
IMAGE = Image(Path("/cache/image"), {"linux-image-6.12": "6.12"})


def line(topology: str, emulator: Qemu = NEW, **more: object) -> str:
    setting = Setting(
        initrd=Path("/cache/initrd"),
        exchange=Path("/cache/exchange"),
        shares=(Path("/home/me/project"), Path("/data,1")),
        console=Path("/cache/console.log"),
        shell=Path("/cache/shell.sock"),
        **more,
    )
    return " ".join(qemu.command(emulator, IMAGE, named(topology), setting))


def test_two_tiers_are_a_node_with_processors_and_one_without() -> None:
    words = line("two-tier")
    assert "node,nodeid=0,memdev=ram0,cpus=0-1" in words
    assert "node,nodeid=1,memdev=ram1,initiator=0" in words
    assert "target=1,hierarchy=memory,data-type=access-latency,latency=250" in words
    assert "hmat=on" in words
    assert "cxl" not in words


def test_three_tiers_know_every_distance() -> None:
    words = line("three-tier")
    for pair in ("src=0,dst=1,val=20", "src=0,dst=2,val=30", "src=1,dst=2,val=40"):
        assert pair in words


def test_a_cxl_guest_hides_that_it_is_one_and_bounces_its_dma() -> None:
    words = line("cxl")
    assert "-cpu max,hypervisor=off" in words
    assert "swiotlb=force" in words
    assert words.count("iommu_platform=on,disable-legacy=on") == 4
    assert "cxl-type3,bus=rootport0,volatile-memdev=cxl0,id=cxl-memory0,sn=0x71137008" in words


def test_a_guest_on_a_busy_host_does_not_take_its_own_standstill_for_a_broken_timer() -> None:
    assert all("no_timer_check nowatchdog" in line(topology) for topology in TOPOLOGIES)


def test_a_persistent_device_keeps_its_contents_and_labels_in_the_store() -> None:
    words = line("cxl-pmem", store=Path("/store,2"))
    assert "mem-path=/store,,2/pmem.raw" in words
    assert "persistent-memdev=cxl0,lsa=labels0" in words
    assert "sn=0x71137008" in words


def test_the_host_is_shared_for_reading_and_the_project_for_writing() -> None:
    words = line("two-tier")
    assert "local,id=host,path=/,security_model=none,multidevs=remap,readonly=on" in words
    assert "local,id=share0,path=/home/me/project,security_model=none,multidevs=remap -device" in words
    assert "path=/data,,1," in words


def test_an_older_qemu_is_not_told_of_generic_ports() -> None:
    assert "acpi-generic-port" in line("cxl")
    assert "acpi-generic-port" not in line("cxl", OLD)


def test_a_cxl_device_cannot_be_accelerated() -> None:
    assert "-accel kvm -cpu host" in line("two-tier", accelerator="kvm")
    with pytest.raises(RequestError, match="hint: leave --accel away"):
        line("cxl", accelerator="kvm")


def test_sizes_replace_those_of_the_topology_in_order() -> None:
    asked = named("three-tier").sized("2GiB, 512MiB")
    assert [memory.size_bytes >> 20 for memory in asked.memories] == [2048, 512, 2048]
    assert named("two-tier").sized([1 << 30]).memories[0].size_bytes == 1 << 30
    assert named("two-tier").sized(None) is TOPOLOGIES["two-tier"]


@pytest.mark.parametrize(
    ("memory", "words"),
    [
        ("1GiB,1GiB,1GiB", "3 memory sizes for the 2 nodes of two-tier\nhint: write for example --memory 1GiB,2GiB"),
        ("100MiB", "a node of 100MiB cannot be made\nhint: sizes are multiples of 256MiB, from 512MiB on"),
        ("0.9GiB", "a node of 0.9GiB cannot be made"),
    ],
)
def test_wrong_sizes_are_named(memory: str, words: str) -> None:
    with pytest.raises(RequestError) as told:
        named("two-tier").sized(memory)
    assert words in str(told.value)


def test_an_unknown_topology_is_answered_with_those_there_are() -> None:
    with pytest.raises(RequestError, match="there are two-tier, three-tier, cxl, cxl-pmem"):
        named("one-tier")


@pytest.mark.parametrize(
    ("told", "version"),
    [
        ("QEMU emulator version 10.0.2 (Debian 1:10.0.2+ds-2+deb13u1~bpo12+1)", (10, 0)),
        ("QEMU emulator version 8.2.50 (v8.2.0-1234-g)", (8, 2)),
        ("something else", (0, 0)),
    ],
)
def test_versions_are_read(told: str, version: tuple[int, int]) -> None:
    assert qemu.parse_version(told) == version


def test_a_missing_or_old_qemu_is_said_with_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(LabError, match=r"there is no qemu-system-x86_64 here\nhint: .*bookworm-backports"):
        qemu.find()
    fake = tmp_path / "qemu-system-x86_64"
    fake.write_text("#!/bin/sh\necho QEMU emulator version 7.2.0\n")
    fake.chmod(0o755)
    with pytest.raises(LabError, match=r"is version 7\.2\nhint: the lab takes QEMU 8\.2 or newer"):
        qemu.find()


def test_a_missing_apt_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(LabError, match="there is no apt-get, apt-cache, dpkg-deb here\nhint: install apt and dpkg"):
        packages.fetch(tmp_path / "cache")


def test_a_failing_archive_is_said_with_the_variable_that_helps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for tool in packages.APT_TOOLS:
        (tmp_path / tool).write_text("#!/bin/sh\necho 'E: Failed to fetch' >&2\nexit 100\n")
        (tmp_path / tool).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("TIERLOOM_LAB_MIRROR", "http://mirror.example/debian")
    monkeypatch.setattr(packages, "KEYRING", tmp_path / "apt-get")
    with pytest.raises(LabError, match=r"`apt-get update` failed: Failed to fetch\nhint: .*TIERLOOM_LAB_MIRROR"):
        packages.fetch(tmp_path / "cache")


def test_the_guest_is_made_of_the_mirror_that_this_machine_uses(monkeypatch: pytest.MonkeyPatch) -> None:
    own = Source("http://mirror.example/debian", "bookworm", ("main", "contrib"), "/keys.gpg")
    monkeypatch.delenv("TIERLOOM_LAB_MIRROR", raising=False)
    monkeypatch.setattr(packages.sources, "debian", lambda: own)
    assert packages.source() == Source("http://mirror.example/debian", "trixie", ("main",), "/keys.gpg")
    monkeypatch.setenv("TIERLOOM_LAB_MIRROR", "http://other.example/debian")
    assert packages.source() == Source("http://other.example/debian", "trixie")
    monkeypatch.delenv("TIERLOOM_LAB_MIRROR")
    monkeypatch.setattr(packages.sources, "debian", lambda: None)
    with pytest.raises(LabError, match=r"no mirror of Debian.*\nhint: set TIERLOOM_LAB_MIRROR"):
        packages.source()


def test_packages_that_were_fetched_for_the_same_request_are_taken_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = fake_apt(monkeypatch)
    first = packages.fetch(tmp_path)
    again = packages.fetch(tmp_path)
    assert first == again
    assert len(calls) == 4
    assert first.versions() == {"linux-image-6.12-amd64": "6.12-1", "cxl": "1:81-1"}
    monkeypatch.setattr(packages, "TOOLS", ("cxl", "daxctl"))
    packages.fetch(tmp_path)
    assert len(calls) == 8


def fake_apt(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """An archive with a kernel and one tool."""
    calls = []

    def apt(_: object, *command: str, cwd: Path | None = None) -> str:
        calls.append(command)
        if "download" in command:
            (cwd / "linux-image-6.12-amd64_6.12-1_amd64.deb").write_bytes(b"kernel")
            (cwd / "cxl_1%3a81-1_amd64.deb").write_bytes(b"tool")
        if "--print-uris" in command:
            return "'http://mirror.example/pool/cxl_81-1_amd64.deb' cxl_1%3a81-1_amd64.deb 89372 SHA256:00\n"
        return "Package: linux-image-amd64\nDepends: linux-image-6.12-amd64 (= 6.12-1)\n"

    monkeypatch.setattr(packages, "_apt", apt)
    monkeypatch.setattr(packages, "apt_is_there", lambda: None)
    return calls


def test_an_image_is_named_by_what_it_is_made_of(monkeypatch: pytest.MonkeyPatch) -> None:
    name = image.identity("0" * 64)
    assert name == image.identity("0" * 64)
    assert name != image.identity("1" * 64)
    monkeypatch.setattr(image, "MODULES", {"share": ("9p",)})
    assert name != image.identity("0" * 64)


NAMES = st.text("abcdefghij/_-.", min_size=1, max_size=40)


@given(st.dictionaries(NAMES, st.binary(max_size=50)))
def test_an_archive_can_be_read_back(files: dict[str, bytes]) -> None:
    written = image.archive({name: (stat.S_IFREG | 0o644, data) for name, data in files.items()})
    assert len(written) % 4 == 0
    assert read_archive(written) == files


def read_archive(archive: bytes) -> dict[str, bytes]:
    """The "newc" format, read as the kernel does."""
    at, found = 0, {}
    while True:
        fields = [int(archive[at + 6 + 8 * n : at + 14 + 8 * n], 16) for n in range(13)]
        assert archive[at : at + 6] == b"070701"
        size, name_size = fields[6], fields[11]
        name = archive[at + 110 : at + 110 + name_size - 1].decode()
        start = (at + 110 + name_size + 3) // 4 * 4
        if name == "TRAILER!!!":
            return found
        found[name] = archive[start : start + size]
        at = (start + size + 3) // 4 * 4


def test_modules_are_loaded_behind_those_they_need() -> None:
    def module(depends: str) -> bytes:
        return b"\x7fELF\0license=GPL\0depends=" + depends.encode() + b"\0name=x\0"

    modules = {"a": module("b-c,d"), "b_c": module("d"), "d": module(""), "e": module("")}
    order: dict[str, bytes] = {}
    for name in ("a", "built_in", "d"):
        image._load_order(name, modules, order)
    assert list(order) == ["d", "b_c", "a"]
