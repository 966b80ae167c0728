# %% [markdown]
# # How little DRAM will do beside CXL memory?
# The frontier of time against fast memory, over the memories of the first socket (near DRAM and the card), for a
# growing number of threads: more threads ask for more bandwidth, and a card carries only so much.

# %%
import sys

from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

import tierloom

name, machine_name = (sys.argv[1:] + ["mg-e", "liu-a"][len(sys.argv) - 1 :])[:2]
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
figure = Figure(figsize=(7, 4), layout="constrained")
axes = figure.subplots()
for threads in THREADS:
    points = sorted((row["fast_gib"], row["slowdown"] - 1.0) for row in rows if row["threads"] == threads)
    axes.plot(*zip(*points, strict=True), marker=".", label=f"{threads} threads")
axes.set(xlabel="DRAM, GiB", ylabel="slower than the best by", title=f"{profile.name} on {machine.name}")
axes.yaxis.set_major_formatter(PercentFormatter(1.0))
axes.legend()
figure.savefig("how_much_dram.png", dpi=120)
figure
