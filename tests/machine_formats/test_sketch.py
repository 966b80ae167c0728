"""Sketches of one machine, laid over one another: every figure keeps the source that it came from."""

from __future__ import annotations

from tierloom.machine_formats.sketch import Cpus, Curve, GpuNode, Known, Node, Route, Sketch, Unplaced


def of_file(file: str, idle_ns: float) -> Sketch:
    """A sketch whose every part has a figure of one source, under the key that all files of a kind use."""
    node = lambda: Node(capacity_bytes=Known(1 << 30, "published", "log"))  # noqa: E731 (one each)
    route = lambda: Route(  # noqa: E731
        idle_ns=Known(idle_ns, "measured", "log"), curves={1.0: Curve([(1.0, idle_ns)], Known(None, "measured", "log"))}
    )
    return Sketch(
        sources={"log": file},
        cpus={0: Cpus(cores=Known(8, "published", "log"))},
        nodes={0: node()},
        routes={(0, 0): route()},
        gpus={7: GpuNode("a GPU", node(), {0: route()})},
        unplaced=[Unplaced(node(), None)],
    )


def told(sketch: Sketch) -> set[str]:
    """Files that the figures of a sketch name."""
    parts: list[object] = [*sketch.cpus.values(), *sketch.nodes.values(), *sketch.routes.values()]
    parts += [each.node for each in sketch.unplaced]
    for gpu in sketch.gpus.values():
        parts += [gpu.node, *gpu.routes.values()]
    known = [value for part in parts for value in vars(part).values() if isinstance(value, Known)]
    known += [curve.origin for route in sketch.routes.values() for curve in route.curves.values()]
    return {sketch.sources[each.source] for each in known}


def test_a_later_source_of_the_same_key_is_renamed_in_all_that_it_tells() -> None:
    whole = Sketch()
    for file in ("first.txt", "second.txt", "third.txt"):
        whole.add(of_file(file, 100.0))
    assert whole.sources == {"log": "first.txt", "log2": "second.txt", "log3": "third.txt"}
    whole.unplaced = whole.unplaced[2:]
    assert told(whole) == {"third.txt"}, "the last one counts"


def test_the_same_source_again_is_one() -> None:
    whole = Sketch()
    whole.add(of_file("first.txt", 100.0))
    whole.add(of_file("first.txt", 120.0))
    assert whole.sources == {"log": "first.txt"}
    assert whole.routes[0, 0].idle_ns == Known(120.0, "measured", "log")
