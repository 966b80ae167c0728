#include "caches.h"

#include <valgrind/pub_tool_libcbase.h>
#include <valgrind/pub_tool_mallocfree.h>

typedef struct {
   UWord sets, ways;
   Addr *lines; /* [set][way], the one that was touched last first; 0: none */
} Cache;

static Cache first, last;

static Bool make(Cache *cache, UWord bytes, UWord ways)
{
   UWord sets = ways ? (bytes >> LINE_SHIFT) / ways : 0;
   if (!sets || sets & (sets - 1)) return False;
   *cache = (Cache){sets, ways, VG_(calloc)("cache", sets * ways, sizeof(Addr))};
   return True;
}

Bool caches_of(const HChar *text)
{
   UWord numbers[4];
   HChar *end = (HChar *)text;
   for (UInt at = 0; at < 4; at++) {
      numbers[at] = VG_(strtoull10)(end, &end);
      if (*end != (at < 3 ? ',' : 0)) return False;
      end++;
   }
   return make(&first, numbers[0], numbers[1]) && make(&last, numbers[2], numbers[3]);
}

/* Whether it has a line; from now on it does. */
static Bool touch(Cache *cache, Addr line)
{
   Addr *set = &cache->lines[(line & (cache->sets - 1)) * cache->ways], before = line;
   for (UWord way = 0; way < cache->ways; way++) {
      Addr here = set[way];
      set[way] = before;
      if (here == line) return True;
      before = here;
   }
   return False;
}

Level caches_touch(Addr line)
{
   return touch(&first, line) ? IN_FIRST : touch(&last, line) ? IN_LAST : IN_MEMORY;
}
