"""A machine in one line, as one thinks of it: ``dram 512GiB 100ns 300GB/s, cxl 1TiB 250ns 60GB/s``.

It becomes the text of a machine file: what was given says so, and what was not is marked as assumed. Memories are those
of one socket, up to a semicolon, behind which stand those of the next.
"""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, get_args

from tierloom.catalog.kind_figures import (
    DRAM_SHAPE,
    KIND_FIGURES,
    LOCAL_GB_S,
    LOCAL_NS,
    SHAPES,
    SOCKET,
    write_share,
)
from tierloom.errors import MachineError, RequestError
from tierloom.toml_values import toml_value
from tierloom.units import amount_in_bytes, bandwidth_gb_s, latency_ns

if TYPE_CHECKING:
    from collections.abc import Sequence

FORM = "write for example `dram 512GiB 100ns 300GB/s, cxl 1TiB 250ns 60GB/s`: kind and size, and latency and bandwidth"
HOP_NS = 33.0
"""From one socket to the memory of another: 130 ns over 97 to DRAM of Sapphire Rapids (EuroSys 2024)."""
HOP = "one more hop between sockets, 33 ns as on Sapphire Rapids"
CORES = 32
"""Of a server of 2020 to 2025; `N cores` in front says another number."""
ANY_CPU = "any"
"""The processor of a machine whose line says nothing of one."""
GIVEN = {"kind": "assumed", "source": "given", "how": "given by hand"}


@dataclass(frozen=True)
class Memory:
    """One memory as it was typed, and the number of its socket."""

    socket: int
    name: str
    kind: str
    size_bytes: int
    idle_ns: float | None
    gb_s: float | None


@cache
def kinds() -> tuple[str, ...]:
    """Kinds of memory; types of all documents take as long to load as Python takes to start, and no help needs them."""
    from tierloom.schema.documents import MemoryKindDoc

    return get_args(MemoryKindDoc)


def is_one_line(text: str) -> bool:
    """Whether a machine is described and not named: a kind of memory stands before a size."""
    return bool(re.search(rf"\b({'|'.join(kinds())})[ =:]+\d", text)) and "\n" not in text


def to_toml(text: str) -> str:
    """The machine file of a line.

    Raises:
        MachineError: A part of it is no kind, size, latency or bandwidth.

    Example:
        >>> "idle_ns = { value = 250.0" in to_toml("dram 64GiB, cxl 1TiB 250ns")
        True
        >>> to_toml("dram 64GiB; dram 64GiB").count("[[sockets]]")
        2
    """
    memories: list[Memory] = []
    cores: list[int | None] = []
    for number, socket in enumerate(text.split(";")):
        parts = [part.strip() for part in socket.split(",")]
        told = re.fullmatch(r"(\d{1,4}) cores?", parts[0])
        cores.append(int(told[1]) if told else None)
        for part in parts[1:] if told else parts:
            memories.append(_memory(part, number, [memory.kind for memory in memories]))
    if not memories:
        raise _wrong(text, "names no memory")
    ways = [_path(number, memory) for number in range(len(cores)) for memory in memories]
    head = [*_head(text, memories), *itertools.starmap(_socket, enumerate(cores))]
    return "\n".join([*head, *map(_of_memory, memories), *ways])


def _memory(part: str, socket: int, before: list[str]) -> Memory:
    words = re.split(r"[ =:]+", part)
    if words[0] not in kinds():
        raise _wrong(part, f"begins with none of {', '.join(kinds())}")
    told: dict[str, float] = {}
    for word in words[1:]:
        what, amount = _amount(part, word)
        if what in told:
            raise _wrong(part, f"has two figures of {what}")
        told[what] = amount
    if "size" not in told:
        raise _wrong(part, "has no size")
    kind, name = words[0], f"{words[0]}{before.count(words[0])}" if words[0] in before else words[0]
    return Memory(socket, name, kind, int(told["size"]), told.get("latency"), told.get("bandwidth"))


def _amount(part: str, word: str) -> tuple[str, float]:
    for what, amount in (("latency", latency_ns(word)), ("bandwidth", bandwidth_gb_s(word))):
        if amount is not None:
            if amount <= 0.0:
                raise _wrong(part, f"has a {what} of 0")
            return what, amount
    try:
        return "size", amount_in_bytes(word, 0)
    except RequestError:
        raise _wrong(part, f"has `{word}`, which is no size, no latency in ns and no bandwidth in GB/s") from None


def _wrong(part: str, problem: str) -> MachineError:
    return MachineError(f"machine `{part}` {problem}\nhint: {FORM}")


def _head(text: str, memories: Sequence[Memory]) -> list[str]:
    note = _of_one_socket(memories)
    return [
        "version = 1",
        f"name = {toml_value(_name(text))}",
        f"title = {toml_value(text)}",
        *([f"notes = [{toml_value(note)}]"] if note else []),
        "[sources]",
        'given = "given in one line"',
        'assumed = "taken for granted where the line says nothing; each figure says why"',
    ]


def _of_one_socket(memories: Sequence[Memory]) -> str | None:
    """What was made of several DRAMs on one socket, where each may have been meant for its own."""
    for number in {memory.socket for memory in memories}:
        names = [memory.name for memory in memories if memory.socket == number and memory.kind == "dram"]
        if len(names) > 1:
            return f"{' and '.join(names)} are memories of one socket; a semicolon between them makes two sockets"
    return None


def _socket(number: int, cores: int | None) -> str:
    given = _figure(cores or CORES, GIVEN if cores else _assumed("a server of 32 cores"))
    return "\n".join(
        [
            "[[sockets]]",
            f'name = "socket{number}"',
            f"cpu = {toml_value(ANY_CPU)}",
            f"cores = {given}",
            *(f"{key} = {_figure(value, _assumed(how))}" for key, (value, how) in SOCKET.items()),
        ]
    )


def _name(text: str) -> str:
    return "+".join("-".join(re.findall(r"[A-Za-z0-9.]+", socket)) for socket in text.split(";"))


def _of_memory(memory: Memory) -> str:
    return "\n".join(
        [
            "[[memories]]",
            f'name = "{memory.name}"',
            f'kind = "{memory.kind}"',
            f'socket = "socket{memory.socket}"',
            f"capacity_bytes = {_figure(memory.size_bytes, GIVEN)}",
        ]
    )


def _path(socket: int, memory: Memory) -> str:
    known = KIND_FIGURES.get(memory.kind)
    as_kind = known.idle_of if known else "near DRAM"
    read_gb_s = memory.gb_s or (known.read_gb_s if known else LOCAL_GB_S)
    share = write_share(memory.kind)
    shape, shape_of = SHAPES.get(memory.kind, DRAM_SHAPE)
    told = "given" if memory.gb_s else f"as of {known.bandwidth_of}" if known else "one channel of DDR5-4800"
    idle_ns = float(memory.idle_ns or (known.idle_ns if known else LOCAL_NS))
    idle = GIVEN if memory.idle_ns else _assumed(f"as of {as_kind}")
    if socket != memory.socket:
        told += ", as from its own socket, whatever the way between sockets carries"
        idle_ns, idle = idle_ns + HOP_NS, _assumed(f"{idle_ns:g} ns {idle['how']}, and {HOP}")
    how = f"read peak: {told}; write peak: {share:.2f} of it; rise below the peak: as of {shape_of}"
    knee = ", ".join(f"{key} = {value}" for key, value in shape["knee"].items())
    return "\n".join(
        [
            "[[paths]]",
            f'from = "socket{socket}"',
            f'to = "{memory.name}"',
            f"idle_ns = {_figure(idle_ns, idle)}",
            "[paths.load.form]",
            f"peak = {{ half = {{ read_gb_s = {read_gb_s}, write_gb_s = {read_gb_s * share:.3f} }} }}",
            f"shape = {{ knee = {{ {knee} }} }}",
            f"origin = {_inline({**_assumed(how), 'source': 'given' if memory.gb_s else 'assumed'})}",
        ]
    )


def _assumed(how: str) -> dict[str, str]:
    return {"kind": "assumed", "source": "assumed", "how": how}


def _figure(value: float, origin: dict[str, str]) -> str:
    return f"{{ value = {value}, {_inline(origin)[2:-2]} }}"


def _inline(origin: dict[str, str]) -> str:
    return f"{{ {', '.join(f'{key} = {toml_value(text)}' for key, text in origin.items())} }}"
