"""The files of a machine's ``/proc`` and ``/sys`` below a folder, as kernels of twenty years wrote them.

Lists come as lists, or only as masks; with a NUL at their end where a buggy kernel or a recorder put one; and
``node/online`` is younger than ``node0``. Whatever only an old kernel does makes a tree `odd`: the core, which
reads the kernels that Tierloom runs on, is not asked about it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tierloom.machine_formats.texts import flaw
from tierloom.machine_formats.topology import bits

if TYPE_CHECKING:
    from pathlib import Path

CPU = "sys/devices/system/cpu"
NODE = "sys/devices/system/node"
MOST = 1 << 16
"""No kernel has more CPUs or nodes; a longer range is a damaged file."""
MOST_BYTES = 16 << 20
AGAIN = "record the machine's /sys again"


@dataclass
class Tree:
    """A folder that holds ``proc`` and ``sys``."""

    root: Path
    odd: bool = False
    """Whether something is there as no kernel of today writes it."""

    def text(self, path: str) -> str | None:
        """A file without white space and NULs around it; None where it cannot be read."""
        try:
            with (self.root / path).open("rb") as file:
                content = file.read(MOST_BYTES)
        except OSError:
            return None
        self.odd = self.odd or b"\0" in content
        return content.decode(errors="replace").replace("\0", "").strip()

    def names(self, path: str, pattern: str) -> list[int]:
        """Numbers of the entries of a folder by a pattern with one group."""
        try:
            entries = [re.fullmatch(pattern, entry.name) for entry in (self.root / path).iterdir()]
        except OSError:
            return []
        return sorted(int(found[1]) for found in entries if found and int(found[1]) < MOST)

    def count(self, path: str) -> int | None:
        """A whole number.

        Raises:
            MachineError: The file holds something else.
        """
        text = self.text(path)
        if text is None:
            return None
        if not re.fullmatch(r"\d{1,19}|0x[0-9a-fA-F]{1,16}", text):
            raise self.damaged(path, text, "a whole number")
        return int(text, 0 if text.startswith("0x") else 10)

    def numbers(self, path: str) -> list[int] | None:
        """A list such as ``0-3,8``; None where there is no such file.

        Raises:
            MachineError: The file holds something else.
        """
        text = self.text(path)
        if text is None:
            return None
        parts = [re.fullmatch(r"\s*(\d{1,9})(?:-(\d{1,9}))?\s*", part) for part in text.split(",") if part.strip()]
        ranges = [(int(part[1]), int(part[2] or part[1])) for part in parts if part]
        if len(ranges) < len(parts) or any(last >= MOST for _, last in ranges):
            raise self.damaged(path, text, "a list such as `0-3,8`")
        return [number for first, last in ranges for number in range(first, last + 1)]

    def mask(self, path: str) -> int | None:
        """A mask such as ``00000000,000000ff``: 32 bits a word, the highest first.

        Raises:
            MachineError: The file holds something else.
        """
        text = self.text(path)
        if text is None:
            return None
        words = text.split(",")
        if len(text) > MOST // 2 or not all(re.fullmatch(r"[0-9a-fA-F]{1,8}", word) for word in words):
            raise self.damaged(path, text, "a mask such as `00000000,000000ff`")
        return int("".join(word.rjust(8, "0") for word in words), 16)

    def cpus(self, as_list: str, as_mask: str) -> int:
        """A set of CPUs, as a list where there is one, else as a mask."""
        listed = bits(self.numbers(as_list) or [])
        masked = 0 if listed else self.mask(as_mask) or 0
        self.odd = self.odd or masked != 0
        return listed or masked

    def damaged(self, path: str, text: str, wanted: str) -> Exception:
        """The error of a file that does not hold what kernels write there."""
        return flaw(self.root / path, "", f"`{text[:40]}` is not {wanted}", AGAIN)

    def online_nodes(self) -> list[int]:
        """Node numbers: as the kernel lists them, else those with a folder, else node 0 of a kernel without NUMA."""
        listed = self.numbers(f"{NODE}/online")
        if listed:
            return sorted(listed)
        self.odd = True
        return self.names(NODE, r"node(\d{1,5})") or [0]

    def online_cpus(self) -> int:
        """CPUs that run: as the kernel lists them, else those with a folder that are not switched off."""
        listed = bits(self.numbers(f"{CPU}/online") or [])
        if listed:
            return listed
        self.odd = True
        there = self.names(CPU, r"cpu(\d{1,5})")
        return bits(cpu for cpu in there if self.text(f"{CPU}/cpu{cpu}/online") != "0")
