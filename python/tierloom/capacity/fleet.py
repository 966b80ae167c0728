"""The abstract cost model for any number of tiers: how much of each to buy, as a linear programme.

A cluster of N servers works on a data set; data in a tier is worked on at the tier's rate per server, and
some data is touched more often than other. For fixed N the time to touch everything is linear in what each
tier holds, and so is the cost, so the cheapest memory that meets a time is a linear programme; N is tried.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tierloom.errors import PlacementError, RequestError
from tierloom.linear_program import Programme
from tierloom.units import GIB

if TYPE_CHECKING:
    from collections.abc import Sequence

EPSILON = 1e-9


@dataclass(frozen=True, kw_only=True)
class Layer:
    """One kind of memory or storage that a server can have.

    Attributes:
        name: Its name.
        bytes_s: Data that one server works through in a second when it is here.
        usd_per_gib: Price.
        most_bytes: Most of it that a server takes.
    """

    name: str
    bytes_s: float
    usd_per_gib: float
    most_bytes: float


@dataclass(frozen=True, kw_only=True)
class Heat:
    """Part of the data and part of the touches that it gets; 10 % of the data may get 80 % of the touches."""

    data: float
    touches: float


@dataclass(frozen=True, kw_only=True)
class Fleet:
    """The cheapest cluster: servers, bytes of each layer in all of them, seconds, cost, and cost by server."""

    servers: int
    bytes: dict[str, float]
    seconds: float
    usd: float


def cheapest(
    layers: Sequence[Layer],
    data_bytes: float,
    seconds: float,
    *,
    server_usd: float,
    heats: Sequence[Heat] = (Heat(data=1.0, touches=1.0),),
    most_servers: int = 1000,
) -> Fleet:
    """The cheapest cluster that touches as much data as it holds, by its heats, within `seconds`.

    Raises:
        RequestError: A number makes no sense.
        PlacementError: No cluster of at most `most_servers` is fast enough.
    """
    if data_bytes <= 0.0 or seconds <= 0.0 or server_usd < 0.0:
        message = "data and seconds have to be above 0, prices at least 0\nhint: check the units"
        raise RequestError(message)
    low = _least_servers(layers, data_bytes, seconds, heats, most_servers)
    best = _buy(layers, data_bytes, seconds, server_usd, heats, low)
    for servers in range(low + 1, most_servers + 1):
        if best and servers * server_usd >= best.usd:
            break
        found = _buy(layers, data_bytes, seconds, server_usd, heats, servers)
        if found and (best is None or found.usd < best.usd * (1.0 - EPSILON)):
            best = found
    if best is None:
        raise _too_slow(most_servers)
    return best


def _least_servers(layers: Sequence[Layer], data_bytes: float, seconds: float, heats: Sequence[Heat], most: int) -> int:
    """Fewest servers with which any purchase is fast enough: more never are slower."""
    low, high = 0, most
    if _buy(layers, data_bytes, seconds, 0.0, heats, most) is None:
        raise _too_slow(most)
    while high - low > 1:
        middle = (low + high) // 2
        if _buy(layers, data_bytes, seconds, 0.0, heats, middle):
            high = middle
        else:
            low = middle
    return high


def _buy(
    layers: Sequence[Layer],
    data_bytes: float,
    seconds: float,
    server_usd: float,
    heats: Sequence[Heat],
    servers: int,
) -> Fleet | None:
    """The cheapest memory for a number of servers; none when no purchase is fast enough."""
    programme = Programme()
    cells = [(layer, number) for layer in layers for number in range(len(heats))]
    names = {(layer.name, number): f"{layer.name}/{number}" for layer, number in cells}
    for name in names.values():
        programme.variable(name, scale=data_bytes)
    for number, heat in enumerate(heats):
        terms = {names[layer.name, number]: 1.0 for layer in layers}
        programme.exactly(f"all of {number}", terms, heat.data * data_bytes)
    for layer in layers:
        held = {names[layer.name, number]: 1.0 for number in range(len(heats))}
        programme.at_most(f"room in {layer.name}", held, servers * layer.most_bytes)
    time = {
        names[layer.name, number]: heats[number].touches / heats[number].data / layer.bytes_s / servers
        for layer, number in cells
    }
    programme.at_most("time", time, seconds)
    programme.minimise({names[layer.name, number]: layer.usd_per_gib / GIB for layer, number in cells})
    solution = programme.solve()
    if solution is None:
        return None
    held_bytes = {
        layer.name: sum(solution.values[names[layer.name, number]] for number in range(len(heats))) for layer in layers
    }
    taken = sum(factor * solution.values[name] for name, factor in time.items())
    return Fleet(servers=servers, bytes=held_bytes, seconds=taken, usd=servers * server_usd + solution.value)


def _too_slow(most: int) -> PlacementError:
    message = f"no cluster of at most {most} servers is that fast\nhint: allow more time or faster memory"
    return PlacementError(message)
