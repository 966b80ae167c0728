# A history of two commits, packed and checked; all dates fixed, so all hashes are.
set -e
exec 2>&1
export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b GIT_CONFIG_NOSYSTEM=1 HOME="$PWD"
export GIT_AUTHOR_DATE='2026-01-01T00:00:00Z' GIT_COMMITTER_DATE='2026-01-01T00:00:00Z'
git init -q -b main tree && cd tree
split -l 7000 ../numbers.txt part-
git add . && git commit -q -m first
sed -i 's/1/one/' part-a?
git add . && git commit -q -m second
git diff --stat HEAD~1 | tail -1
git gc -q --aggressive
git fsck --strict
git log --format='%H %s'
git count-objects -v | grep -E 'in-pack|packs'
