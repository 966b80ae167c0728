/* Has no standard streams: the next file gets number 0, and nobody else may have taken it. */
#include "case.h"
#include <fcntl.h>
#include <sys/stat.h>

int main(void) {
    close(0), close(1), close(2);
    int file = open("closed_streams.txt", O_RDWR | O_CREAT | O_TRUNC, 0600);
    allocate(MIB);
    compute(0.1);
    dprintf(file, "hello");
    struct stat seen;
    fstat(file, &seen);
    return file == 0 && seen.st_size == 5 ? 5 : 6;
}
