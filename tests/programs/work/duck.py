# ruff: noqa: S608, T201 (a script that prints)
import duckdb

made = "select i, i % 1000 as g, (i * 7919) % 100003 as v from range(2000000) t(i)"
print(duckdb.sql(f"select count(*), sum(v), max(g) from ({made})").fetchall())
print(duckdb.sql(f"select g, sum(v) as s from ({made}) group by g order by s desc, g limit 5").fetchall())
print(duckdb.sql(f"select count(*) from ({made}) a join ({made}) b on a.v = b.i where a.g = 7").fetchall())
