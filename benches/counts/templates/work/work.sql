create table item(id integer primary key, kind integer, weight real, name text);
with recursive n(i) as (select 1 union all select i + 1 from n where i < 400000)
insert into item select i, (i * 7919) % 1000, i * 0.5, 'item ' || ((i * 104729) % 400000) from n;
create index by_name on item(name);
create table kind(id integer primary key, label text);
with recursive n(i) as (select 0 union all select i + 1 from n where i < 999) insert into kind select i, 'kind ' || i from n;
select count(*), sum(weight) from item where name like '%99%';
select label, count(*) from item join kind on kind.id = item.kind where weight > 1000 group by label order by 2 desc, 1 limit 5;
select count(*) from item a join item b on a.name = b.name where a.id % 4 = 0;
select name, weight from item order by name desc limit 3;
