# What shells do all day: pipes, jobs, traps, subshells, here-documents, a job that is killed. For any POSIX shell.
trap 'echo told; told=1' USR1
kill -USR1 $$
seq 1 2000 | sort -rn | head -3
for i in 1 2 3 4 5 6 7 8; do (exit $i) & wait $! || echo "job $?"; done
sleep 10 & kill -TERM $!
wait $! || echo "killed $?"
text=$(cat <<END
$(seq 1 3000)
END
)
echo ${#text} "$told"
i=0
while [ $i -lt 20000 ]; do i=$((i + 1)); done
kill -TERM $$
sleep 2
