# A server on a socket in this folder, a standard load, exact counts, and its orderly end.
exec 2>&1
redis-server --port 0 --unixsocket "$PWD/redis.sock" --save '' --appendonly no --daemonize no > server.log &
until [ "$(redis-cli -s redis.sock ping)" = PONG ]; do sleep 0.05; done 2>/dev/null
redis-benchmark -s redis.sock -t set,lpush,lrange_100 -n 8000 -d 200 -q > load.txt
grep -c 'requests per second' load.txt
redis-cli -s redis.sock eval "for i = 1, 20000 do redis.call('set', 'k' .. i, string.rep('x', 100 + i % 900)) end   return redis.call('dbsize')" 0
redis-cli -s redis.sock llen mylist
redis-cli -s redis.sock shutdown nosave
wait $!
echo "exit $?"
