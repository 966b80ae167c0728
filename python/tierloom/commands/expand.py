"""``tierloom expand``: give a GPU more memory than it has, in simulation."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tierloom import outputs
from tierloom.commands import next_command, options, say
from tierloom.commands.function_options import of
from tierloom.commands.groups import Group
from tierloom.errors import RequestError
from tierloom.gpu_expansion import CONFIGS, VARIED, WORKLOADS, ParameterSet, expand
from tierloom.readers import reading

if TYPE_CHECKING:
    from tierloom.schema import ExpansionDoc

ALL = "all"
EXPAND = "gpu_expansion:expand"


@click.group(
    name="expand",
    cls=Group,
    invoke_without_command=True,
    epilog=options.examples(
        "tierloom expand --workload vadd --media dram --config cxl",
        "tierloom expand --workload bfs --media znand --config cxl,cxl-sr,cxl-ds",
    ),
)
@click.option("--workload", metavar="W", help=f"Workload: {', '.join(WORKLOADS)}.")
@of(EXPAND, trace=("FILE", {"type": options.FILE}))
@click.option(
    "--config", default="cxl", show_default=True, metavar="A,B", help=f"Configurations: {', '.join(CONFIGS)}; or all."
)
@of(
    EXPAND,
    media="M",
    gpu="G",
    window="",
    prefetch="",
    ports="N",
    controller_ns="--controller NS",
    link_gb_s="--link GB/S",
    local_ratio="R",
    data_bytes="--data SIZE",
    passes="P",
    tree_entries="N",
    seed="N",
    carry="--check",
)
@click.option(
    "--timeline", type=options.Drawn(), metavar="FILE", help="Draw the last run over time: .png, .svg or .pdf."
)
@click.option("--timeline-step", type=float, default=100.0, metavar="US", help="Step of the series.", show_default=True)
@click.option("--set", "parameter_file", type=options.FILE, metavar="FILE", help="Parameter set; our own by default.")
@click.option(
    "--write-set",
    type=options.Written("parameter set"),
    metavar="FILE",
    help="Write our own parameter set, to be changed, and end.",
)
@options.as_json
@click.pass_context
def verb(ctx: click.Context, /, **given: Any) -> None:  # noqa: ANN401 (the options above, by their names)
    """Simulate a GPU whose data is larger than its memory, over CXL, UVM or GPUDirect storage.

    Every run is held against gpu-dram, a GPU with enough memory. Times are of the simulated kernel.
    """
    if ctx.invoked_subcommand is not None:
        return
    if given["write_set"]:
        outputs.write(given["write_set"], ParameterSet.load().text)
        say.wrote("parameter set", given["write_set"])
        return
    runs = list(run_all(given))
    drawn = draw(runs[-1], given["timeline"]) if given["timeline"] else None
    if given["as_json"]:
        say.document("expansion", {"runs": runs})
    else:
        from tierloom.report.tables import expansions

        say.show(expansions.comparison(runs))
    if drawn:
        say.wrote("time series", drawn)


def run_all(given: dict[str, Any]) -> list[ExpansionDoc]:
    """The yardstick, then every configuration that was asked for."""
    if given["trace"]:
        options.refuse_idle(["passes", "seed"], "beside --trace")
    if given["timeline"] is None:
        options.refuse_idle(["timeline_step"], "without --timeline")
    chosen = configurations(given["config"], given["media"])
    with say.progress(f"simulating {', '.join(chosen)}"):
        return [run_one(config, given) for config in chosen]


def run_one(config: str, given: dict[str, Any]) -> ExpansionDoc:
    """One run; what was not given is left to the parameter set."""
    chosen: dict[str, Any] = {**{name: given[name] for name in VARIED if name in given}, "config": config}
    if given["timeline"]:
        chosen["timeline_ns"] = given["timeline_step"] * 1e3
    parameters = ParameterSet.load(given["parameter_file"])
    return expand(given["workload"], trace=given["trace"], parameters=parameters, **chosen)


def configurations(listed: str, media: str) -> list[str]:
    """The yardstick and the listed configurations; `all` leaves out what needs storage where there is none."""
    from tierloom.report.tables import expansions

    names = [name.strip() for name in listed.split(",") if name.strip()]
    if names == [ALL]:
        names = [name for name in CONFIGS if media != "dram" or name in ("uvm", "cxl")]
    unknown = [name for name in names if name not in CONFIGS]
    if unknown or not names:
        message = f"there is no configuration `{', '.join(unknown)}`\nhint: use some of: {', '.join(CONFIGS)}; or all"
        raise RequestError(message)
    return [expansions.YARDSTICK, *[name for name in names if name != expansions.YARDSTICK]]


def draw(run: ExpansionDoc, path: Path) -> Path:
    """Draws the time series of a run."""
    from tierloom.report import picture
    from tierloom.report.pages import expansion

    picture.save(expansion.picture(run), path)
    return path


@verb.command(
    name="calibrate",
    epilog=options.examples(
        "tierloom expand calibrate --measured h200 -o h200.toml",
        "tierloom expand calibrate --measured h200 --json",
    ),
)
@click.option("--measured", metavar="FILE", help="Measurements taken elsewhere (JSON), or `h200`, `h100`: ours.")
@click.option("-o", "--output", type=options.Written("parameter set"), metavar="FILE", help="Parameter set to write.")
@options.as_json
def calibrate(measured: str | None, output: Path | None, as_json: bool) -> None:
    """Measure copies, loads and page faults on the GPU at hand, and fit the figures that they give.

    Needs nvcc and a GPU with 4 GiB free, and takes half a minute. FILE is what --json prints as `measured`.
    """
    from tierloom import gpu_measurement
    from tierloom.report.tables import expansions

    with say.progress("measuring"):
        figures = gpu_measurement.measure() if measured is None else read_measured(measured)
    found = gpu_measurement.fit(figures)
    if output:
        outputs.write(output, gpu_measurement.into_set(ParameterSet.load().text, found))
    if as_json:
        fitted = asdict(found)
        say.document(
            "gpu-calibration", {"fit": fitted, "measured": figures, "published": expansions.published_copies()}
        )
    else:
        say.show(expansions.calibration(found, figures))
    if output:
        say.wrote("parameter set", output)
        asked = ("--gpu", "here", "--workload", "vadd", "--config", "uvm,cxl", "--prefetch", "tree")
        say.then(next_command.tierloom("expand", "--set", output, *asked))


def read_measured(name: str) -> dict[str, Any]:
    """Measurements of a file, or those of ours that have the name.

    Raises:
        RequestError: The file holds something else.
    """
    from tierloom import gpu_measurement

    if name in gpu_measurement.KEPT:
        return gpu_measurement.kept(name)
    with reading(name, "measurement", "give what `tierloom expand calibrate --json` printed as `measured`"):
        data = json.loads(Path(name).read_text(encoding="utf-8"))
        data = data.get("measured", data)
        missing = [key for key in (*gpu_measurement.MEASURED, *gpu_measurement.LOADS) if key not in data]
        if missing:
            message = f"there is no {', '.join(missing)}"
            raise ValueError(message)
        return dict(data)
