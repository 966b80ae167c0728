"""How a program ended, in words."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

from tierloom.units import seconds_text

if TYPE_CHECKING:
    from tierloom.schema import ProgramDoc, RecordingDoc, RunDoc


def ended(program: ProgramDoc | RecordingDoc | RunDoc) -> str:
    """What became of a program: its exit code, or the signal that killed it.

    Example:
        >>> ended({"exit_code": 139, "signal": "SIGSEGV", "wall_s": 2.0})
        'the program was killed by SIGSEGV (segmentation fault) after 2.00 s'
    """
    after = f"after {seconds_text(program['wall_s'])}"
    if "signal" in program:
        return f"the program was killed by {signal_text(program['signal'])} {after}"
    if "exit_code" in program:
        return f"the program ended with exit code {program['exit_code']} {after}"
    return f"how the program ended is not known; it was watched for {seconds_text(program['wall_s'])}"


def signal_text(name: str) -> str:
    """A signal with what it means, where it means something.

    Example:
        >>> signal_text("SIGKILL"), signal_text("SIGRTMIN+3")
        ('SIGKILL (killed)', 'SIGRTMIN+3')
    """
    known = signal.strsignal(signal.Signals[name]) if name in signal.Signals.__members__ else None
    return f"{name} ({known.lower()})" if known else name
