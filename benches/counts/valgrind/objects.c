/* A tool of Valgrind: how many loads and stores a program makes, by data object. Every instruction is counted, so
   the counts are exact.

   An object is a site of allocation (all blocks of one call stack), a static array, the stacks, or what is left.
   `owner` maps each granule of 16 bytes to its object; in front of every access the tool adds one to a counter
   of (object, loads or stores, width), in line. What counts as an access is what an instruction asks for:
   - a locked instruction, which Valgrind makes of a load and a compare-and-swap, is one load and one store;
   - a masked move, which it makes lane by lane, is one access of all lanes at the address of the first;
   - a gather is one load for each lane that is not masked out; a string instruction one of each kind a round.

   With `--caches` each access also asks two levels of caches, and lines that it fetches count for their object.

   allocations.c, preloaded into the program, says where objects are. Output: see `report`. */
#include <valgrind/pub_tool_basics.h>
#include <valgrind/pub_tool_aspacemgr.h>
#include <valgrind/pub_tool_debuginfo.h>
#include <valgrind/pub_tool_execontext.h>
#include <valgrind/pub_tool_libcassert.h>
#include <valgrind/pub_tool_libcbase.h>
#include <valgrind/pub_tool_libcfile.h>
#include <valgrind/pub_tool_libcprint.h>
#include <valgrind/pub_tool_machine.h>
#include <valgrind/pub_tool_mallocfree.h>
#include <valgrind/pub_tool_options.h>
#include <valgrind/pub_tool_tooliface.h>
#include <valgrind/pub_tool_vki.h>

#include "caches.h"
#include "requests.h"

/* ---- Objects ---- */

enum { ELSEWHERE, STACK, BREAK, ANONYMOUS, STATICS, FIRST_OBJECT, MOST_OBJECTS = 1 << 16 };
enum { WIDTHS = 8, SLOTS = 2 * WIDTHS };

typedef struct {
   HChar what; /* h: heap, m: mmap, s: static */
   ExeContext *where;
   ULong number; /* of a static */
   ULong blocks, bytes, most_bytes;
} Object;

static ULong counters[MOST_OBJECTS][SLOTS]; /* [object][width, then the same for stores] */
static ULong fetched[MOST_OBJECTS][2];      /* [object][lines into the first level, lines from memory] */
static Bool has_caches = False;
static Object objects[MOST_OBJECTS];
static UInt objects_known = FIRST_OBJECT;
static Addr break_start = ~(Addr)0, break_end = 0;

static UInt object_of(HChar what, ExeContext *where, ULong number)
{
   for (UInt id = FIRST_OBJECT; id < objects_known; id++)
      if (objects[id].what == what && objects[id].where == where && objects[id].number == number) return id;
   if (objects_known == MOST_OBJECTS) return ANONYMOUS;
   objects[objects_known] = (Object){.what = what, .where = where, .number = number};
   return objects_known++;
}

/* ---- Which object owns a granule: a table of pieces of 1 MiB, each as its distance from `nobody` ---- */

enum { PIECE_SHIFT = 20, GRANULE_SHIFT = 4, GRANULES = 1 << (PIECE_SHIFT - GRANULE_SHIFT), PIECES = 1 << 27 };

static UShort nobody[GRANULES];
static Addr *pieces; /* 0: nobody owns anything in it */

static UShort *piece_of(Addr address, Bool make)
{
   Addr *piece = &pieces[(address >> PIECE_SHIFT) & (PIECES - 1)];
   if (!*piece && make) *piece = (Addr)VG_(am_shadow_alloc)(GRANULES * sizeof(UShort)) - (Addr)nobody;
   return *piece ? (UShort *)((Addr)nobody + *piece) : NULL;
}

static void own(Addr start, SizeT bytes, UInt id)
{
   for (Addr at = start & ~(Addr)15; at < start + bytes; at += 1 << GRANULE_SHIFT) {
      UShort *piece = piece_of(at, id != ELSEWHERE);
      if (piece) piece[(at >> GRANULE_SHIFT) & (GRANULES - 1)] = id;
   }
}

static UInt owner(Addr address)
{
   UShort *piece = piece_of(address, False);
   return piece ? piece[(address >> GRANULE_SHIFT) & (GRANULES - 1)] : ELSEWHERE;
}

/* ---- Blocks that are alive, to know their size when they are freed ---- */

typedef struct Block {
   struct Block *next;
   Addr start;
   SizeT bytes;
   UInt object;
} Block;

enum { BUCKETS = 1 << 16 };
static Block *alive[BUCKETS];

static Block **find_block(Addr start)
{
   Block **at = &alive[(start >> 4) % BUCKETS];
   while (*at && (*at)->start != start) at = &(*at)->next;
   return at;
}

static void freed(Addr start)
{
   Block **at = find_block(start), *block = *at;
   if (!block) return;
   own(start, block->bytes, start >= break_start && start < break_end ? BREAK : ANONYMOUS);
   objects[block->object].bytes -= block->bytes;
   *at = block->next;
   VG_(free)(block);
}

static void allocated(ThreadId tid, Addr start, SizeT bytes, Bool mapped)
{
   freed(start);
   UInt id = object_of(mapped ? 'm' : 'h', VG_(record_ExeContext)(tid, 0), 0);
   Block **at = find_block(start);
   *at = VG_(malloc)("block", sizeof **at);
   **at = (Block){NULL, start, bytes, id};
   Object *object = &objects[id];
   object->blocks++;
   object->bytes += bytes;
   if (object->bytes > object->most_bytes) object->most_bytes = object->bytes;
   own(start, bytes, id);
}

static Bool request(ThreadId tid, UWord *words, UWord *answer)
{
   *answer = 0;
   switch (words[0]) {
   case REQUEST_BLOCK: allocated(tid, words[1], words[2], words[3] == KIND_MMAP); return True;
   case REQUEST_FREED: freed(words[1]); return True;
   case REQUEST_STACK: own(words[1], words[2], STACK); return True;
   case REQUEST_STATIC: {
      UInt id = object_of('s', NULL, words[3]);
      objects[id].blocks = 1;
      objects[id].most_bytes = words[2];
      own(words[1], words[2], id);
      return True;
   }
   default: return False;
   }
}

static void mapped(Addr start, SizeT bytes, Bool r, Bool w, Bool x, ULong handle)
{
   (void)r, (void)w, (void)x, (void)handle;
   const NSegment *segment = VG_(am_find_nsegment)(start);
   own(start, bytes, segment && segment->kind == SkFileC ? STATICS : ANONYMOUS);
}

static void unmapped(Addr start, SizeT bytes)
{
   freed(start);
   own(start, bytes, ELSEWHERE);
}

static void broken(Addr start, SizeT bytes, ThreadId tid)
{
   (void)tid;
   if (start < break_start) break_start = start;
   if (start + bytes > break_end) break_end = start + bytes;
   own(start, bytes, BREAK);
}

/* ---- Counting ---- */

/* What one instruction has done so far. */
typedef struct {
   IRSB *out;
   UInt masked_bytes; /* of a masked move, else 0 */
   Bool loaded, stored;
} Instruction;

static IRExpr *number(ULong value) { return IRExpr_Const(IRConst_U64(value)); }

static IRExpr *assign(IRSB *out, IRType type, IRExpr *value)
{
   IRTemp temporary = newIRTemp(out->tyenv, type);
   addStmtToIRSB(out, IRStmt_WrTmp(temporary, value));
   return IRExpr_RdTmp(temporary);
}

static IRExpr *word(IRSB *out, IROp op, IRExpr *left, IRExpr *right)
{
   return assign(out, Ity_I64, IRExpr_Binop(op, left, right));
}

static IRExpr *bits(IRSB *out, IRExpr *address, UInt shift, ULong mask)
{
   IRExpr *shifted = word(out, Iop_Shr64, address, IRExpr_Const(IRConst_U8(shift)));
   return word(out, Iop_And64, shifted, number(mask));
}

/* counters[owner(address)][slot] += guard */
static void add(IRSB *out, IRExpr *address, IRExpr *guard, UInt slot)
{
   IRExpr *piece = bits(out, address, PIECE_SHIFT - 3, (ULong)(PIECES - 1) << 3);
   piece = word(out, Iop_Add64, piece, number((Addr)pieces));
   piece = assign(out, Ity_I64, IRExpr_Load(Iend_LE, Ity_I64, piece));
   IRExpr *granule = bits(out, address, GRANULE_SHIFT - 1, (ULong)(GRANULES - 1) << 1);
   granule = word(out, Iop_Add64, word(out, Iop_Add64, piece, granule), number((Addr)nobody));
   IRExpr *id = assign(out, Ity_I16, IRExpr_Load(Iend_LE, Ity_I16, granule));
   id = assign(out, Ity_I64, IRExpr_Unop(Iop_16Uto64, id));
   IRExpr *counter = word(out, Iop_Shl64, id, IRExpr_Const(IRConst_U8(7)));
   tl_assert(sizeof counters[0] == 1 << 7);
   counter = word(out, Iop_Add64, counter, number((Addr)&counters[0][slot]));
   IRExpr *count = assign(out, Ity_I64, IRExpr_Load(Iend_LE, Ity_I64, counter));
   IRExpr *more = guard ? assign(out, Ity_I64, IRExpr_Unop(Iop_1Uto64, guard)) : number(1);
   addStmtToIRSB(out, IRStmt_Store(Iend_LE, counter, word(out, Iop_Add64, count, more)));
}

static void fetch(Addr address, UWord bytes)
{
   for (Addr line = address >> LINE_SHIFT; line <= (address + bytes - 1) >> LINE_SHIFT; line++) {
      Level level = caches_touch(line);
      ULong *lines = fetched[owner(line << LINE_SHIFT > address ? line << LINE_SHIFT : address)];
      lines[0] += level != IN_FIRST;
      lines[1] += level == IN_MEMORY;
   }
}

/* Asks the caches. */
static void ask(IRSB *out, IRExpr *address, IRExpr *guard, UInt bytes)
{
   IRExpr **given = mkIRExprVec_2(address, number(bytes));
   IRDirty *asking = unsafeIRDirty_0_N(2, "fetch", VG_(fnptr_to_fnentry)(&fetch), given);
   if (guard) asking->guard = guard;
   addStmtToIRSB(out, IRStmt_Dirty(asking));
}

static UInt width(UInt bytes)
{
   for (UInt shift = 0; shift < WIDTHS - 1; shift++)
      if (bytes == 1u << shift) return shift;
   return WIDTHS - 1;
}

/* A load or a store, from slot `first` on; of a masked move only the first lane counts, for all of them. */
static void touch(Instruction *now, Bool *before, UInt first, IRExpr *address, IRExpr *guard, UInt bytes)
{
   Bool masked = now->masked_bytes != 0;
   if (masked) bytes = now->masked_bytes, guard = NULL;
   if (!masked || !*before) {
      add(now->out, address, guard, first + width(bytes));
      if (has_caches) ask(now->out, address, guard, bytes);
   }
   *before = True;
}

static void load(Instruction *now, IRExpr *address, IRExpr *guard, UInt bytes)
{
   touch(now, &now->loaded, 0, address, guard, bytes);
}

static void store(Instruction *now, IRExpr *address, IRExpr *guard, UInt bytes)
{
   touch(now, &now->stored, WIDTHS, address, guard, bytes);
}

static void swap(Instruction *now, IRCAS *cas)
{
   UInt bytes = sizeofIRType(typeOfIRExpr(now->out->tyenv, cas->dataLo)) * (cas->dataHi ? 2 : 1);
   if (!now->loaded) load(now, cas->addr, NULL, bytes);
   store(now, cas->addr, NULL, bytes);
}

static void call(Instruction *now, IRDirty *dirty)
{
   if (dirty->mFx == Ifx_Read || dirty->mFx == Ifx_Modify) load(now, dirty->mAddr, dirty->guard, dirty->mSize);
   if (dirty->mFx == Ifx_Write || dirty->mFx == Ifx_Modify) store(now, dirty->mAddr, dirty->guard, dirty->mSize);
}

/* Bytes of VMASKMOVPS, VMASKMOVPD, VPMASKMOVD, VPMASKMOVQ (VEX prefix of three bytes, map 0F38); 0 of others. */
static UInt masked_bytes(const UChar *code, UInt bytes)
{
   if (bytes < 5 || code[0] != 0xC4 || (code[1] & 0x1F) != 2) return 0;
   Bool is = (code[3] >= 0x2C && code[3] <= 0x2F) || code[3] == 0x8C || code[3] == 0x8E;
   return !is ? 0 : code[2] & 4 ? 32 : 16;
}

static void count(Instruction *now, IRStmt *step)
{
   IRTypeEnv *types = now->out->tyenv;
   switch (step->tag) {
   case Ist_IMark:
      now->masked_bytes = masked_bytes((const UChar *)step->Ist.IMark.addr, step->Ist.IMark.len);
      now->loaded = now->stored = False;
      break;
   case Ist_WrTmp: {
      IRExpr *value = step->Ist.WrTmp.data;
      if (value->tag == Iex_Load) load(now, value->Iex.Load.addr, NULL, sizeofIRType(value->Iex.Load.ty));
      break;
   }
   case Ist_LoadG: {
      IRLoadG *details = step->Ist.LoadG.details;
      IRType type, widened;
      typeOfIRLoadGOp(details->cvt, &widened, &type);
      load(now, details->addr, details->guard, sizeofIRType(type));
      break;
   }
   case Ist_Store:
      store(now, step->Ist.Store.addr, NULL, sizeofIRType(typeOfIRExpr(types, step->Ist.Store.data)));
      break;
   case Ist_StoreG: {
      IRStoreG *details = step->Ist.StoreG.details;
      store(now, details->addr, details->guard, sizeofIRType(typeOfIRExpr(types, details->data)));
      break;
   }
   case Ist_CAS: swap(now, step->Ist.CAS.details); break;
   case Ist_Dirty: call(now, step->Ist.Dirty.details); break;
   default: break;
   }
}

static IRSB *instrument(VgCallbackClosure *closure, IRSB *in, const VexGuestLayout *layout,
                        const VexGuestExtents *extents, const VexArchInfo *arch, IRType guest, IRType host)
{
   (void)closure, (void)layout, (void)extents, (void)arch, (void)guest, (void)host;
   Instruction now = {.out = deepCopyIRSBExceptStmts(in)};
   Int at = 0;
   while (at < in->stmts_used && in->stmts[at]->tag != Ist_IMark) addStmtToIRSB(now.out, in->stmts[at++]);
   for (; at < in->stmts_used; at++) {
      count(&now, in->stmts[at]);
      addStmtToIRSB(now.out, in->stmts[at]);
   }
   return now.out;
}

/* ---- Start and end ---- */

static const HChar *out_path = "objects.out";

static Bool option(const HChar *text)
{
   const HChar *caches;
   if VG_STR_CLO (text, "--objects-out", out_path) return True;
   if VG_STR_CLO (text, "--caches", caches) return has_caches = caches_of(caches);
   return False;
}

static void usage(void)
{
   VG_(printf)("    --objects-out=FILE            where the counts go [objects.out]\n"
               "    --caches=SIZE,WAYS,SIZE,WAYS  also count lines that data caches fetch, first and last level\n");
}
static void debug_usage(void) { VG_(printf)("    (none)\n"); }

static void frame(UInt depth, DiEpoch epoch, Addr ip, void *given)
{
   (void)depth;
   VgFile *out = given;
   const HChar *path = "?";
   DebugInfo *module = VG_(find_DebugInfo)(epoch, ip);
   if (module) path = VG_(DebugInfo_get_filename)(module);
   VG_(fprintf)(out, " %s+%lx", path, module ? ip - VG_(DebugInfo_get_text_bias)(module) : ip);
}

/* A line an object: WHAT NUMBER BLOCKS BYTES, loads of 1, 2, 4 ... 64 and other bytes, stores of the same, lines into the
   first level and from memory, frames. */
static void report(Int code)
{
   (void)code;
   VgFile *out = VG_(fopen)(VG_(expand_file_name)("--objects-out", out_path),
                            VKI_O_CREAT | VKI_O_WRONLY | VKI_O_TRUNC, 0644);
   if (!out) {
      VG_(umsg)("objects: cannot write %s\n", out_path);
      return;
   }
   for (UInt id = 0; id < objects_known; id++) {
      const Object *object = &objects[id];
      HChar what = id < FIRST_OBJECT ? "-kbat"[id] : object->what;
      VG_(fprintf)(out, "%c %llu %llu %llu", what, object->number, object->blocks, object->most_bytes);
      for (UInt slot = 0; slot < SLOTS; slot++) VG_(fprintf)(out, " %llu", counters[id][slot]);
      VG_(fprintf)(out, " %llu %llu", fetched[id][0], fetched[id][1]);
      if (object->where) VG_(apply_ExeContext)(frame, out, object->where);
      VG_(fprintf)(out, "\n");
   }
   VG_(fclose)(out);
}

static void begin(void)
{
   pieces = VG_(am_shadow_alloc)(PIECES * sizeof *pieces);
   own(0x1ff0000000, 0x10000000, STACK);
}

static void started(Addr start, SizeT bytes, Bool r, Bool w, Bool x, ULong handle)
{
   if (owner(start) != STACK) mapped(start, bytes, r, w, x, handle);
}

static void set_up(void)
{
   VG_(details_name)("objects");
   VG_(details_version)(NULL);
   VG_(details_description)("counts loads and stores by data object");
   VG_(details_copyright_author)("Tierloom's, Apache-2.0.");
   VG_(details_bug_reports_to)("Tierloom");
   VG_(basic_tool_funcs)(begin, instrument, report);
   VG_(needs_client_requests)(request);
   VG_(needs_command_line_options)(option, usage, debug_usage);
   VG_(track_new_mem_startup)(started);
   VG_(track_new_mem_mmap)(mapped);
   VG_(track_new_mem_brk)(broken);
   VG_(track_die_mem_munmap)(unmapped);
}

VG_DETERMINE_INTERFACE_VERSION(set_up)
