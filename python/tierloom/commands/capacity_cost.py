"""``tierloom capacity cost``, ``fleet`` and ``shape``: clusters and hosts in money."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from tierloom.commands import options, say
from tierloom.commands.function_options import of
from tierloom.errors import RequestError
from tierloom.units import amount_in_bytes, fraction

if TYPE_CHECKING:
    from tierloom.capacity import Heat, Layer


@click.command(
    name="cost",
    epilog=options.examples(
        "tierloom capacity cost --dram 10 --cxl 8 --dram-to-cxl 2 --server-cost 1.1",
        "tierloom capacity cost --dram 6 --cxl 5 --dram-to-cxl 1 --json",
    ),
)
@of("capacity.cost:Rates", dram="R", cxl="R", dram_to_cxl="C", server_cost="X")
@options.as_json
def cost(as_json: bool, **rates_given: float) -> None:
    """How many servers, and how much money, CXL memory saves at the same throughput.

    The abstract cost model of the EuroSys 2024 study: the working set is larger than all memory, each server
    takes what it holds at the rate of that memory and the rest at that of SSD.
    """
    from tierloom.capacity import Rates, saving
    from tierloom.capacity.cost import break_even_cost
    from tierloom.report.tables import capacities

    rates = Rates(**rates_given)
    answer, even = saving(rates), break_even_cost(rates)
    if as_json:
        say.document("cost", {**asdict(rates), **asdict(answer), "break_even_server_cost": even})
        return
    say.show(capacities.saved(rates, answer, even))


@click.command(
    name="fleet",
    epilog=options.examples(
        "tierloom capacity fleet --data 40TiB --seconds 120 --server 9000"
        " --tier dram:90:4:1TiB --tier cxl:45:3:1TiB --tier ssd:6:0.1:30TiB",
        "tierloom capacity fleet --data 40TiB --seconds 120 --server 9000"
        " --tier dram:90:4:1TiB --tier ssd:6:0.1:30TiB --heat 10%:80% --json",
    ),
)
@click.option("--data", required=True, metavar="SIZE", help="Data of the cluster.")
@click.option("--seconds", type=float, required=True, metavar="S", help="Time to touch as much data as there is.")
@click.option("--server", type=float, required=True, metavar="USD", help="A server without these tiers.")
@click.option(
    "--tier",
    "tiers",
    multiple=True,
    required=True,
    metavar="NAME:GB/S:USD:SIZE",
    help="A kind of memory: rate of a server on data in it, USD per GiB, most in a server.",
)
@click.option(
    "--heat", metavar="DATA:TOUCHES", help="Part of the data that gets a larger part of the touches: 10%:80%."
)
@options.as_json
def fleet(data: str, seconds: float, server: float, tiers: tuple[str, ...], heat: str | None, as_json: bool) -> None:
    """The cheapest cluster over any number of tiers: servers, and how much of each memory to buy.

    The cost model for N tiers, as a linear programme for each number of servers. Hot data goes where it
    pays.
    """
    from tierloom.capacity import cheapest
    from tierloom.report.tables import capacities

    layers = [_layer(text) for text in tiers]
    heats = _heats(heat)
    size = float(amount_in_bytes(data, 0))
    with say.progress("buying"):
        answer = cheapest(layers, size, seconds, server_usd=server, heats=heats)
    if as_json:
        say.document("fleet", {"data_bytes": size, **asdict(answer)})
        return
    say.show(capacities.cluster(layers, answer, size))


@click.command(
    name="shape",
    epilog=options.examples(
        "tierloom capacity shape --vcpus 192 --dram 576GiB --per-vcpu 4GiB --discount 20%",
        "tierloom capacity shape --vcpus 256 --dram 768GiB --per-vcpu 8GiB --json",
    ),
)
@click.option("--vcpus", type=click.IntRange(min=1), required=True, metavar="N", help="vCPUs of the host.")
@click.option("--dram", required=True, metavar="SIZE", help="Its DRAM.")
@click.option("--per-vcpu", required=True, metavar="SIZE", help="Memory that an instance has for each vCPU.")
@click.option(
    "--discount",
    default="20%",
    show_default=True,
    metavar="SHARE",
    help="By which instances on CXL memory are cheaper.",
)
@options.as_json
def shape(vcpus: int, dram: str, per_vcpu: str, discount: str, as_json: bool) -> None:
    """What a host sells when its DRAM runs out before its vCPUs, and what CXL memory adds.

    Instances have a fixed ratio of memory to vCPUs. vCPUs without memory are sold with CXL memory, at a
    discount.
    """
    from tierloom.capacity import shape as shape_of
    from tierloom.report.tables import capacities

    each = float(amount_in_bytes(per_vcpu, 0))
    answer = shape_of(vcpus, float(amount_in_bytes(dram, 0)), each, fraction(discount))
    if as_json:
        say.document("shape", {**asdict(answer)})
        return
    say.show(capacities.instances(answer, each))


def _layer(text: str) -> Layer:
    from tierloom.capacity import Layer

    name, *rest = text.split(":")
    try:
        rate, price, size = rest
        layer = Layer(
            name=name, bytes_s=float(rate) * 1e9, usd_per_gib=float(price), most_bytes=float(amount_in_bytes(size, 0))
        )
    except ValueError:
        layer = None
    if layer is None or layer.bytes_s <= 0.0 or layer.usd_per_gib < 0.0:
        message = (
            f"`{text}` is no tier\nhint: write name, GB/s of a server, USD per GiB, most in a server: dram:90:4:1TiB"
        )
        raise RequestError(message)
    return layer


def _heats(text: str | None) -> tuple[Heat, ...]:
    from tierloom.capacity import Heat

    if text is None:
        return (Heat(data=1.0, touches=1.0),)
    parts = [fraction(part) for part in text.split(":")]
    if len(parts) != 2 or not 0.0 < parts[0] < 1.0 or not 0.0 <= parts[1] <= 1.0:
        message = f"`{text}` is no heat\nhint: write a part of the data and of the touches: 10%:80%"
        raise RequestError(message)
    data, touches = parts
    return (Heat(data=data, touches=touches), Heat(data=1.0 - data, touches=1.0 - touches))
