"""Kernels that ran on an H200 or an H100 against what `expand` says of them, as the tables of docs/expand.md.

    .venv/bin/python benches/gpu_memory.py [h200|h100]

The set is fitted to copies, loads and faults of single blocks of that GPU, and to none of what is compared here.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tierloom.gpu_expansion import ParameterSet, expand
from tierloom.gpu_measurement import fit, into_set, kept

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tierloom.schema import ExpansionDoc

LINE_BYTES = 64
WHERE = {"gpu-dram": "device_ns", "uvm": "managed_ns"}
OPTIONS: dict[str, Any] = {"gpu": "here", "prefetch": "tree", "local_ratio": 1.0}


def main() -> None:
    name = sys.argv[1] if len(sys.argv) > 1 else "h200"
    measured = kept(name)
    with tempfile.TemporaryDirectory() as folder:
        text = into_set(ParameterSet.load().text, fit(measured))
        parameters = ParameterSet(text, f"{name}.toml")
        rows = [*kernels(measured, parameters, Path(folder)), *touches(measured, parameters, Path(folder))]
    print("| what ran | memory | measured | `expand` | off |\n|---|---|---:|---:|---:|")
    for what, memory, ran_ns, ours_ns in rows:
        print(f"| {what} | {memory} | {shown(ran_ns)} | {shown(ours_ns)} | {(ours_ns / ran_ns - 1) * 100:+.0f} % |")


def kernels(
    measured: dict[str, Any], parameters: ParameterSet, folder: Path
) -> Iterator[tuple[str, str, float, float]]:
    for kernel in measured["kernels"]:
        for config, key in WHERE.items():
            ran = run(kernel, config, parameters, folder)
            if ran:
                name = f"{kernel['workload']}, {kernel['bytes'] >> 20} MiB"
                yield name, "GPU" if config == "gpu-dram" else "managed, first use", kernel[key], ran["time_s"] * 1e9


def run(kernel: dict[str, Any], config: str, parameters: ParameterSet, folder: Path) -> ExpansionDoc | None:
    """A kernel that `expand` has, too; its own `rsum` writes partial sums, which the one that ran does not."""
    name, size = kernel["workload"], kernel["bytes"]
    if name == "gather":
        lines = np.random.default_rng(2).integers(0, size // LINE_BYTES, size // LINE_BYTES // 4)
        threads = np.arange(len(lines)) * 4224 // len(lines)
        return expand(trace=trace(lines * LINE_BYTES, threads, folder), config=config, parameters=parameters, **OPTIONS)
    if name == "sum":
        return None
    return expand(name, config=config, parameters=parameters, data_bytes=size, passes=1.0, **OPTIONS)


def touches(
    measured: dict[str, Any], parameters: ParameterSet, folder: Path
) -> Iterator[tuple[str, str, float, float]]:
    for each in measured["faults"]:
        alone = each["touches"] == "one after another"
        fitted = each["stride"] == 2 << 20 and (alone or each["count"] == 1024)
        # Where most touches find their page, the one that ran waited for each load; threads of `expand` do not.
        if fitted or each["stride"] < 64 << 10:
            continue
        at = np.arange(each["count"])
        file = trace(at * each["stride"], at * 0 if alone else at, folder)
        ran = expand(trace=file, config="uvm", parameters=parameters, **OPTIONS)
        name = f"{each['count']} touches {each['stride'] >> 10} KiB apart, {each['touches']}"
        yield name, "managed, first use", each["ns"], ran["time_s"] * 1e9


def trace(addresses: np.ndarray, threads: np.ndarray, folder: Path) -> Path:
    rows = np.zeros(len(addresses), dtype=[("address", "<u8"), ("thread", "<u4"), ("store", "<u4")])
    rows["address"], rows["thread"] = addresses, threads
    np.save(folder / "run.npy", rows)
    return folder / "run.npy"


def shown(ns: float) -> str:
    return f"{ns / 1e3:.0f} µs" if ns < 1e6 else f"{ns / 1e6:.1f} ms"


if __name__ == "__main__":
    main()
