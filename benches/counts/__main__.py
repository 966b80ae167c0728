"""Judges Tierloom's access counts by random programs and by real ones whose counts are known exactly.

    python -m benches.counts random 1-30           makes the programs of these seeds, and counts them
    python -m benches.counts field [NAME...]       fetches, builds and counts real programs
    python -m benches.counts judge [NAME...]       profiles programs that were counted, and prints how far off it is
    python -m benches.counts counted [NAME...]     the same by --count, with what no sample saw
    python -m benches.counts lines [NAME...]       the same of lines from memory, estimated and by --count traffic

Everything lies in --programs, outside the repository. Seeds up to 999 are for development; the gate's begin at 100000.
"""

import argparse
import csv
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import astuple, fields
from pathlib import Path

from . import counted, field, lines, page
from .build import random_program
from .generator import DEVELOPMENT, GATE
from .judge import Verdict, analysed, judged, profiled, recorded
from .program import Program
from .table import HEAD, Line, summary, write
from .truth import truth


def seeds(text: str) -> list[int]:
    """`1-30` or `7`."""
    first, _, last = text.partition("-")
    found = list(range(int(first), int(last or first) + 1))
    if any(seed not in DEVELOPMENT and seed not in GATE for seed in found):
        message = "seeds are 1 to 999 for development, and from 100000 on for the gate"
        raise argparse.ArgumentTypeError(message)
    return found


def show(verdict: Verdict) -> None:
    """Object by object."""
    true, found = sum(one.true for one in verdict.items), sum(one.found for one in verdict.items)
    for one in sorted(verdict.items, key=lambda one: -one.true):
        factor = f"x{one.found / one.true:.3f}" if one.true else "-"
        shares = f"{100 * one.true / true:6.2f} % true {100 * one.found / max(found, 1):6.2f} % found"
        counts = (
            f"reads {one.reads:.3e} found {one.found_reads:.3e}  writes {one.writes:.3e} found {one.found_writes:.3e}"
        )
        print(f"    {shares}  {factor:>8}  {counts}  {one.name}")


def verdicts(program: Program, args: argparse.Namespace) -> list[Verdict]:
    """Of as many recordings as were asked for."""
    names = [f"{args.label}{number}" for number in range(args.times)]
    for name in names:
        if args.again:
            analysed(program, args.tierloom, name)
        elif not args.kept:
            recorded(program, args.tierloom, name, args.option)
    known = truth(program, args.tool)
    return [judged(profiled(program, name), known) for name in names]


def judge(args: argparse.Namespace) -> None:
    """Profiles and prints."""
    folders = [args.programs / name for name in args.names] or sorted(args.programs.iterdir())
    print(",".join(HEAD))
    lines = []
    for program in (Program.read(folder) for folder in folders if (folder / "truth.json").exists()):
        try:
            found = verdicts(program, args)
        except (OSError, RuntimeError, subprocess.SubprocessError) as error:
            print(f"{program.name}: not judged: {error}", file=sys.stderr)
            continue
        lines.append(Line.of(program, found))
        print(",".join(map(str, astuple(lines[-1]))), flush=True)
        if args.verbose:
            show(found[0])
    if args.write:
        write(args.write, lines)
    if len(lines) > 1:
        print(summary(lines))


def judge_counted(args: argparse.Namespace) -> None:
    """Profiles and prints."""
    folders = [args.programs / name for name in args.names] or sorted(args.programs.iterdir())
    table = csv.writer(sys.stdout, lineterminator="\n")
    table.writerow(["program", *(field.name for field in fields(counted.CountedVerdict)), "about"])
    for program in (Program.read(folder) for folder in folders if (folder / "program.json").exists()):
        try:
            found = counted.verdict(program, args.tierloom, args.tool, kept=args.kept, again=args.again)
        except (OSError, RuntimeError, subprocess.SubprocessError) as error:
            print(f"{program.name}: not judged: {error}", file=sys.stderr)
            continue
        table.writerow([program.name, *(f"{value:.4g}" for value in astuple(found)), program.about])
        sys.stdout.flush()


def judge_lines(args: argparse.Namespace) -> None:
    """Profiles and prints."""
    folders = [args.programs / name for name in args.names] or sorted(args.programs.iterdir())
    print("program", *(f"{way}: TVD %,total %" for way in lines.WAYS), sep=",")
    for program in (Program.read(folder) for folder in folders if (folder / "program.json").exists()):
        found = lines.verdicts(program, args.tierloom, args.tool)
        print(program.name, *(f"{one.tvd:.2f},{one.total:+.1f}" for one in found.values()), sep=",", flush=True)


def count(programs: Iterable[Program], tool: Path) -> None:
    """Counts programs, and says how many accesses it has."""
    for program in programs:
        accesses = sum(one.accesses for one in truth(program, tool))
        print(f"{program.name}: {accesses:.4e} accesses  {program.about}", flush=True)


def arguments() -> argparse.Namespace:
    """What was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=Path, default=Path("/tmp/tierloom-counts"))  # noqa: S108 (it says where)
    verbs = parser.add_subparsers(dest="verb", required=True)
    verbs.add_parser("random").add_argument("seeds", type=seeds, nargs="+")
    verbs.add_parser("field").add_argument("names", nargs="*")
    verbs.add_parser("page").add_argument("page", type=Path)
    judging = verbs.add_parser("judge")
    judging.add_argument("--times", type=int, default=1, help="recordings of each program")
    counting = verbs.add_parser("counted")
    for profiling in (judging, counting, verbs.add_parser("lines")):
        profiling.add_argument("names", nargs="*")
        profiling.add_argument("--tierloom", type=Path, default=Path(sys.executable).parent / "tierloom")
    judging.add_argument("--option", action="append", default=[], help="a word for `tierloom profile`")
    judging.add_argument("--label", default="", help="what the profiles' names begin with")
    judging.add_argument("--write", type=Path, metavar="CSV")
    for kept in (judging, counting):
        kept.add_argument("--kept", action="store_true", help="judge the profiles that are there")
        kept.add_argument("--again", action="store_true", help="analyse the recordings that are there again")
    judging.add_argument("--verbose", action="store_true", help="object by object")
    args = parser.parse_args()
    args.tool = args.programs / ".tool"
    return args


def main() -> None:
    """Does one verb."""
    args = arguments()
    if args.verb == "judge":
        judge(args)
    elif args.verb == "counted":
        judge_counted(args)
    elif args.verb == "lines":
        judge_lines(args)
    elif args.verb == "page":
        args.page.write_text(page.written(args.page.read_text(encoding="utf-8")), encoding="utf-8")
    elif args.verb == "random":
        count((random_program(seed, args.programs) for group in args.seeds for seed in group), args.tool)
    else:
        count((field.program(name, args.programs) for name in args.names or field.REAL), args.tool)


if __name__ == "__main__":
    main()
