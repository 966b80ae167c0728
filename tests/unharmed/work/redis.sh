# A server that snapshots in a child, then one in the background, and their orderly ends.
exec 2>&1
start() { redis-server --port 0 --unixsocket "$PWD/redis.sock" --dir "$PWD" --logfile server.log "$@"; }
ask() { redis-cli -s redis.sock "$@"; }
ready() { until [ "$(ask ping)" = PONG ]; do sleep 0.05; done 2>/dev/null; }
start &
ready
ask eval "for i = 1, 20000 do redis.call('set', 'k' .. i, string.rep('x', 100 + i % 900)) end return redis.call('dbsize')" 0
ask bgsave
until ask info persistence | grep -q rdb_bgsave_in_progress:0; do sleep 0.05; done
ask info persistence | grep rdb_last_bgsave_status
ask shutdown nosave
wait $!
echo "exit $?"
start --daemonize yes
ready
ask dbsize
ask shutdown nosave
while [ -S redis.sock ]; do sleep 0.05; done
