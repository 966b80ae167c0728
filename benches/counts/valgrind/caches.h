/* Two levels of data caches with lines of 64 bytes, least recently used out first: what fetches a line. */
#ifndef CACHES_H
#define CACHES_H
#include <valgrind/pub_tool_basics.h>

enum { LINE_SHIFT = 6 };
/* Where a line was found. */
typedef enum { IN_FIRST, IN_LAST, IN_MEMORY } Level;

/* Of `--caches=SIZE,WAYS,SIZE,WAYS`, first and last level; whether there are such. */
Bool caches_of(const HChar *text);

/* Touches a line, given by its number. */
Level caches_touch(Addr line);
#endif
