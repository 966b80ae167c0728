"""Formats that are not supported: what other programs print of a machine, known by their words and called what it is.

`mlc_log` uses it for a text without a table of Intel MLC. What these programs print lacks what a machine file needs
(caches, cores of a socket, or all but one table), and the machine's hwloc XML or tree of /sys has it.
"""

from __future__ import annotations

import re

PROGRAMS = {
    "what `numactl -H` prints": r"^available: \d+ nodes?\b",
    "what `lscpu` prints": r"^Architecture:\s+\S+$(?s:.*)^CPU\(s\):\s+\d+",
    "the text of lstopo": r"^Machine (?:L#0 )?\(.*\)$(?s:.*)\bPU L#0\b",
    "what `dmidecode` prints": r"^# dmidecode ",
    "what STREAM prints": r"^STREAM version ",
}
HINT = (
    "give the machine's hwloc XML (lstopo topology.xml) or its tree of /sys (hwloc-gather-topology topology); "
    "on the machine itself: tierloom machine import /"
)


def named(text: str) -> str | None:
    """The program whose words these are."""
    return next((name for name, words in PROGRAMS.items() if re.search(words, text, re.MULTILINE)), None)
