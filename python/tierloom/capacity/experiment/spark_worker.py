"""One run of Spark in a process of its own: a session with the heap that was asked for, one job, what it took.

Started by `spark`. Java is a child of this process, so it is in the same control group; its storage traffic and
CPU time are read from ``/proc`` while it lives.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tierloom.capacity.experiment import counters
from tierloom.units import MIB

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FEATURES = 64
PASSES = 10
"""Iterations of the support vector machine (HiBench's default for its SVM, ``hibench.svm.numIterations``, is 100:
a tenth of it keeps a run short)."""

PARTS = 16
"""Pieces of every table: enough that one is small against the heap."""

NAME_BYTES = 64
GROUPS = 1000


def run(request: dict[str, Any]) -> dict[str, Any]:
    """Starts Spark, warms nothing, and times the job."""
    counters.join(request["groups"])
    os.environ["PYSPARK_PYTHON"] = sys.executable
    spark = _session(request)
    try:
        gateway: Any = spark.sparkContext._gateway  # noqa: SLF001 (the one way to the process that does the work)
        java = gateway.proc.pid
        job = {"svm": _svm, "shuffle": _shuffle}[request["job"]]
        answers, took = counters.timed(
            lambda: job(spark, request["rows"], request["seed"]), lambda: counters.cpu_of(java), java
        )
        spilled = _largest(Path(request["spill_folder"]))
        return {**took, "spilled_bytes": spilled, "answers": answers, "engine": f"Spark {spark.version}"}
    finally:
        spark.stop()


def _session(request: dict[str, Any]) -> SparkSession:
    from pyspark.sql import SparkSession

    settings = {
        "spark.driver.memory": f"{request['memory_bytes'] // MIB}m",
        "spark.local.dir": request["spill_folder"],
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.default.parallelism": str(PARTS),
        "spark.sql.shuffle.partitions": str(PARTS),
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.autoBroadcastJoinThreshold": "-1",
        "spark.log.level": "ERROR",
    }
    builder = SparkSession.builder.master(f"local[{request['threads']}]").appName("tierloom")
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def _svm(spark: SparkSession, rows: int, seed: int) -> list[str]:
    """Ten passes over rows that are kept in memory as far as it goes, and on disk beyond."""
    from pyspark import StorageLevel
    from pyspark.ml.classification import LinearSVC
    from pyspark.ml.feature import VectorAssembler

    names = [f"x{index}" for index in range(FEATURES)]
    drawn = [f"rand({seed + index}) AS {name}" for index, name in enumerate(names)]
    table = spark.range(0, rows, 1, PARTS).selectExpr(*drawn)
    half = FEATURES // 2
    said = f"CASE WHEN {' + '.join(names[:half])} > {' + '.join(names[half:])} THEN 1.0 ELSE 0.0 END AS label"
    packed = VectorAssembler(inputCols=names, outputCol="features").transform(table.selectExpr("*", said))
    kept = packed.select("label", "features").persist(StorageLevel.MEMORY_AND_DISK)
    model = LinearSVC(maxIter=PASSES, regParam=0.01).fit(kept)
    right = sum(1 for each in model.coefficients[:half] if each > 0) + sum(
        1 for each in model.coefficients[half:] if each < 0
    )
    return [str(kept.count()), str(right)]


def _shuffle(spark: SparkSession, rows: int, seed: int) -> list[str]:
    """Two tables joined by a key, grouped, and put in order: three shuffles of long rows."""
    orders = _table(spark, rows // 4, rows // 4, seed)
    items = _table(spark, rows, rows // 4, seed + 1)
    joined = orders.withColumnRenamed("name", "other").join(items, "key")
    grouped = joined.groupBy("key").agg({"name": "max", "other": "max", "*": "count"})
    ordered = grouped.withColumnRenamed("max(name)", "name").withColumnRenamed("count(1)", "count")
    top = ordered.repartitionByRange("name").sortWithinPartitions("name", "key")
    counted = top.groupBy((top["key"] % GROUPS).alias("group")).agg({"count": "sum"})
    found = counted.orderBy("group").collect()
    return [str(len(found)), str(sum(row[1] for row in found))]


def _table(spark: SparkSession, rows: int, keys: int, seed: int) -> DataFrame:
    """Rows with a scattered key and a long name."""
    return spark.range(0, rows, 1, PARTS).selectExpr(
        f"pmod(xxhash64(id, {seed}), {max(keys, 1)}) AS key",
        f"sha2(cast(id * {seed + 2} AS string), {NAME_BYTES * 4}) AS name",
    )


def _largest(folder: Path) -> int:
    """What lies in the folder of spilled and shuffled files at the end."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


if __name__ == "__main__":
    counters.answer(run)
