# %% [markdown]
# # How little DRAM will do beside CXL memory?
# The frontier of time against fast memory, over the memories of the first socket (near DRAM and the card), for a
# growing number of threads: more threads ask for more bandwidth, and a card carries only so much.

# %%
import sys

import tierloom

given = [] if "ipykernel" in sys.modules else sys.argv[1:]  # in a notebook these are words for its kernel
name, machine_name = (given + ["mg-e", "liu-a"][len(given) :])[:2]
profile, machine = tierloom.profile(name), tierloom.machine(machine_name)
socket = machine.data["sockets"][0]
nodes = [memory["name"] for memory in machine.data["memories"] if memory["socket"] == socket["name"]]
cores = int(socket["cores"]["value"])
THREADS = [threads for threads in (4, 8, 16, 32, 64, 128) if threads <= cores] or [cores]

# %%
answers = {threads: tierloom.plan(profile, machine, threads=threads, nodes=nodes) for threads in THREADS}
rows = [
    {"threads": threads, "fast_gib": point["fast_bytes"] / 2**30, "slowdown": point["slowdown"]}
    for threads, answer in answers.items()
    for point in answer.data["frontier"]
]

# %% [markdown]
# The least DRAM that costs no more than five per cent of the time:

# %%
for threads in THREADS:
    enough = [row["fast_gib"] for row in rows if row["threads"] == threads and row["slowdown"] <= 1.05]
    print(f"{threads:3} threads: {min(enough):.4g} GiB of {profile.footprint_bytes / 2**30:.4g} GiB")

# %%
percent = {"format": ".0%", "title": "slower than the best by"}
spec = {
    "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
    "description": "Slowdown by amount of DRAM, a line a number of threads",
    "title": f"{profile.name} on {machine.name}",
    "data": {"values": rows},
    "transform": [{"calculate": "datum.slowdown - 1", "as": "slower"}],
    "mark": {"type": "line", "point": True},
    "encoding": {
        "x": {"field": "fast_gib", "type": "quantitative", "title": "DRAM, GiB"},
        "y": {"field": "slower", "type": "quantitative", "axis": percent},
        "color": {"field": "threads", "type": "ordinal"},
        "shape": {"field": "threads", "type": "ordinal"},
    },
}
chart = tierloom.Chart("How little DRAM will do", "", spec)
chart.save("how_much_dram.png")
chart
