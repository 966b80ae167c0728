"""``tierloom profile``: run a program unchanged and see how it uses its data."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tierloom import counted_run, profiler
from tierloom.commands import next_command, occupied, options, profile_names, say
from tierloom.commands.function_options import of
from tierloom.errors import RequestError
from tierloom.units import span_text

if TYPE_CHECKING:
    from contextlib import AbstractContextManager


class Counted(click.Choice[str]):
    """What is counted. The program's name may stand there, where `--` was left out."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:  # noqa: ANN401
        """One of the choices."""
        if value not in self.choices:
            hint = f"if that is the program, write --count -- {value}"
            self.fail(f"{value!r} is not one of {', '.join(self.choices)}; {hint}", param, ctx)
        return super().convert(value, param, ctx)


@click.command(
    name="profile",
    context_settings=options.THROUGH,
    epilog=options.examples(
        "tierloom profile -o sort.profile -- sort --parallel=1 numbers.txt",
        "tierloom profile --hz 250 --keep gzip.recording -- gzip --keep --force numbers.txt",
    ),
)
@options.output_folder("Folder to write; CMD.profile, or that of the script which it runs, by default.", or_file=True)
@click.option(
    "--hz",
    type=click.IntRange(1, 10_000),
    metavar="N",
    help=f"Samples per second of CPU time; by default {profiler.DEFAULT_HZ['perf']}, "
    f"{profiler.COUNTED_HZ} with --count, and {profiler.DEFAULT_HZ['ptrace']} by ptrace.",
)
@of(
    "profiler:record",
    repeat=("N", {"type": click.IntRange(min=0)}),
    backend="",
    windows="",
    bursts="SHARE",
    count=(
        "",
        {"type": Counted(counted_run.COUNTS), "is_flag": False, "flag_value": counted_run.COUNTS[0], "default": None},
    ),
    llc="SIZE",
    keep=("FILE", {"type": options.FILE}),
)
@click.option(
    "--from",
    "recorded_file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Run nothing: read samples that `perf record` or `perf mem record` took (perf.data).",
)
@of("profiler:import_perf", process="NAME|PID")
@options.binaries
@options.as_json
@click.argument("command", nargs=-1, metavar="-- CMD…", type=click.UNPROCESSED)
@click.pass_context
def verb(
    ctx: click.Context,
    /,
    output: Path | None,
    recorded_file: Path | None,
    process: str | None,
    binaries: tuple[Path, ...],
    as_json: bool,
    command: tuple[str, ...],
    **asked: Any,  # noqa: ANN401 (as `profiler.record` takes it)
) -> None:
    """Run CMD unchanged and find its data objects and how they are touched.

    CMD keeps its input, output and exit code; the table of objects goes to stderr. Under --json
    CMD's output goes to stderr too, so that stdout holds the profile and nothing else. A program
    that cannot be started ends with 127 (not found) or 126 (not executable), as in a shell.

    With --count CMD runs twice, and the second time takes 30 to 50 times as long, with --count traffic up to 140 times;
    its output then goes nowhere. Write `--count -- CMD`, where no kind of count stands before CMD. In both runs
    GLIBC_TUNABLES has the C library do without AVX-512, which valgrind does not know.

    Where this cannot run, record there with perf in one of these ways, and read the file here with --from:

    \b
      $ perf mem record -- CMD
      $ perf record -d -e cpu-clock:u \\
          --user-regs=ax,bx,cx,dx,si,di,bp,sp,ip,flags,r8,r9,r10,r11,r12,r13,r14,r15 -- CMD

    Such files name no allocations, so heap objects appear by their mappings. Samples of cycles with these registers
    are read as CPU time, too.
    """  # noqa: D301 (click reads the backspace)
    if recorded_file is not None:
        if command:
            message = f"--from {recorded_file} runs nothing, so there can be no CMD\nhint: leave one of them out"
            raise RequestError(message)
        options.refuse_idle(["repeat", "keep", "windows", "bursts", "count", "llc"], "beside --from")
        read(recorded_file, output, process=process, binaries=binaries, as_json=as_json)
        return
    options.refuse_idle(["process", "binaries"], "without --from")
    if asked["count"] != "traffic":
        options.refuse_idle(["llc"], "without --count traffic")
    if not command:
        raise click.MissingParameter(param_hint="'-- CMD…'", param_type="argument")
    folder = occupied.named(output, profile_names.default_name(command), "profile")
    replaced = profile_names.replaced(folder, command)
    with say.program_output(to_stderr=as_json), ExitStack() as shown:
        name = folder.name.removesuffix(".profile")
        recorded = profiler.record(command, name=name, folder=folder, **_told(shown, **asked), **asked)
    from tierloom.report import verdicts
    from tierloom.report.program_endings import ended
    from tierloom.report.tables import profiles

    recorded.save(folder)
    if as_json:
        say.document("profile", {**recorded.profile.data})
    else:
        say.tell(
            verdicts.waited(recorded.profile), profiles.objects(recorded.profile), *profiles.phases(recorded.profile)
        )
    say.tell(ended(recorded.profile.data["program"]))
    say.tell(*replaced)
    tell_end(recorded, folder, asked["keep"])
    not_counted = "not_counted" in [warning["kind"] for warning in recorded.warnings]
    ctx.exit(recorded.exit_code or int(not_counted))


def _told(shown: ExitStack, *, repeat: int, count: str, **_: Any) -> dict[str, Any]:  # noqa: ANN401 (as `verb` has it)
    """What tells how far it is, with what is shown meanwhile."""

    def repeating(number: int) -> AbstractContextManager[None]:
        if number == 1:
            say.tell(f"CMD runs {repeat} times without the profiler first; its output goes nowhere")
        return say.elapsing(f"run {number} of {repeat} without the profiler")

    def counting(took_s: float) -> None:
        low, high = counted_run.SLOWER[count]
        until = f"{span_text(low * took_s)} to {span_text(high * took_s)}"
        say.tell(f"counting: CMD runs a second time, under valgrind, {low} to {high} times as long: {until}")
        shown.enter_context(say.elapsing(f"counting every instruction, of {until}"))

    def analysing(samples: int) -> None:
        shown.close()
        shown.enter_context(say.progress(f"analysing {samples:,} samples"))

    return {"repeating": repeating, "counting": counting, "analysing": analysing}


def tell_end(recorded: profiler.Recorded, folder: Path, keep: Path | None = None) -> None:
    """What to know of a profile, where it is, and what to do with it."""
    for warning in recorded.warnings:
        say.warn(warning["text"])
    if keep is not None:
        say.wrote("recording", keep)
        for counts in profiler.kept_counts(keep):
            say.wrote("counts", counts)
    say.wrote("profile", folder)
    if recorded.profile.data["objects"]:
        say.then(next_command.tierloom("plan", folder, "--machine", "liu-a"))


def read(file: Path, output: Path | None, *, process: str | None, binaries: tuple[Path, ...], as_json: bool) -> None:
    """Makes a profile of samples that are already there."""
    name = output.name.removesuffix(".profile") if output else None
    with say.progress(f"working out {file}"):
        recorded = profiler.import_perf(file, name, process=process, binaries=binaries)
    folder = occupied.named(output, f"{recorded.profile.name}.profile", "profile")
    recorded.save(folder)
    show_profile(recorded, folder, as_json=as_json)


def show_profile(recorded: profiler.Recorded, folder: Path, *, as_json: bool) -> None:
    """A profile that was made without running anything."""
    from tierloom.report import verdicts
    from tierloom.report.tables import profiles

    if as_json:
        say.document("profile", {**recorded.profile.data})
    else:
        data = recorded.profile
        say.show(verdicts.waited(data), profiles.objects(data), *profiles.data_sources(data))
    tell_end(recorded, folder)
