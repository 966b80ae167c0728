#include <stdio.h>
#include <stdlib.h>
long fact(int n) { char *p = malloc(100000); p[n] = 1; long r = n < 2 ? p[n] : n * fact(n - 1); free(p); return r; }
int main(void) { printf("%ld\n", fact(12)); return 4; }
