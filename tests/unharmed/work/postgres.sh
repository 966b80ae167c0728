# A fresh cluster in the background, several sessions, a backend that is ended from outside, an orderly stop.
set -e
exec 2>&1
bin=$(ls -d /usr/lib/postgresql/*/bin | tail -1)
as=""
if [ "$(id -u)" -eq 0 ]; then chown nobody . && as="setpriv --reuid=65534 --regid=65534 --clear-groups"; fi
ask() { psql -h "$PWD" -U postgres -At postgres "$@"; }
$as "$bin/initdb" -D data -A trust -U postgres --no-sync --locale=C > init.log
$as "$bin/pg_ctl" -D data -o "-k $PWD -c listen_addresses= -c fsync=off -c shared_buffers=32MB" -l server.log -w start > start.log
ask -c 'create table t as select i, md5(i::text) as h from generate_series(1, 50000) i; create index on t (h)'
for i in 1 2 3; do ask -c 'select count(*), sum(i) from (select * from t order by h desc) u' & done
wait
ask -c 'select pg_terminate_backend(pg_backend_pid())' | head -1 | cut -c1-40 || true
ask -c 'select count(*) from t'
$as "$bin/pg_ctl" -D data -m fast -w stop > stop.log
echo "stopped $?"
