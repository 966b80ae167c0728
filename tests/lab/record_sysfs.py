"""Saves what the kernel says about memory as a folder of text files; `tests/recorded` is made with it.

    tierloom lab run --topology cxl -- python3 tests/lab/record_sysfs.py tests/recorded/lab-cxl

Kept are nodes with their HMAT attributes and distances, memory tiers, CXL and dax devices, CPUs, and
the switches of placement and migration. Symbolic links stay links, so the tree is read like /sys.
"""

from __future__ import annotations

import sys
from pathlib import Path

TREES = (
    "/sys/devices/system/node",
    "/sys/devices/virtual/memory_tiering",
    "/sys/devices/system/cpu",
    "/sys/bus/cxl/devices",
    "/sys/bus/dax/devices",
    "/sys/kernel/mm/numa",
    "/sys/kernel/mm/mempolicy",
    "/sys/kernel/mm/lru_gen",
    "/sys/kernel/mm/transparent_hugepage",
)
FILES = (
    "/proc/sys/kernel/numa_balancing",
    "/proc/sys/kernel/osrelease",
    "/proc/meminfo",
    "/proc/cpuinfo",
    "/proc/iomem",
)
SKIPPED = {"power", "uevent", "subsystem", "driver", "firmware_node", "vmstat", "crash_hotplug", "cpufreq", "cpuidle"}
SKIPPED |= {
    "vulnerabilities",
    "smt",
    "microcode",
    "thermal_throttle",
    "driver_override",
    "waiting_for_supplier",
    "hotplug",
}
SMALL = 16384


def wanted(path: Path) -> bool:
    """Neither noise nor what there are hundreds of: memory blocks, sizes of huge pages."""
    block = path.name.startswith("memory") and path.name[6:].isdigit()
    return path.name not in SKIPPED and not block and not path.name.startswith("hugepages-")


def save(source: Path, out: Path) -> None:
    """Copies a file, link or folder, and where a link leads to."""
    target = out / source.relative_to("/")
    if source.is_symlink():
        target.parent.mkdir(parents=True, exist_ok=True)
        if not target.is_symlink():
            target.symlink_to(source.readlink())
            save(source.resolve(), out)
    elif source.is_dir():
        for inner in sorted(source.iterdir()):
            if wanted(inner) and not (inner.is_symlink() and "/sys/bus" not in str(inner) and outside(inner)):
                save(inner, out)
    else:
        save_text(source, target)


def outside(link: Path) -> bool:
    """A link out of the trees that are kept."""
    return not any(str(link.resolve()).startswith(tree) for tree in TREES)


def save_text(source: Path, target: Path) -> None:
    """Write-only and binary files are left out."""
    try:
        text = source.read_bytes()[:SMALL].decode("ascii")
    except (OSError, UnicodeDecodeError):
        return
    if "\0" not in text:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)


def main() -> None:
    """Records the running kernel into the folder that is given."""
    out = Path(sys.argv[1])
    for name in (*TREES, *FILES):
        if Path(name).exists():
            save(Path(name), out)


if __name__ == "__main__":
    main()
