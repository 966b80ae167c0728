"""What memory that is slower and cheaper saves: the abstract cost model, spare vCPUs, instance shapes.

The cost model is that of the EuroSys 2024 study of ASIC CXL memory (doi 10.1145/3627703.3650061): a cluster
works on data larger than its memory, each server takes the data that it holds at the rate of that memory
and the rest from SSD at rate 1. Asking a cluster with CXL memory for the same time gives the servers that it
needs; that the working set drops out holds only while neither cluster's memory takes all of it.
"""

from __future__ import annotations

from dataclasses import dataclass

from tierloom.errors import RequestError


@dataclass(frozen=True, kw_only=True)
class Rates:
    """The abstract cost model's inputs.

    Attributes:
        dram: Throughput on data in DRAM; on SSD it is 1.
        cxl: Throughput on data in CXL memory.
        dram_to_cxl: Bytes of DRAM over bytes of CXL memory.
        server_cost: Cost of a server with CXL memory over one without.
    """

    dram: float
    cxl: float
    dram_to_cxl: float
    server_cost: float = 1.0

    def __post_init__(self) -> None:
        if not 1.0 < self.cxl <= self.dram < float("inf"):
            message = (
                f"rates of {self.dram:g} in DRAM and {self.cxl:g} in CXL memory\n"
                "hint: SSD is 1; CXL memory is faster than that and no faster than DRAM"
            )
            raise RequestError(message)
        if not 0.0 < self.dram_to_cxl < float("inf") or not 0.0 < self.server_cost < float("inf"):
            message = "the ratio of DRAM to CXL memory and the cost of a server have to be above 0\nhint: check them"
            raise RequestError(message)


@dataclass(frozen=True, kw_only=True)
class Saving:
    """Servers with CXL memory for each server without that do the same work; and what they save, a share."""

    servers: float
    saving: float


def saving(rates: Rates) -> Saving:
    """Servers needed and cost saved for the same throughput.

    A server without CXL takes time D/dram - D off the W that SSD alone would take, one with it also
    D/(C cxl) - D/C; equal times give the ratio of their numbers.

    Example:
        >>> answer = saving(Rates(dram=10, cxl=8, dram_to_cxl=2, server_cost=1.1))
        >>> f"{answer.servers:.2%} {answer.saving:.2%}"
        '67.29% 25.98%'
    """
    without = 1.0 - 1.0 / rates.dram
    with_cxl = without + (1.0 - 1.0 / rates.cxl) / rates.dram_to_cxl
    servers = without / with_cxl
    return Saving(servers=servers, saving=1.0 - servers * rates.server_cost)


def break_even_cost(rates: Rates) -> float:
    """Cost of a server with CXL memory over one without at which nothing is saved any more."""
    return 1.0 / saving(rates).servers


def spare_revenue(unsold: float, discount: float) -> float:
    """Revenue gained by selling vCPUs that lacked memory, with CXL memory, at a discount; a share.

    Args:
        unsold: Share of the vCPUs that cannot be sold for lack of memory.
        discount: Share by which instances on CXL memory are cheaper.

    Raises:
        RequestError: A share is none, or all is unsold.

    Example:
        >>> f"{spare_revenue(0.25, 0.20):.2%}"
        '26.67%'
    """
    if not 0.0 <= unsold < 1.0 or not 0.0 <= discount <= 1.0:
        message = "the unsold share has to be below 1 and the discount at most 1\nhint: write for example 25% and 20%"
        raise RequestError(message)
    return unsold * (1.0 - discount) / (1.0 - unsold)


@dataclass(frozen=True, kw_only=True)
class Shape:
    """What a host sells when instances have a fixed ratio of memory to vCPUs.

    Attributes:
        vcpus: vCPUs of the host.
        sold: vCPUs that DRAM alone can feed.
        missing_bytes: Memory that the other vCPUs lack: CXL memory that makes all of them sell.
        revenue: Revenue gained by adding it, a share.
    """

    vcpus: int
    sold: int
    missing_bytes: float
    revenue: float


def shape(vcpus: int, dram_bytes: float, bytes_per_vcpu: float, discount: float) -> Shape:
    """What CXL memory adds to a host whose DRAM runs out before its vCPUs.

    Args:
        vcpus: vCPUs of the host.
        dram_bytes: Its DRAM.
        bytes_per_vcpu: Memory of an instance for each of its vCPUs.
        discount: Share by which instances on CXL memory are cheaper.

    Raises:
        RequestError: A number is not above 0, or the DRAM is less than one vCPU's memory.

    Example:
        >>> shape(192, 576 * 2**30, 4 * 2**30, 0.20).sold
        144
    """
    if vcpus < 1 or dram_bytes <= 0.0 or bytes_per_vcpu <= 0.0:
        message = "vCPUs, DRAM and memory of a vCPU have to be above 0\nhint: write for example 192, 576GiB and 4GiB"
        raise RequestError(message)
    sold = min(vcpus, int(dram_bytes / bytes_per_vcpu))
    if sold == 0:
        message = "the DRAM is less than one vCPU's memory\nhint: check the units: GiB and GB"
        raise RequestError(message)
    missing = max(0.0, vcpus * bytes_per_vcpu - dram_bytes)
    return Shape(vcpus=vcpus, sold=sold, missing_bytes=missing, revenue=spare_revenue(1.0 - sold / vcpus, discount))
