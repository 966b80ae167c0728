"""One C function an object, whatever the library: the part that libnuma and hwloc have in common.

Each function takes the object's address and size and is to be called after it is allocated and before
it is touched: a policy says where pages will come from, it moves none. Weighted interleaving of one
object is not in the kernel (its weights are the host's), so it is striped: runs of whole 2 MiB pages,
each preferring a node, in turns by weight; like the kernel's own, it falls back where a node is full.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tierloom.exporters.steps import Step, comment, title
from tierloom.nouns import FIRST_TOUCH
from tierloom.units import bytes_text

if TYPE_CHECKING:
    from tierloom.schema import PlanDoc

COMMON = """\
/* The whole pages inside an object: its edges may share pages with other data. */
static int inner(void **start, size_t *bytes) {
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t first = ((uintptr_t)*start + page - 1) / page * page;
    uintptr_t end = ((uintptr_t)*start + *bytes) / page * page;
    *start = (void *)first;
    *bytes = end > first ? end - first : 0;
    return *bytes > 0;
}
"""
WEIGHTED = """\
/* Stripes of a weighted object: one huge page; each run is a mapping of its own for the kernel. */
#define STRIPE_BYTES ((size_t)2 << 20)

/* Stripe after stripe, as many in a row on a node as its weight. */
static int place_weighted(void *start, size_t bytes, const int *nodes, const int *weights, int count) {
    if (!inner(&start, &bytes)) return 0;
    char *at = start, *end = at + bytes;
    for (int turn = 0; at < end; turn = (turn + 1) % count) {
        size_t run = (size_t)weights[turn] * STRIPE_BYTES;
        size_t first = STRIPE_BYTES - (uintptr_t)at % STRIPE_BYTES;
        run = run - STRIPE_BYTES + first;
        if (run > (size_t)(end - at)) run = (size_t)(end - at);
        if (place_pages(at, run, PREFER, &nodes[turn], 1) != 0) return -1;
        at += run;
    }
    return 0;
}
"""
PLAIN = """\
static int place(void *start, size_t bytes, int policy, const int *nodes, int count) {
    return inner(&start, &bytes) ? place_pages(start, bytes, policy, nodes, count) : 0;
}
"""
POLICIES = {"bind": "BIND", "prefer": "PREFER", "prefer_many": "PREFER_MANY", "interleave": "INTERLEAVE"}


@dataclass(frozen=True)
class Library:
    """What differs between libraries."""

    about: str
    """How to compile and use it."""
    preamble: str
    """Includes, and the policies BIND, PREFER, PREFER_MANY and INTERLEAVE."""
    place_pages: str
    """``int place_pages(void *start, size_t bytes, int policy, const int *nodes, int count)``."""


def write(library: Library, plan: PlanDoc, steps: list[Step]) -> str:
    """The C file."""
    rules, default = steps[:-1], steps[-1]
    weighted = any(step.mode == "weighted" and step.known for step in rules)
    plain = any(step.mode in POLICIES and step.known for step in rules)
    head = f"/* {title(plan)}.\n *\n{library.about}\n */"
    parts = [head, library.preamble]
    if plain or weighted:
        parts += [COMMON, library.place_pages]
    parts += [WEIGHTED] if weighted else []
    parts += [PLAIN] if plain else []
    parts += [_function(step) for step in rules]
    rest = f"/* Whatever is not listed: {comment(default.words)}."
    parts.append(f"{rest} {'Nothing to do.' if default.mode == FIRST_TOUCH else 'Set it with numactl.'} */")
    return "\n".join(parts) + "\n"


def _function(step: Step) -> str:
    size = f", {bytes_text(step.size_bytes)}" if step.size_bytes else ""
    also = "".join(f"\n * Also asked, and not done here: {comment(text)}." for text in step.lost)
    said = f"/* {comment(step.object)}{size}: {comment(step.words)}.\n * {comment(step.found)}{also} */"
    if not step.known:
        why = "left to first touch" if step.mode == FIRST_TOUCH else "cannot be expressed here"
        return f"{said}\n/* place_{step.identifier}: {why}. */\n"
    nodes = ", ".join(map(str, step.weights))
    count = len(step.weights)
    lines = [
        f"int place_{step.identifier}(void *start, size_t bytes) {{",
        f"    static const int nodes[] = {{{nodes}}};",
    ]
    if step.mode == "weighted":
        weights = ", ".join(map(str, step.weights.values()))
        lines.append(f"    static const int weights[] = {{{weights}}};")
        lines.append(f"    return place_weighted(start, bytes, nodes, weights, {count});")
    else:
        lines.append(f"    return place(start, bytes, {POLICIES[step.mode]}, nodes, {count});")
    return "\n".join([said, *lines, "}", ""])
