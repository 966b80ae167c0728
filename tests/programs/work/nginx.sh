# Two workers serve a page plain and packed. Usage: nginx.sh [requests for ab]
set -e
PORT=$((20000 + $$ % 20000))
exec 2>&1
mkdir -p site logs
head -c 200000 numbers.txt > site/page.txt
cat > nginx.conf <<END
daemon off; worker_processes 2; pid nginx.pid; error_log logs/error.log; user root;
events { worker_connections 256; }
http {
  access_log off; client_body_temp_path t1; proxy_temp_path t2; fastcgi_temp_path t3; uwsgi_temp_path t4; scgi_temp_path t5;
  server { listen unix:$PWD/nginx.sock; listen 127.0.0.1:$PORT; root $PWD/site; gzip on; gzip_types text/plain; }
}
END
nginx -p "$PWD" -c nginx.conf -e logs/start.log &
until [ -S nginx.sock ]; do sleep 0.05; done
for i in 1 2 3 4 5 6 7 8; do
  curl -s --unix-socket nginx.sock http://localhost/page.txt | cksum
  curl -s --compressed --unix-socket nginx.sock http://localhost/page.txt | cksum
done | sort | uniq -c
curl -s -o /dev/null -w '%{http_code}\n' --unix-socket nginx.sock http://localhost/none
if [ $# -gt 0 ]; then
  ab -q -c 8 -n "$1" http://127.0.0.1:$PORT/page.txt | grep -E 'Complete|Failed|Document Length'
fi
nginx -p "$PWD" -c nginx.conf -e logs/start.log -s quit
wait $!
echo "exit $?"
