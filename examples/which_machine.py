# %% [markdown]
# # Which of these machines runs my program fastest, and why?
# Every profile is planned for every machine of the catalog; what does not fit says so.

# %%
import sys

import tierloom

given = [] if "ipykernel" in sys.modules else sys.argv[1:]  # in a notebook these are words for its kernel
profiles = [tierloom.profile(name) for name in given or ["mg-e", "cg-e"]]
machines = [tierloom.machine(name) for name in tierloom.Machine.names()]


# %%
def row(profile: tierloom.Profile, machine: tierloom.Machine) -> dict:
    """Time and limit of the best placement, with all cores of the first socket."""
    cores = int(machine.data["sockets"][0]["cores"]["value"])
    try:
        answer = tierloom.plan(profile, machine, threads=cores)
    except tierloom.TierloomError as error:
        return {"profile": profile.name, "machine": machine.name, "limit": str(error).splitlines()[0]}
    best = next(row for row in answer.rows() if row["chosen"])
    return {
        "profile": profile.name,
        "machine": machine.name,
        "threads": cores,
        **{key: best[key] for key in ("policy", "time_s", "low_s", "high_s")},
        "limit": best["bound"],
    }


rows = [row(profile, machine) for profile in profiles for machine in machines]

# %% [markdown]
# Ranges say what the model's assumptions leave open. Where two overlap, the machines cannot be told apart.

# %%
for found in sorted(rows, key=lambda row: (row["profile"], row.get("time_s", float("inf")))):
    time = f"{found['time_s']:9.3f} s ({found['low_s']:.3f} to {found['high_s']:.3f})" if "time_s" in found else "-"
    print(f"{found['profile']:12} {found['machine']:28} {time:34} {found['limit']}")
