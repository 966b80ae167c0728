"""Virtual machines of the lab."""

from __future__ import annotations

from typing import NotRequired, TypedDict


class LabResultDoc(TypedDict):
    """A command that ran in a guest of the lab."""

    stdout: str
    stderr: str
    exit_code: int
    seconds: float
    topology: str


class LabGuestDoc(TypedDict):
    """The guest that is up; only `up` when none is. `since` is in seconds since 1970."""

    up: bool
    topology: NotRequired[str]
    pid: NotRequired[int]
    since: NotRequired[float]
    shares: NotRequired[list[str]]


class LabImageDoc(TypedDict):
    """What guests are made of: the image's folder, its packages with their versions, QEMU's version."""

    folder: str
    packages: dict[str, str]
    qemu: str
