# %% [markdown]
# # Which data of my program waits, and where should it live?
# The program runs as always; its data objects come afterwards, those that wait longest first.

# %%
import sys

import tierloom

given = [] if "ipykernel" in sys.modules else sys.argv[1:]  # in a notebook these are words for its kernel
command = given or [sys.executable, "-c", "print(len(sorted(hash(n * 7919) % 10**9 for n in range(10**6))))"]

# %%
recorded = tierloom.record(command)
for warning in recorded.warnings:
    print("warning:", warning["text"])
recorded.save("own.profile")
profile = tierloom.profile("own.profile")

# %% [markdown]
# Waiting is a share of the samples, with its 95 % confidence interval: what overlaps zero may be nothing.

# %%
for item in sorted(profile.objects, key=lambda item: -item["stall"]["share"])[:10]:
    stall = item["stall"]
    print(f"{item['name'][:40]:40} {item['size_bytes']:14,} B  waits {stall['share']:6.1%} "
          f"({stall['low']:.1%} to {stall['high']:.1%})")  # fmt: skip

# %% [markdown]
# With DRAM for half of it, and a CXL card for the rest, where should each object be?

# %%
answer = tierloom.plan(profile, "liu-a", fast_memory="50%")
print(answer)
for row in answer.plan().rows():
    print(f"{row['object'][:40]:40} {row['place']}")

# %% [markdown]
# The plan is a file to read, edit, keep in git, and run: `tierloom run --plan own.plan.toml -- COMMAND`.

# %%
answer.plan().save("own.plan.toml")
