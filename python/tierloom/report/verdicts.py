"""Answers in a sentence: what a program waits for, what a plan brings, what came of a run, what moving pages does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tierloom.node_match import is_rehearsal
from tierloom.report.tables.plans import placed, sizes_of
from tierloom.units import bytes_text, count_text, doubt_text, percent_text, seconds_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tierloom.migration_simulator import Simulation
    from tierloom.nouns import Plan, Profile
    from tierloom.policy_search import Comparison
    from tierloom.report.tables.plans import Placed
    from tierloom.schema import PathDoc, ProfileDoc, RunDoc
    from tierloom.schema.documents import AnchorDoc

LOCAL = "local"
"""The policy that the kernel has when nobody asks for anything."""
NAMED = 3
"""Objects that the sentence names."""
LOST = 0.02
"""Time that the run lost to others is worth saying from this part of it on."""
DISTURBED = 0.1
"""A run is worth repeating when what it would have taken alone is known no better than this."""
SAME = 0.01
"""Times that are no further apart are the same; whole data up to this part are all data."""
SHARED = 0.01
"""Parallel regions are worth naming when the program is in them for so much of its time."""
WAITED = 0.02
"""An object is worth naming when the program waits for it so much of its CPU time."""
LITTLE_LESS = 0.95
"""Objects that are there at once are worth telling from all of them when they are less than this part."""
UNSURE = 0.3
"""A count that may be off by more is worth saying."""
DOUBTFUL = 1.0
"""The model's time for a run that was measured is worth a warning when it is off by more than that time itself."""
ALIKE = 2
"""Caches of which one is no more than so many times the other let about as much through."""
GIVEN = "given"
"""Source of what somebody said of a machine."""
MAPPING = "[anon:"
"""Start of the name of anonymous memory whose allocation nobody saw."""
STILL = "none"
"""The policy that moves no page."""


def waited(profile: Profile) -> str:
    """What a program spent its time on, and which of its counts are rough."""
    program = profile.data["program"]
    ran = f"{seconds_text(program['wall_s'])} with {count_text(program['threads'], 'thread')}"
    found = f"{ran} and {_data(profile)}"
    stalls = {item["name"]: item["stall"]["share"] for item in profile.data["objects"] if "stall" in item}
    named = sorted((name for name in stalls if stalls[name] >= WAITED), key=lambda name: -stalls[name])[:NAMED]
    if not stalls:
        return f"{found}."
    if not named:
        return f"{found}. No object is waited for in {percent_text(WAITED)} of the CPU time or more.{_rough(profile)}"
    waits = _listed([f"{percent_text(stalls[name])} for {name}" for name in named])
    return f"{found}. Of its CPU time it waits {waits}.{_rough(profile)}"


def _data(profile: Profile) -> str:
    footprint, at_once = profile.footprint_bytes, profile.bytes_at_once
    data = f"{bytes_text(footprint)} of data"
    return data if at_once >= LITTLE_LESS * footprint else f"{data}, of which {bytes_text(at_once)} are there at once"


def _rough(profile: Profile) -> str:
    """Objects whose accesses are known badly, the most accessed first."""
    counts = {item["name"]: item["accesses"] for item in profile.data["objects"] if item.get("accesses")}
    most = sum(count["count"] for count in counts.values())
    rough = {
        name: count["high"] / count["count"] - 1
        for name, count in counts.items()
        if count["count"] > WAITED * most and count["high"] > (1 + UNSURE) * count["count"]
    }
    if not rough:
        return ""
    named = sorted(rough, key=lambda name: -counts[name]["count"])[:NAMED]
    return f" Accesses of {_listed([f'{name} ({doubt_text(rough[name])})' for name in named])} are known roughly."


def came_of(
    plan: Plan, run: RunDoc, *, is_in_lab: bool = False, is_elsewhere: bool = False, ran: str | None = None
) -> str:
    """Where the data of a run were, and how long it took against the prediction, where that is of such a run.

    Args:
        plan: What was asked for.
        run: What came of it.
        is_in_lab: It ran in a virtual machine of ours.
        is_elsewhere: The plan is for a machine that this one is not.
        ran: What a profile of the command would be called.
    """
    seen = [rule["residency"] for rule in run["rules"]]
    there = sum(each["looked"] - each["absent"] for each in seen)
    elsewhere = sum(each["elsewhere"] for each in seen)
    predicted = plan.data["predicted"]
    wide = count_text(predicted["threads"], "thread")
    other = f"the {seconds_text(predicted['time_s'])} predicted for {plan.data['machine']} with {wide}"
    if ran is not None and is_of_another(plan, run, ran):
        made = f"{seconds_text(run['wall_s'])}. The plan was made for {plan.data['profile']}, and"
        took = (
            f"{made} nothing of it was seen in {ran}: {other} say nothing about this run"
            if has_rules(run)
            else f"{made} has no rule by which that could be known from {ran}: {other} may say nothing about this run"
        )
    elif where := not_there(plan, run, is_in_lab=is_in_lab, is_elsewhere=is_elsewhere):
        took = f"{seconds_text(run['wall_s'])} {where}, which {other} say nothing about"
    else:
        took = f"{seconds_text(run['wall_s'])}, {_against(run['wall_s'], predicted['time_s'], other)}"
    if not plan.data.get("rules") and plan.data["default"] == "first_touch":
        return f"{took}. The plan asks nothing of the kernel: pages go where they are first touched."
    if not there:
        return f"{took}. No page of a placed object was seen."
    right = percent_text(1 - elsewhere / there)
    return f"{took}. {right} of the pages that were looked at were where the plan wants them."


def has_rules(run: RunDoc) -> bool:
    """Whether a plan has anything by which its program can be known again."""
    return any(rule["object"] != "default" for rule in run["rules"])


def is_of_another(plan: Plan, run: RunDoc, ran: str) -> bool:
    """Whether a plan seems to be for another program: its profile has another name, and no object of a rule was met."""
    met = any(rule["ranges"] for rule in run["rules"] if rule["object"] != "default")
    return plan.data["profile"] != ran and not met


def not_there(plan: Plan, run: RunDoc, *, is_in_lab: bool, is_elsewhere: bool) -> str | None:
    """Where a run was, if not on the machine that its plan is for."""
    if is_in_lab:
        return "in the lab"
    if is_rehearsal(plan, run["memories"]):
        return "in a rehearsal"
    return f"here, and not on {plan.data['machine']}" if is_elsewhere else None


def moved(simulations: Sequence[Simulation]) -> str:
    """Which policy is fastest, and what moving pages brings."""
    best, still = fastest(simulations), _still(simulations)
    first = f"{best.data['policy']} is fastest, {seconds_text(best.time_s)}"
    if still is None or len(simulations) == 1:
        return f"{first}."
    if best is still:
        where = f"where {still.data['placement']} put them"
        return f"Moving pages brings nothing here: {seconds_text(still.time_s)} with all of them {where}."
    return f"{first}: {_against(best.time_s, still.time_s, f'the {seconds_text(still.time_s)} without moving pages')}."


def fastest(simulations: Sequence[Simulation]) -> Simulation:
    """The run that takes least time; the one that moves no page where others are no faster."""
    best, still = min(simulations, key=lambda run: run.time_s), _still(simulations)
    return best if still is None or still.time_s > best.time_s * (1 + SAME) else still


def _still(simulations: Sequence[Simulation]) -> Simulation | None:
    return next((run for run in simulations if run.data["policy"] == STILL), None)


def verdict(comparison: Comparison) -> str:
    """What to do, and what it brings."""
    data, footprint = comparison.brief, comparison.profile.footprint_bytes
    fast, used = data["fast_memory"], comparison.chosen["fast_bytes"]
    if not footprint:
        return "There are no data objects: nothing to place."
    time_s, usual_s = comparison.chosen["prediction"]["time_s"], _first_touch_s(comparison)
    if all_fits(comparison):
        return f"{seconds_text(time_s)}: all {bytes_text(footprint)} of data fit in {fast}, nothing to place."
    if usual_s is not None and usual_s <= time_s * (1 + SAME):
        took = ", ".join([seconds_text(usual_s), *_against_most(comparison, usual_s)])
        return (
            f"With at most {bytes_text(data['budget_bytes'])} of {fast} for {bytes_text(footprint)} of data the "
            f"kernel's first touch does: {took}. No policy that was compared is faster by more than "
            f"{percent_text(SAME)}."
        )
    gains = [_against(time_s, usual_s, "first touch with as much")] if usual_s is not None else []
    gains += _against_most(comparison, time_s)
    where = f"{bytes_text(used)} of {bytes_text(footprint)} in {fast}, {_elsewhere(comparison)}"
    return f"{where}: {', '.join([seconds_text(time_s), *gains])}."


def _against_most(comparison: Comparison, time_s: float) -> list[str]:
    """A time against the least with any amount of fast memory, where that is more than may be used."""
    data = comparison.brief
    whole = data["frontier"][-1] if data["frontier"] else None
    if not whole or whole["fast_bytes"] <= data["budget_bytes"]:
        return []
    return [_against(time_s, whole["time_s"], f"with {bytes_text(whole['fast_bytes'])} of {data['fast_memory']}")]


def of_another_cache(comparison: Comparison) -> str | None:
    """What the profile cannot know of a machine whose last-level cache lets other lines through.

    Nothing where data fits in both caches, one is about as large as the other, or the profile has what was touched:
    then the prediction and its range hold it.
    """
    profile, footprint = comparison.profile.data, comparison.profile.footprint_bytes
    socket = next(one for one in comparison.machine.data["sockets"] if one["name"] == comparison.brief["socket"])
    there, here = profile["program"]["llc_bytes"], socket["llc_per_core_bytes"]["value"]
    if any("touched" in access for phase in profile["phases"] for access in phase["accesses"]):
        return None
    if "sampling" not in profile or footprint <= min(there, here) or max(there, here) <= ALIKE * min(there, here):
        return None
    return (
        f"the profile has the memory traffic that a last-level cache of {bytes_text(there)} lets through, and "
        f"{socket['name']} of {comparison.machine.name} has {bytes_text(here)}: the program, with its "
        f"{bytes_text(footprint)} of data, may wait for memory {'more' if here < there else 'less'} than this says; "
        "profile it on a machine whose cache is about as large"
    )


def never_measured(comparison: Comparison) -> str | None:
    """What the range does not hold: memories in use whose figures somebody gave or assumed."""
    used = [tier["memory"] for tier in comparison.chosen["prediction"]["tiers"] if tier["placed_bytes"] > 0]
    paths = [path for path in comparison.machine.data["paths"] if path["from"] == comparison.brief["socket"]]
    told = [f"{path['to']} ({how})" for path in paths if path["to"] in used and (how := _not_measured(path))]
    if not told:
        return None
    return (
        f"latency and bandwidth of {_listed(told)} were never measured: the range takes them to be off by no more than "
        "published curves are"
    )


def _not_measured(path: PathDoc) -> str | None:
    """Whether a path's figures are somebody's or assumed; nothing where one was measured or published."""
    load = path["load"]
    origins = [load["form"]["origin"]] if "form" in load else [curve["origin"] for curve in load["points"]]
    figures = {"latency": [path["idle_ns"]], "bandwidth": origins}
    if any(each["kind"] != "assumed" for many in figures.values() for each in many):
        return None
    how = {name: GIVEN if many[0]["source"] == GIVEN else "assumed" for name, many in figures.items()}
    alike = len({*how.values()}) == 1
    return how["latency"] if alike else ", ".join(f"{name} {word}" for name, word in how.items())


def unseen_again(comparison: Comparison) -> list[str]:
    """Objects of rules that a run finds nothing for: mappings of which the profile has a name and no allocation."""
    unselected = comparison.brief.get("unselected", [])
    names = [item["name"] for item in comparison.profile.data["objects"] if MAPPING in item["site"].get("name", "")]
    return [name for name in names if name not in unselected]


def all_fits(comparison: Comparison) -> bool:
    """Whether the answer is that all data are in fast memory."""
    return comparison.chosen["fast_bytes"] >= comparison.profile.footprint_bytes * (1 - SAME)


def in_regions(profile: ProfileDoc) -> float:
    """The share of a run with one thread, 0 to 1, that OpenMP would share out to more."""
    phases = profile["phases"]
    lasted_s = sum(phase["end_s"] - phase["start_s"] for phase in phases)
    shared_s = sum(phase.get("in_regions", 0.0) * (phase["end_s"] - phase["start_s"]) for phase in phases)
    return shared_s / lasted_s if lasted_s > 0 else 0.0


def _with_more(shared: float, threads: int) -> str:
    if shared < SHARED:
        return "Nobody saw it use more than one, so it is predicted with one however many it may have"
    return (
        f"It was in parallel regions of OpenMP for {shared:.0%} of its time, which {threads} threads are taken to "
        "share out; the rest is one thread's"
    )


def measured(comparison: Comparison) -> str | None:
    """What the run took that a plan was made from; nothing where nobody ran it."""
    profile, threads = comparison.profile.data, comparison.brief["threads"]
    if "sampling" not in profile:
        return None
    program, anchor = profile["program"], comparison.brief.get("anchor")
    ran = f"{seconds_text(program['wall_s'])} with {count_text(program['threads'], 'thread')}"
    text = f"Measured when it was profiled: {ran}"
    taken = [
        f"{who} took {seconds_text(all_s)} of its threads' time"
        for all_s, who in (
            (program.get("queued_s", 0.0), "other programs"),
            (program.get("held_s", 0.0) + program.get("sampled_s", 0.0), "the profiler"),
        )
        if all_s > LOST * program["wall_s"]
    ]
    if taken:
        text += f"; {' and '.join(taken)}"
    if program["threads"] == 1 and threads > 1:
        text += f". {_with_more(in_regions(profile), threads)}: profile it with {threads} to see what they bring"
    elif program["threads"] != threads:
        text += (
            f". Nobody saw it run with {threads}: predictions take its work to be shared out evenly among them, which "
            f"a program need not do; profile it with {threads} to know"
        )
    if anchor is not None:
        text += (
            f". Predictions are anchored to {_anchored_to(anchor)} on {anchor['machine']}; the model alone, without "
            f"that run, says {seconds_text(anchor['modelled_s'])} ({_off(anchor):+.0%})"
        )
        is_disturbed = anchor["most_s"] - anchor["least_s"] > DISTURBED * anchor["measured_s"]
        if is_disturbed and "unprofiled_runs" not in anchor:
            text += f". Undisturbed it would have taken {_alone(anchor)}: profile it again while nothing else runs"
    else:
        text += (
            ". Predictions are not anchored to that run, which takes a measured machine (`tierloom machine measure` "
            "where it ran) and no more threads than its first socket has cores"
        )
    return f"{text}."


def _alone(anchor: AnchorDoc) -> str:
    """What a disturbed run would have taken: only the most is known where its threads lost more than it lasted."""
    most = seconds_text(anchor["most_s"])
    if anchor["least_s"] == 0.0:
        return f"at most {most}, and nobody can say how much less"
    least = seconds_text(anchor["least_s"])
    return f"{least} if its threads wait for each other at every step and {most} if they never meet"


def _anchored_to(anchor: AnchorDoc) -> str:
    if runs := anchor.get("unprofiled_runs", 0):
        return f"the {seconds_text(anchor['measured_s'])} that {count_text(runs, 'run')} without the profiler took"
    return f"the {seconds_text(anchor['measured_s'])} that it would have taken alone"


def _off(anchor: AnchorDoc) -> float:
    """How much more the model says than was measured, as a part of that."""
    return anchor["modelled_s"] / anchor["measured_s"] - 1 if anchor["measured_s"] else 0.0


def doubtful_traffic(comparison: Comparison) -> str | None:
    """What to know where the model says more than twice what the run took: it waits for traffic that was not there."""
    anchor = comparison.brief.get("anchor")
    if anchor is None or _off(anchor) <= DOUBTFUL:
        return None
    told = (
        f"the model alone says {seconds_text(anchor['modelled_s'])} for a run of {seconds_text(anchor['measured_s'])} "
        f"on {anchor['machine']}, so the profile's counts of memory traffic are doubtful, and with them how much each "
        "memory is used"
    )
    is_counted = "counted_traffic" in comparison.profile.data.get("sampling", {})
    return told if is_counted else f"{told}; `tierloom profile --count traffic -- CMD` counts it"


def _first_touch_s(comparison: Comparison) -> float | None:
    for policy in comparison.brief["policies"]:
        if policy["policy"] == LOCAL and "prediction" in policy:
            return policy["prediction"]["time_s"]
    return None


def _against(time_s: float, other_s: float, what: str) -> str:
    change = time_s / other_s - 1 if other_s > 0 else 0.0
    if abs(change) <= SAME:
        return f"as fast as {what}"
    return f"{percent_text(abs(change))} {'less' if change < 0 else 'more'} than {what}"


def _listed(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def _elsewhere(comparison: Comparison) -> str:
    """The objects that are not all in fast memory, those with most bytes outside first, and where these are."""
    nodes = [tier["memory"] for tier in comparison.chosen["prediction"]["tiers"]]
    fast = nodes.index(comparison.brief["fast_memory"])

    def outside(row: Placed) -> float:
        return (row.size_bytes or 0) * (1 - row.shares[fast])

    def sentence(row: Placed) -> str:
        where = [node for node, share in zip(nodes, row.shares, strict=True) if node != nodes[fast] and share > 0]
        part = f"{percent_text(1 - row.shares[fast])} of " if row.shares[fast] > SAME else ""
        return f"{part}{row.name} in {' and '.join(where)}"

    items = placed(comparison.chosen, sizes_of(comparison.profile))
    moved = sorted((row for row in items if row.shares[fast] < 1 - SAME), key=lambda row: -outside(row))
    named = [sentence(row) for row in moved[:NAMED]]
    return ", ".join([*named, *_others([row.shares[fast] <= SAME for row in moved[NAMED:]])])


def _others(whole: Sequence[bool]) -> Iterator[str]:
    """How many more objects are not in fast memory, each all of it or a part."""
    if any(whole):
        yield count_text(sum(whole), "more object")
    if not all(whole):
        yield f"parts of {count_text(len(whole) - sum(whole), 'more object')}"


def changed(before: Comparison, after: Comparison, what_if: Sequence[str]) -> str:
    """What changes of a machine do to the best placement's time."""
    was, now = (each.chosen["prediction"]["time_s"] for each in (before, after))
    gain = now / was - 1.0
    told = "no change" if abs(gain) < SAME else f"{percent_text(abs(gain))} {'slower' if gain > 0 else 'faster'}"
    kept = (
        "the same policy" if before.chosen["policy"] == after.chosen["policy"] else f"before {before.chosen['policy']}"
    )
    words = ", ".join(what_if)
    return f"With {words}: {seconds_text(now)} instead of {seconds_text(was)}, {told} ({kept})."
