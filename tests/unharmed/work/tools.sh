# Small tools on numbers: what they say and how they end.
seq 1 100000 > numbers.txt
case $1 in
sort) sort --parallel=2 -S 2M -k1,1r numbers.txt | cksum ;;
sed) sed -e 's/\([0-9]\)\([0-9]\)/\2\1/g' -e '/77/d' numbers.txt | cksum ;;
gawk | mawk) "$1" '{ s[$1 % 997] = s[$1 % 997] $1 } END { for (k in s) n += length(s[k]); print n; exit 3 }' numbers.txt ;;
bc) echo 'scale=300; 4*a(1)' | bc -l ;;
jq) jq -s 'map({n: ., s: tostring}) | group_by(.n % 10) | map(length), (.[3] | length)' -c numbers.txt ;;
make) printf 'all: a b c\n\t@cat a b c | cksum\na b c:\n\t@seq 1 20000 > $@; test $@ != nothing\n' > Makefile && make -s -j2 ;;
rsync) mkdir from && cp numbers.txt from && rsync -a --checksum from/ to/ && rsync -a --delete --itemize-changes from/ to/ && cmp from/numbers.txt to/numbers.txt && echo same ;;
openssl) openssl dgst -sha256 numbers.txt && openssl enc -aes-256-cbc -pbkdf2 -S 0102030405060708 -pass pass:x -in numbers.txt | cksum && openssl prime -checks 20 170141183460469231731687303715884105727 ;;
convert) /usr/bin/convert -size 400x300 gradient:red-blue -rotate 30 -resize 50% -depth 8 rgb:- | cksum ;;
sqlite3) sqlite3 :memory: "with recursive n(i) as (select 1 union all select i + 1 from n where i < 100000) select count(*), sum(i % 97), max(hex(i)) from n; select length(zeroblob(3000000)); select * from nothing" ;;
esac
