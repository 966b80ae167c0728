"""This terminal joined to the shell on a guest's second serial line, until the reader leaves it."""

from __future__ import annotations

import os
import select
import socket
import sys
import termios
import tty
from typing import TYPE_CHECKING

from tierloom.errors import LabError

if TYPE_CHECKING:
    from pathlib import Path

LEAVE = b"\x1d"
"""Ctrl-], as in telnet: a serial line has no end of its own."""


def attach(shell: Path) -> None:
    """Joins standard input and output to the shell.

    Args:
        shell: The guest's socket.

    Raises:
        LabError: The socket cannot be reached.
    """
    with socket.socket(socket.AF_UNIX) as line:
        try:
            line.connect(str(shell))
        except OSError as error:
            message = f"{shell}: {error.strerror}\nhint: `tierloom lab status` says whether a guest is up"
            raise LabError(message) from error
        size = os.get_terminal_size() if sys.stdin.isatty() else os.terminal_size((80, 24))
        line.sendall(f" stty rows {size.lines} cols {size.columns}\n".encode())
        before = termios.tcgetattr(0) if sys.stdin.isatty() else None
        try:
            if before:
                tty.setraw(0)
            _relay(line)
        finally:
            if before:
                termios.tcsetattr(0, termios.TCSADRAIN, before)


def _relay(line: socket.socket) -> None:
    while True:
        ready, _, _ = select.select([0, line.fileno()], [], [])
        if line.fileno() in ready:
            told = line.recv(65536)
            if not told:
                return
            os.write(1, told)
        if 0 in ready:
            typed = os.read(0, 4096)
            if not typed or LEAVE in typed:
                return
            line.sendall(typed)
