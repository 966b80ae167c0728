# In the background with two workers, a new configuration while it serves, its orderly end.
exec 2>&1
mkdir -p site logs
seq 20000 > site/page.txt
cat > nginx.conf <<END
worker_processes 2; pid nginx.pid; error_log logs/error.log; user root;
events { worker_connections 64; }
http {
  access_log off; client_body_temp_path t1; proxy_temp_path t2; fastcgi_temp_path t3; uwsgi_temp_path t4; scgi_temp_path t5;
  server { listen unix:$PWD/nginx.sock; root $PWD/site; gzip on; gzip_types text/plain; }
}
END
server() { nginx -p "$PWD" -c nginx.conf -e logs/start.log "$@"; }
page() { curl -s --compressed --unix-socket nginx.sock http://localhost/page.txt | cksum; }
server -t 2>&1 | grep -c ok
server
until [ -S nginx.sock ]; do sleep 0.05; done
for i in 1 2 3 4; do page; done
server -s reload
for i in 1 2 3 4; do page; done
pid=$(cat nginx.pid)
server -s quit
while kill -0 "$pid" 2>/dev/null; do sleep 0.05; done
echo ended
