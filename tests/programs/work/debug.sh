# A breakpoint in a recursion.
gcc -g -O0 -o it it.c
exec gdb -nx -q -batch -ex 'break fact' -ex 'run' -ex 'backtrace 3' -ex 'print n' -ex 'delete' -ex 'continue' ./it 2>&1
