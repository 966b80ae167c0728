tar --sort=name --mtime=@0 --owner=0 --group=0 -czf it.tgz numbers.txt
tar -tvf it.tgz
tar -xOf it.tgz | cksum
