"""Holds the counts of the recorded programs against valgrind's DHAT, which counts what the machine code does.

Every program runs one round under DHAT, at -O2 and -O3, and once in its counted build. Bytes read and written
of each object must agree. By hand: it takes minutes. Usage: recorded_truth.py FOLDER (as their Makefile made it).
"""

import json
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "workloads"))
from check_truth import deviation, measured

TOLERANCE = 0.001


def counts(program: pathlib.Path) -> dict[str, tuple[int, int]]:
    """Bytes read and written of each object, by DHAT."""
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder, "dhat.json")
        command = ["valgrind", "--tool=dhat", f"--dhat-out-file={out}", str(program), "1"]
        subprocess.run(command, check=True, capture_output=True)
        return measured(out)


def check(folder: pathlib.Path, name: str, level: str) -> bool:
    """Prints a line for each object that deviates, and one for the program."""
    done = subprocess.run([folder / "counted" / name, "1"], check=True, capture_output=True, text=True)
    dhat = counts(folder / level / name)
    worst = 0.0
    for item in json.loads(done.stdout)["objects"]:
        reads, writes = dhat.get(item["name"], (0, 0))
        off = max(deviation(item["read_bytes"], reads), deviation(item["write_bytes"], writes))
        worst = max(worst, off)
        if off > 0:
            print(
                f"    {item['name']:<12} read {item['read_bytes']:>12} counted {reads:>12}"
                f"  write {item['write_bytes']:>12} counted {writes:>12}  {off:8.4%}"
            )
    print(f"{level}/{name:<16} worst object {worst:8.4%}", flush=True)
    return worst <= TOLERANCE


def main() -> None:
    """Checks all programs, or those that are named."""
    folder = pathlib.Path(sys.argv[1]).resolve()
    names = sys.argv[2:] or sorted(path.name for path in (folder / "counted").iterdir() if not path.suffix)
    agreed = [check(folder, name, level) for name in names for level in ("O2", "O3")]
    sys.exit(0 if all(agreed) else 1)


if __name__ == "__main__":
    main()
