# A server with four threads, set and get, its end by a signal.
exec 2>&1
user=""
[ "$(id -u)" -eq 0 ] && user="-u root"
memcached -s "$PWD/memcached.sock" -t 4 -m 64 $user &
until [ -S memcached.sock ]; do sleep 0.05; done
python3 - <<'END'
import socket
with socket.socket(socket.AF_UNIX) as server:
    server.connect("memcached.sock")
    for i in range(200):
        server.sendall(b"set k%d 0 0 100000\r\n%s\r\n" % (i, b"x" * 100000))
        assert server.recv(100) == b"STORED\r\n"
    server.sendall(b"get k199\r\n")
    got = b""
    while not got.endswith(b"END\r\n"):
        got += server.recv(1 << 16)
    print(len(got))
END
kill -TERM $!
wait $!
echo "ended $?"
