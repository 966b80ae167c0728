"""QEMU on this host: found, checked, and its command line put together.

Fourth step. Needs no root and no kernel module: processors are emulated in software unless `kvm` is
asked for, folders are shared by 9p, and there is neither a disk nor a network.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tierloom.debian import packages
from tierloom.errors import LabError, RequestError
from tierloom.lab import topology as topologies

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tierloom.lab.image import Image
    from tierloom.lab.topology import Topology, Version

PROGRAM = "qemu-system-x86_64"
OLDEST: Version = (8, 2)
"""First version whose volatile CXL devices and page tables in CXL memory work under software emulation."""

ACCELERATORS = ("tcg", "kvm")
CPUS = 2

HINT = (
    f"hint: the lab takes QEMU {OLDEST[0]}.{OLDEST[1]} or newer: {packages.named('qemu-system-x86').hint} "
    "(Debian 12: from bookworm-backports, which `make packages-lab` knows to find)"
)


@dataclass(frozen=True)
class Qemu:
    """The emulator of this host."""

    path: Path
    version: Version


@dataclass(frozen=True)
class Setting:
    """What surrounds a guest.

    Args:
        initrd: The image's archive with the guest's configuration behind it.
        exchange: Folder through which host and guest talk.
        shares: Folders of the host that the guest may write.
        console: File for what the guest's kernel prints.
        shell: Socket of the guest's second serial line.
        store: Folder with the contents of a persistent device.
        accelerator: One of :data:`ACCELERATORS`.
    """

    initrd: Path
    exchange: Path
    shares: tuple[Path, ...]
    console: Path
    shell: Path
    store: Path | None = None
    accelerator: str = "tcg"


def find() -> Qemu:
    """The emulator on the search path.

    Raises:
        LabError: There is none, or it is too old.
    """
    path = shutil.which(PROGRAM)
    if path is None:
        message = f"there is no {PROGRAM} here\n{HINT}"
        raise LabError(message)
    told = subprocess.run([path, "--version"], capture_output=True, text=True, check=False).stdout
    version = parse_version(told)
    if version < OLDEST:
        message = f"{path} is version {version[0]}.{version[1]}\n{HINT}"
        raise LabError(message)
    return Qemu(Path(path), version)


def parse_version(told: str) -> Version:
    """Major and minor version out of ``qemu --version``; (0, 0) when it says none.

    Example:
        >>> parse_version("QEMU emulator version 10.0.2 (Debian 1:10.0.2+ds-2)")
        (10, 0)
    """
    found = re.search(r"version (\d+)\.(\d+)", told)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def command(qemu: Qemu, image: Image, machine: Topology, setting: Setting) -> list[str]:
    """The whole command line.

    Raises:
        RequestError: The machine cannot be accelerated as asked.
    """
    folders: Mapping[str, tuple[Path, bool]] = {
        "host": (Path("/"), True),
        "lab": (setting.exchange, False),
        **{f"share{index}": (path, False) for index, path in enumerate(setting.shares)},
    }
    return [
        str(qemu.path),
        *_processors(machine, setting.accelerator),
        *("-nodefaults", "-nographic", "-no-reboot", "-monitor", "none"),
        *("-serial", f"file:{_escaped(setting.console)}"),
        *("-chardev", f"socket,id=shell,path={_escaped(setting.shell)},server=on,wait=off", "-serial", "chardev:shell"),
        *("-kernel", str(image.kernel), "-initrd", str(setting.initrd), "-append", _kernel_words(machine)),
        *(word for name, (path, readonly) in folders.items() for word in _folder(name, path, readonly=readonly)),
        *topologies.arguments(machine, qemu.version, setting.store),
    ]


def _processors(machine: Topology, accelerator: str) -> list[str]:
    """The guest must not notice that it is one: CXL regions are refused under a hypervisor.

    ``cpu_cache_has_invalidate_memregion``, arch/x86/mm/pat/set_memory.c.
    """
    if accelerator == "kvm" and machine.is_cxl:
        message = (
            "a CXL device cannot be accelerated: KVM does not emulate what programs do in its memory\n"
            "hint: leave --accel away, or take --topology two-tier"
        )
        raise RequestError(message)
    # With a thread for each processor QEMU 10.0 dies of SIGSEGV, or crawls, once programs run in a CXL device's memory.
    emulated = f"tcg,thread={'single' if machine.is_cxl else 'multi'}"
    model, how = ("host", "kvm") if accelerator == "kvm" else ("max", emulated)
    return ["-accel", how, "-cpu", f"{model},hypervisor=off", "-smp", str(CPUS)]


PATIENCE = (
    "no_timer_check",
    "nowatchdog",
    "rcupdate.rcu_cpu_stall_suppress=1",
    "sysctl.kernel.hung_task_timeout_secs=0",
)
"""On a busy host a processor of the guest stands still for seconds. The kernel, which may not know that it
is a guest, would take that for a broken timer and panic (``check_timer``, arch/x86/kernel/apic/io_apic.c),
or for a lock-up and complain."""


def _kernel_words(machine: Topology) -> str:
    words = ["console=ttyS0", "rdinit=/init", "quiet", "panic=-1", "mitigations=off", *PATIENCE]
    if machine.is_cxl:
        # Devices reach CXL memory, which is no RAM to QEMU, in pieces too small for a 9p request: all
        # of the guest's DMA goes through bounce buffers in DRAM. New memory waits for daxctl.
        words += ["swiotlb=force", "memhp_default_state=offline"]
    return " ".join(words)


def _folder(name: str, path: Path, *, readonly: bool) -> list[str]:
    """A 9p share; its device leaves addresses to the kernel's DMA layer, so that they can be bounced."""
    writable = ",readonly=on" if readonly else ""
    return [
        *("-fsdev", f"local,id={name},path={_escaped(path)},security_model=none,multidevs=remap{writable}"),
        *("-device", f"virtio-9p-pci,fsdev={name},mount_tag={name},iommu_platform=on,disable-legacy=on"),
    ]


def _escaped(path: Path) -> str:
    return str(path).replace(",", ",,")
