/* A thousand children, 25 at a time; each allocates and answers by its exit code. */
#include "case.h"
#include <sys/wait.h>

int main(void) {
    int ended = 0, wrong = 0;
    for (int round = 0; round < 40; round++) {
        pid_t children[25];
        for (int i = 0; i < 25; i++) {
            children[i] = fork();
            if (children[i]) continue;
            allocate(MIB);
            _exit(i);
        }
        for (int i = 0; i < 25; i++) {
            int status;
            ended += waitpid(children[i], &status, 0) == children[i];
            wrong += !WIFEXITED(status) || WEXITSTATUS(status) != i;
        }
    }
    printf("%d ended, %d wrong, none left: %d\n", ended, wrong, wait(NULL) == -1 && errno == ECHILD);
    return wrong;
}
