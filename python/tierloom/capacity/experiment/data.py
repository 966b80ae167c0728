"""TPC-H data in a DuckDB database: made once in a folder, and found there again.

The tables come from the generator `tpchgen-cli` (Apache-2.0), bit for bit those of TPC's dbgen.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

from tierloom.capacity.experiment.queries import TABLES
from tierloom.errors import MeasurementError, MissingPackageError


def database(folder: Path, scale: float) -> Path:
    """The database of a scale factor, made where it is not there yet.

    Raises:
        MissingPackageError: A package is missing.
        MeasurementError: The data could not be made.
    """
    generator = require()
    path = folder / f"tpch-sf{scale:g}.duckdb"
    if path.exists():
        return path
    folder.mkdir(parents=True, exist_ok=True)
    tables = folder / f"tpch-sf{scale:g}.parquet"
    command = [generator, "parquet", "-s", f"{scale:g}", "--output-dir", str(tables), "--quiet"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        message = f"{generator}: {done.stderr.strip()}\nhint: check that {folder} has room for {scale:g} GB"
        raise MeasurementError(message)
    _load(tables, path)
    shutil.rmtree(tables)
    return path


def require() -> str:
    """The generator's path; and DuckDB is there.

    Raises:
        MissingPackageError: A package is missing.
    """
    # It is an executable beside Python's where the virtual environment is not on the path.
    beside = Path(sys.executable).parent / "tpchgen-cli"
    generator = str(beside) if beside.exists() else shutil.which("tpchgen-cli")
    missing = [] if importlib.util.find_spec("duckdb") else ["duckdb"]
    missing += [] if generator else ["tpchgen-cli"]
    if missing or generator is None:
        message = f"{' and '.join(missing)}: not installed\nhint: pip install '.[capacity]'"
        raise MissingPackageError(message)
    return generator


def forget(path: Path) -> None:
    """Drops a file from the page cache, so that every run reads it from storage."""
    file = os.open(path, os.O_RDONLY)
    try:
        os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(file)


def _load(tables: Path, path: Path) -> None:
    """The tables in one database, which appears under its name only when it is whole."""
    import duckdb

    begun = path.with_suffix(".part")
    begun.unlink(missing_ok=True)
    connection = duckdb.connect(str(begun))
    for table in TABLES:
        file = str(tables / f"{table}.parquet")
        connection.execute(f"CREATE TABLE {table} AS SELECT * FROM read_parquet(?)", [file])  # noqa: S608 (our names)
    connection.close()
    begun.rename(path)
