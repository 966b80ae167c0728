"""``/proc/cpuinfo``: the processor's name, and cores where ``/sys`` has no folder of CPUs."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

KEYS = ("processor", "physical id", "core id")


@dataclass
class Processors:
    """What it says."""

    model: str | None = None
    cores: dict[tuple[str, str], int] = field(default_factory=dict)
    """CPUs by package and core."""

    def core_of(self, cpu: int) -> int:
        """Hardware threads of a CPU's core; itself where the file does not say."""
        return next((cpus for cpus in self.cores.values() if cpus >> cpu & 1), 1 << cpu)


def read(text: str) -> Processors:
    """Reads the file; what is not there is not told."""
    found = Processors(_model(text))
    for block in re.split(r"\n\s*\n", text):
        lines = dict(re.findall(r"^([^:\n]*?)[ \t]*:[ \t]*(\d{1,5})[ \t]*$", block, re.MULTILINE))
        if all(key in lines for key in KEYS):
            core = (lines["physical id"], lines["core id"])
            found.cores[core] = found.cores.get(core, 0) | 1 << int(lines["processor"])
    return found


def _model(text: str) -> str | None:
    found = re.search(r"^(?:model name|cpu)[ \t]*:[ \t]*(\S.*?)[ \t]*$", text, re.MULTILINE)
    return found[1] if found else None
