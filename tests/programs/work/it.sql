create table t(k integer primary key, v text, w real);
with recursive n(i) as (select 1 union all select i + 1 from n where i < 150000)
  insert into t select i, printf('%08d', (i * 7919) % 150000), i * 0.5 from n;
create index by_v on t(v);
select count(*), sum(w), max(v) from t;
select sum(a.w) from t a join t b on a.v = b.v where b.k % 10 = 0;
