gcc -g -O0 -o it it.c
exec valgrind -q --error-exitcode=9 ./it
