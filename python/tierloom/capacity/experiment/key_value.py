"""What every study of a key-value store is told: whose records, how they are touched, with how much memory."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tierloom.capacity.experiment import processes
from tierloom.capacity.skew import THETA
from tierloom.errors import RequestError
from tierloom.units import bytes_text

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True, kw_only=True)
class Study(processes.Study, ABC):
    """What to run: the mix, data, and operations of a run."""

    mix: str
    data_bytes: int
    operations: int = 100_000
    threads: int = 4
    theta: float = THETA

    def __post_init__(self) -> None:
        if self.mix not in self.mixes():
            message = f"there is no mix `{self.mix}`\nhint: there are {', '.join(self.mixes())}"
            raise RequestError(message)
        if not self.memories or min(self.memories) <= 0 or self.data_bytes < self.least_bytes():
            least = bytes_text(self.least_bytes())
            message = f"memory has to be above 0 and data at least {least}\nhint: --memory 64MiB,128MiB --data 256MiB"
            raise RequestError(message)
        if not 0.0 <= self.theta < 100.0:
            message = f"an exponent of {self.theta:g}\nhint: 0.99 is YCSB's, 0 touches all records alike"
            raise RequestError(message)

    @staticmethod
    @abstractmethod
    def mixes() -> Iterable[str]:
        """Mixes that the store can be asked for."""

    @staticmethod
    @abstractmethod
    def least_bytes() -> int:
        """Least data that makes a study."""
