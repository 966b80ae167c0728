// Stacks of the random program's own making. They lie in few places, so that the same address is soon part of another
// stack with another size; above a stack is a guard, nothing at all, or memory that is none of its business.
#pragma once
#include <sys/mman.h>

#include <cstddef>
#include <vector>

constexpr size_t PAGE = 4096;
constexpr size_t PLACE = 2 << 20;  // of address space, for one stack and what is around it

enum class Above { guard, hole, memory, count };

struct Stack {
    char *place;
    size_t bytes;
    Above above;
    char *bottom() const { return place + PAGE; }
    char *top() const { return bottom() + bytes; }
    size_t rest() const { return static_cast<size_t>(place + PLACE - top()); }
};

// The places of one thread.
class Stacks {
public:
    Stack take(size_t bytes, Above above) {
        if (free_.empty()) free_.push_back(reserve(nullptr, PLACE, 0));
        Stack stack{free_.back(), bytes, above};
        free_.pop_back();
        mprotect(stack.bottom(), bytes + (above == Above::memory ? PAGE : 0), PROT_READ | PROT_WRITE);
        if (above == Above::hole) munmap(stack.top(), stack.rest());
        return stack;
    }

    // A place is whole again, unless somebody has mapped something into the hole meanwhile.
    void give_back(const Stack &stack) {
        char *end = stack.above == Above::hole ? stack.top() : stack.place + PLACE;
        reserve(stack.place, static_cast<size_t>(end - stack.place), MAP_FIXED);
        if (stack.above == Above::hole && !reserve(stack.top(), stack.rest(), MAP_FIXED_NOREPLACE)) {
            munmap(stack.place, static_cast<size_t>(end - stack.place));
            return;
        }
        free_.push_back(stack.place);
    }

private:
    std::vector<char *> free_;

    static char *reserve(char *wish, size_t bytes, int how) {
        void *at = mmap(wish, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | how, -1, 0);
        return at == MAP_FAILED ? nullptr : static_cast<char *>(at);
    }
};

// Calls a function on another stack as hand-written switchers do: a jump to the top of it, with nothing above that
// would tell an unwinder that it ends there. The unwind information is what compilers give such a function.
extern "C" void on_bare_stack(char *top, void (*function)(void *), void *argument);
__asm__(R"(
    .text
    .type bare_entry, @function
bare_entry:
    .cfi_startproc
    call *%r12
    mov %rbx, %rsp
    pop %r15
    pop %r14
    pop %r13
    pop %r12
    pop %rbx
    pop %rbp
    ret
    .cfi_endproc
    .globl on_bare_stack
    .type on_bare_stack, @function
on_bare_stack:
    push %rbp
    push %rbx
    push %r12
    push %r13
    push %r14
    push %r15
    mov %rsp, %rbx
    mov %rsi, %r12
    mov %rdi, %rsp
    mov %rdx, %rdi
    jmp bare_entry
)");
