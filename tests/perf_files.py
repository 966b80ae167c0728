"""Small perf.data files of memory samples: the layout of the kernel's documents, for tests of the command line."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

ARRAY = 0x7000_0000_0000
KERNEL = 0xFFFF_8880_0000_0000
RAM_LOAD = 0x02 | 0x80 << 5
PID = 4242
_ID = 77
_IP, _TID, _TIME, _ADDR, _PERIOD, _WEIGHT, _SOURCE, _IDENTIFIER = (1 << bit for bit in (0, 1, 2, 3, 8, 14, 15, 16))
_FIELDS = _IP | _TID | _TIME | _ADDR | _PERIOD | _WEIGHT | _SOURCE | _IDENTIFIER
_USER, _EXEC = 2, 1 << 13
_FREQUENCY, _SAMPLE_ID_ALL = 1 << 10, 1 << 18


def _words(*numbers: int) -> bytes:
    return struct.pack(f"<{len(numbers)}Q", *numbers)


def _pair(low: int, high: int) -> int:
    return low | high << 32


def _record(kind: int, misc: int, body: bytes) -> bytes:
    return struct.pack("<IHH", kind, misc, 8 + len(body)) + body


def _padded(text: str) -> bytes:
    return text.encode().ljust((len(text) // 8 + 1) * 8, b"\0")


@dataclass
class PerfFile:
    """A file in the making: one raw event, of loads."""

    data: bytes = b""
    config: int = 0x1CD
    latency: int = 0
    now: int = field(default=10)

    def _behind(self, pid: int) -> bytes:
        self.now += 1
        return _words(_pair(pid, pid), self.now, _ID)

    def exec(self, name: str, pid: int = PID) -> PerfFile:
        """A process begins to run a program."""
        self.data += _record(3, _USER | _EXEC, _words(_pair(pid, pid)) + _padded(name) + self._behind(pid))
        return self

    def map(self, start: int, size: int, path: str, *, code: bool = False, pid: int = PID) -> PerfFile:
        """Something is mapped."""
        fields = _words(_pair(pid, pid), start, size, 0, 0, 0, 0, _pair(5 if code else 3, 2))
        self.data += _record(10, _USER, fields + _padded(path) + self._behind(pid))
        return self

    def load(self, address: int, times: int = 1, *, source: int = RAM_LOAD, pid: int = PID) -> PerfFile:
        """Loads of one line after the other."""
        for at in range(times):
            self.now += 1
            numbers = (_ID, 0x1234, _pair(pid, pid), self.now, address + 64 * at, 1000, 300, source)
            self.data += _record(9, _USER, _words(*numbers))
        return self

    def bytes(self) -> bytes:
        """The file: header, one event with one id, records."""
        head = _words(_pair(4, 128), self.config, 997, _FIELDS, 0, _FREQUENCY | _SAMPLE_ID_ALL, 0, self.latency)
        attribute = head.ljust(128, b"\0") + _words(104 + 144, 8)
        header = _words(104, 144, 104, 144, 104 + 144 + 8, len(self.data), 0, 0, 0, 0, 0, 0)
        return b"PERFILE2" + header + attribute + _words(_ID) + self.data


def loads() -> PerfFile:
    """A program with an array, and ten loads of it."""
    file = PerfFile().exec("app").map(0x40_0000, 0x1000, "/opt/no/such/app", code=True)
    return file.map(ARRAY, 4 << 20, "//anon").load(ARRAY, 10)
