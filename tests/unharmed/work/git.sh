# Two commits, a merge, packing in the background's way, a check; all dates fixed, so all hashes are.
set -e
exec 2>&1
export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b GIT_CONFIG_NOSYSTEM=1
export GIT_AUTHOR_DATE='2026-01-01T00:00:00Z' GIT_COMMITTER_DATE='2026-01-01T00:00:00Z'
git init -q -b main tree
cd tree
seq 1 60000 | split -l 3000 - part-
git add . && git commit -q -m first
git checkout -q -b other && sed -i 's/1/one/' part-aa && git commit -qam second
git checkout -q main && sed -i 's/2/two/' part-ab && git commit -qam third
git merge -q -m merge other
git gc -q
git fsck --strict
git log --format='%H %s'
git grep -c one | head -3
