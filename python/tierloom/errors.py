"""What can go wrong, as exceptions.

The Rust core raises these (one file there maps its errors to them); the command line turns each
into words on stderr and the exit code of its class: 2 when the request is wrong, 1 when the answer
is no or the work failed.
"""

from __future__ import annotations


class TierloomError(Exception):
    """The work failed, or the answer is no.

    Its text says what is wrong and where; a last line that starts with ``hint:`` says what to do.
    """

    exit_code = 1


class RequestError(TierloomError):
    """The request is wrong: an option, a name, or a file that was handed in."""

    exit_code = 2


class MachineError(RequestError):
    """A machine is not known, or its file does not hold a machine."""


class ProfileError(RequestError):
    """A profile is not known, or its file does not hold a profile."""


class BuildError(RequestError):
    """A program or library is not here in the build that was recorded."""


class PlanError(RequestError):
    """A plan file does not hold a plan."""


class WorkloadError(RequestError):
    """A workload is not known, or its file does not hold a workload."""


class StudyError(RequestError):
    """A study is not known, or its file does not hold a study; the text names the file and the key."""


class TraceError(RequestError):
    """An access trace cannot be read; the text names the file and the row."""


class MissingPackageError(RequestError):
    """What was asked for needs a package that is not installed; the hint says how to install it."""


class PlacementError(TierloomError):
    """No placement does what was asked for."""


class RecordingError(TierloomError):
    """A program could not be recorded or placed."""


class OutputError(TierloomError):
    """There is no room for a file; nothing of it was left."""


class MeasurementError(TierloomError):
    """This machine cannot be measured."""


class PoolError(TierloomError):
    """A persistent pool is damaged, full, in use, or its file cannot be had."""


class ProgramError(TierloomError):
    """The program could not be started; the exit code is the shell's.

    Args:
        message: What is wrong, where, and what to do.
        exit_code: 127 when there is no such program, 126 when it cannot be executed.
    """

    def __init__(self, message: str, exit_code: int = 127) -> None:
        super().__init__(message)
        self.exit_code = exit_code


class LabError(TierloomError):
    """A virtual machine could not be made, did not come up, or did not end in time."""


class ClusterError(TierloomError):
    """The workers of a sweep could not be had, or do not run this version."""
