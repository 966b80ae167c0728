"""``tierloom capacity measure``: real jobs on this machine with more and less memory."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass, fields
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from tierloom import outputs
from tierloom.arguments import name_list
from tierloom.commands import next_command, options, say
from tierloom.commands.groups import Group
from tierloom.errors import RequestError
from tierloom.units import amount_in_bytes, count_text

if TYPE_CHECKING:
    from collections.abc import Callable

    from tierloom.capacity.experiment.key_value import Study
    from tierloom.capacity.experiment.processes import Measured, Progress

S = TypeVar("S")

UNHELD = (
    "no control group could be made: spilled data may have stayed in the page cache and never touched the storage; "
    "run as root, or in a delegated group (systemd-run --user --scope -p Delegate=yes)"
)


@click.group(
    name="measure",
    cls=Group,
    epilog=options.examples(
        "tierloom capacity measure duckdb --scale 0.02 --memory 64MiB,128MiB,256MiB --repeats 1 -o small.csv",
        "tierloom capacity measure records --data 32MiB --memory 16MiB,48MiB --operations 5000 --repeats 1",
    ),
)
def measure() -> None:
    """Run a job with more and less memory, and write what it took for `capacity fit`.

    Each run is a process of its own in a control group, with a cold cache, in a seeded random order.
    """


@dataclass(frozen=True)
class Asked:
    """What every study is told, and where its runs go."""

    memory: tuple[int, ...]
    repeats: int
    storage: str | None
    folder: Path
    seed: int
    append: bool
    output: Path | None
    as_json: bool

    def __post_init__(self) -> None:
        """Refuses before hours of measuring what could not be kept after them."""
        if self.output is not None and not self.output.resolve().parent.is_dir():
            message = f"{self.output}: its folder is not there\nhint: make it, or name another file with -o"
            raise RequestError(message)
        if self.append and self.output is None:
            message = "--append has no file to append to\nhint: name it with -o"
            raise RequestError(message)

    def shared(self) -> dict[str, Any]:
        """What every `Study` has."""
        return {
            "folder": self.folder,
            "memories": self.memory,
            "repeats": self.repeats,
            "storage_bytes_s": amount_in_bytes(self.storage, 0) if self.storage else None,
            "seed": self.seed,
        }

    def carry_out(self, run: Callable[[S, Progress], Measured], wanted: S, told: str) -> None:
        """Runs the study under a progress bar and keeps what was found."""
        with say.progress_bar("measuring") as bar:
            found = run(wanted, _paced(bar))
        self._keep(found, [found.engine, told, self._disk(found)])

    def _keep(self, found: Measured, notes: list[str]) -> None:
        """Writes the runs, after those that the file has already, or prints them."""
        from tierloom.capacity import run_files

        if not found.grouped:
            say.warn(UNHELD)
        earlier = run_files.read(self.output) if self.append and self.output and self.output.exists() else []
        every = [*earlier, *found.runs]
        text = run_files.write(every, notes)
        if self.output:
            outputs.write(self.output, text)
            say.wrote(count_text(len(every), "run"), self.output)
            say.then(next_command.tierloom("capacity", "fit", self.output))
        if self.as_json:
            say.document(
                "spill-runs", {"engine": found.engine, "grouped": found.grouped, "runs": [asdict(run) for run in every]}
            )
        elif not self.output:
            say.text(text)

    def _disk(self, found: Measured) -> str:
        """What a reader of the file should know of the storage."""
        if not found.grouped:
            return "no control group: spills may have stayed in the page cache"
        return f"in control groups, storage {f'held to {self.storage} each second' if self.storage else 'as it is'}"


def study(function: Callable[..., None]) -> Callable[..., None]:
    """Options of every study, handed over as one :class:`Asked`."""

    @wraps(function)
    def command(**given: Any) -> None:  # noqa: ANN401 (click's own)
        common = {field.name: given.pop(field.name) for field in fields(Asked)}
        common["memory"] = tuple(amount_in_bytes(text, 0) for text in name_list(common["memory"]) or [])
        function(Asked(**common), **given)

    for option in (
        options.as_json,
        click.option(
            "-o",
            "--output",
            type=options.Written("table of runs"),
            metavar="FILE",
            help="CSV file for `capacity fit`; stdout by default.",
        ),
        click.option("--append", is_flag=True, help="Keep the runs that the file has already."),
        click.option("--seed", type=int, default=1, show_default=True, help="Of the order of the runs."),
        click.option(
            "--folder",
            type=click.Path(path_type=Path, file_okay=False),
            default=Path("capacity-data"),
            show_default=True,
            help="For data and spill files: its disk is the storage.",
        ),
        click.option("--storage", metavar="SIZE", help="Limit of storage bandwidth, bytes each second: 200MB."),
        click.option(
            "--repeats",
            type=click.IntRange(min=1),
            default=3,
            show_default=True,
            help="Runs of each; fits take medians.",
        ),
        click.option("--memory", required=True, metavar="A,B", help="Memory limits of the job."),
    ):
        command = option(command)
    return command


def key_value(mix: str, mixes: str, *, data: str, threads: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Options of a study of a key-value store: the usual mix, those that there are, and whose data and threads."""
    declared = (
        click.option("--mix", default=mix, show_default=True, help=mixes),
        click.option("--data", default="256MiB", show_default=True, metavar="SIZE", help=data),
        click.option(
            "--operations", type=click.IntRange(min=100), default=100_000, show_default=True, help="Of a run."
        ),
        click.option("--threads", type=click.IntRange(min=1), default=4, show_default=True, help=threads),
        click.option("--theta", type=float, default=0.99, show_default=True, help="Zipf's exponent; 0 is even."),
    )

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        for option in reversed(declared):
            function = option(function)
        return function

    return decorate


def told(wanted: Study, data: str) -> str:
    """What a reader of the file should know of a study of a key-value store."""
    touched = f"{wanted.operations} operations by {wanted.threads} threads, Zipf {wanted.theta:g}"
    return f"{wanted.mix}, {data} of records, {touched}"


@measure.command(
    name="duckdb",
    epilog=options.examples(
        "tierloom capacity measure duckdb --scale 0.02 --memory 64MiB,128MiB,256MiB --repeats 1 -o small.csv",
        "tierloom capacity measure duckdb --scale 0.02 --memory 64MiB,96MiB,128MiB --repeats 1 --json",
    ),
)
@click.option(
    "--scale", type=float, default=1.0, show_default=True, metavar="SF", help="TPC-H's scale factor: GB of raw data."
)
@click.option("--streams", default="1", show_default=True, metavar="A,B", help="Streams of queries at once.")
@click.option("--threads", type=click.IntRange(min=1), default=2, show_default=True, help="Threads of the database.")
@click.option("--queries", metavar="A,B", help="Queries of a stream: numbers of TPC-H, rank, pairs, history.")
@study
def duckdb_(asked: Asked, *, scale: float, streams: str, threads: int, queries: str | None) -> None:
    """DuckDB on TPC-H data, spilling to storage where its memory ends.

    Needs `pip install '.[capacity]'`. The control group is made as root, or where one is delegated to
    you; without, spilled files stay in the page cache.
    """
    from tierloom.capacity.experiment import duck
    from tierloom.capacity.experiment.queries import DEFAULT

    wanted = duck.Study(
        **asked.shared(),
        scale=scale,
        streams=tuple(_whole(text) for text in name_list(streams) or []),
        threads=threads,
        queries=tuple(name_list(queries) or []) if queries else DEFAULT,
    )
    ran = f"TPC-H scale factor {scale:g}, queries {' '.join(wanted.queries)}, {threads} threads"
    asked.carry_out(duck.measure, wanted, ran)


@measure.command(
    name="records",
    epilog=options.examples(
        "tierloom capacity measure records --data 32MiB --memory 16MiB,48MiB --operations 5000 --repeats 1",
        "tierloom capacity measure records --mix ycsb-a --data 32MiB --memory 16MiB,48MiB --operations 5000"
        " --repeats 1 --json",
    ),
)
@key_value("ycsb-c", "ycsb-a, ycsb-b, ycsb-c or ycsb-f.", data="All records.", threads="Threads of the store.")
@study
def records_(asked: Asked, *, data: str, **given: Any) -> None:  # noqa: ANN401 (as the study has them)
    """Records of a file, read and updated by YCSB's mixes, with as much page cache as the limit allows.

    That takes a control group: as root, or where one is delegated to you. Without, all data fits.
    """
    from tierloom.capacity.experiment import records

    wanted = records.Study(**asked.shared(), data_bytes=amount_in_bytes(data, 0), **given)
    asked.carry_out(records.measure, wanted, told(wanted, data))


@measure.command(
    name="redis",
    epilog=options.examples(
        "tierloom capacity measure redis --data 4MiB --memory 4MiB,64MiB --operations 4000 --repeats 1 -o store.csv",
        "tierloom capacity measure redis --mix ycsb-e --data 4MiB --memory 4MiB,64MiB --operations 1000 --repeats 1"
        " --json",
    ),
)
@key_value("ycsb-b", "ycsb-a to ycsb-f.", data="All records, of 1000 bytes.", threads="Threads of the client.")
@click.option("--server", metavar="NAME", help="valkey-server or redis-server by default, whichever is there.")
@study
def redis_(asked: Asked, *, data: str, **given: Any) -> None:  # noqa: ANN401 (as the study has them)
    """Redis or Valkey under YCSB's mixes, with a file behind it for what its memory cannot hold.

    `--memory` is the server's own limit; it puts out what was used least recently, and that is read from the
    file again, past the page cache. Where everything fits, the store is in memory alone.
    """
    from tierloom.capacity.experiment import redis_store

    wanted = redis_store.Study(**asked.shared(), data_bytes=amount_in_bytes(data, 0), **given)
    asked.carry_out(redis_store.measure, wanted, told(wanted, data))


@measure.command(
    name="spark",
    epilog=options.examples(
        "tierloom capacity measure spark --job shuffle --rows 200000 --memory 512MiB,1GiB --repeats 1 -o shuffle.csv",
        "tierloom capacity measure spark --job svm --rows 20000 --memory 512MiB,1GiB --repeats 1 --json",
    ),
)
@click.option("--job", type=click.Choice(["svm", "shuffle"]), default="shuffle", show_default=True, help="What runs.")
@click.option("--rows", type=click.IntRange(min=1000), default=4_000_000, show_default=True, help="Of the data.")
@click.option("--threads", type=click.IntRange(min=1), default=2, show_default=True, help="Threads of Spark.")
@study
def spark_(asked: Asked, *, job: str, rows: int, threads: int) -> None:
    """Spark: a support vector machine over cached rows (svm), or a join that shuffles.

    `--memory` is Java's heap; what Spark cannot keep in it goes to the folder's disk. Needs Java and
    `pip install '.[spark]'`.
    """
    from tierloom.capacity.experiment import spark

    wanted = spark.Study(**asked.shared(), job=job, rows=rows, threads=threads)
    asked.carry_out(spark.measure, wanted, f"{job}, {rows} rows, {threads} threads")


def _paced(bar: Callable[[float, float, str], None]) -> Callable[[int, int, str], None]:
    """Tells the bar how long the rest takes if runs go on as they did."""
    start = time.monotonic()

    def tell(done: int, of: int, words: str) -> None:
        passed = time.monotonic() - start
        bar(done / of, passed / done * (of - done) if done else 0.0, words)

    return tell


def _whole(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        message = f"`{text}` is no number of streams\nhint: write for example 1,2,4"
        raise RequestError(message)
    return int(text)
