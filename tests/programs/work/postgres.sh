# A fresh database, pgbench, sums that must hold, and its orderly end.
set -e
exec 2>&1
bin=$(ls -d /usr/lib/postgresql/*/bin | tail -1)
as=""
if [ "$(id -u)" -eq 0 ]; then chown nobody . && as="setpriv --reuid=65534 --regid=65534 --clear-groups"; fi
export HOME="$PWD"
$as $bin/initdb -D data -A trust -U postgres --no-sync --locale=C > init.log
$as $bin/postgres -D data -k "$PWD" -c listen_addresses= -c fsync=off -c shared_buffers=64MB > server.log 2>&1 &
until $bin/pg_isready -q -h "$PWD"; do sleep 0.05; done
pgbench -h "$PWD" -U postgres -i -q -s 2 postgres > fill.log 2>&1
pgbench -h "$PWD" -U postgres -c 4 -j 2 -t 400 postgres > load.log 2>&1
grep 'number of transactions actually processed' load.log
psql -h "$PWD" -U postgres -At -c 'select count(*), sum(abalance) = (select sum(delta) from pgbench_history)
  from pgbench_accounts' postgres
psql -h "$PWD" -U postgres -At -c 'select count(*), sum(a) from (select generate_series(1, 300000) a order by 1 desc) t'   postgres
kill -INT $!
wait $! || true
tail -1 server.log
