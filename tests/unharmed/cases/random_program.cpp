// A random program: blocks are asked for in the depth of what stacks can go through. The seed decides everything, so
// the checksum is the same in every run. Usage: random_program SEED CASES
#include <alloca.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "random_memory.hpp"
#include "random_stacks.hpp"

namespace {

constexpr size_t NEEDED = 24 << 10;  // of stack, for whatever comes next
constexpr size_t OTHER_STACK = 256 << 10;

struct Coroutine;

// A thread of the program, with all that is its own.
struct Thread {
    Random random;
    long wanted;  // cases, after which it comes to its end
    int threads_below;
    Memory memory;
    Stacks stacks;
    std::vector<std::unique_ptr<Coroutine>> parked;
    sigjmp_buf *landing = nullptr;  // where a full stack goes on
    struct Where *interrupted = nullptr;

    Thread(uint64_t seed, long cases, int levels) : random(seed), wanted(cases), threads_below(levels) {}
};

thread_local Thread *self;

// Where a step happens: what may still be done here.
struct Where {
    char *floor;  // lowest address of this stack
    int depth;
    bool in_handler = false;
    Coroutine *coroutine = nullptr;

    size_t left() const { return static_cast<size_t>(static_cast<char *>(__builtin_frame_address(0)) - floor); }
    Where deeper() const { return {floor, depth + 1, in_handler, coroutine}; }
};

struct Coroutine {
    ucontext_t own, resumer;
    Stack stack;
    bool bare, done = false;
};

void steps(Where where);

// Frames of different makes: the next step happens below each of them.
__attribute__((noinline)) void in_alloca(Where where) {
    auto *space = static_cast<volatile char *>(alloca(self->random.between(16, where.left() / 4)));
    space[0] = 1;
    steps(where.deeper());
}

__attribute__((noinline)) void in_array(Where where) {
    volatile char space[self->random.between(16, where.left() / 4)];
    space[0] = 1;
    steps(where.deeper());
    self->memory.note(static_cast<uint64_t>(space[0]));
}

// Down to one of few distances from the bottom, so that frames of different stacks come to lie at the same address.
__attribute__((noinline)) void near_the_bottom(Where where) {
    size_t wanted = NEEDED + PAGE + self->random.below(3) * PAGE;
    if (where.left() > wanted + PAGE) {
        auto *space = static_cast<volatile char *>(alloca(where.left() - wanted));
        space[0] = 1;
    }
    self->memory.ask(self->random);
}

__attribute__((noinline)) void in_recursion(Where where, size_t levels) {
    if (levels == 0 || where.left() < 2 * NEEDED) steps(where.deeper());
    else in_recursion(where, levels - 1);
    self->memory.note(levels);
}

// Leaves frames by a jump and by an exception.
__attribute__((noinline)) void jump_from_below(Where where, sigjmp_buf &landing) {
    in_recursion(where, self->random.below(5));
    siglongjmp(landing, 1);
}

void by_jump(Where where) {
    sigjmp_buf landing;
    if (!sigsetjmp(landing, 1)) jump_from_below(where, landing);
    self->memory.ask(self->random);
}

struct AsksAtItsEnd {
    ~AsksAtItsEnd() { self->memory.ask(self->random); }
};

__attribute__((noinline)) void throw_from_below(Where where, size_t levels) {
    AsksAtItsEnd asks;
    if (levels) throw_from_below(where, levels - 1);
    steps(where.deeper());
    throw levels;
}

void by_exception(Where where) {
    try {
        throw_from_below(where, self->random.below(4));
    } catch (size_t levels) {
        self->memory.note(levels);
        self->memory.ask(self->random);
    }
}

// Fills the stack to the last byte; the handler asks for memory and jumps back.
__attribute__((noinline)) int overflow(int depth) {
    volatile char frame[200];
    frame[depth % 200] = static_cast<char>(depth);
    return depth < 0 ? 0 : overflow(depth + 1) + frame[depth % 200];
}

void by_overflow(Where) {
    sigjmp_buf landing;
    self->landing = &landing;
    if (!sigsetjmp(landing, 1)) overflow(0);
    self->landing = nullptr;
    self->memory.ask(self->random);
}

void by_signal(Where where) {
    self->interrupted = &where;
    raise(self->random.below(2) ? SIGUSR1 : SIGUSR2);
    self->interrupted = nullptr;
}

void on_overflow(int, siginfo_t *, void *) {
    if (!self->landing) _exit(90);
    auto *here = static_cast<char *>(__builtin_frame_address(0));
    steps({here - OTHER_STACK / 2, 3, true});
    siglongjmp(*self->landing, 1);
}

// SIGUSR1 comes on the stack that it interrupts, SIGUSR2 on the other one.
void on_signal(int number) {
    auto *here = static_cast<char *>(__builtin_frame_address(0));
    Where at = *self->interrupted;
    steps({number == SIGUSR2 ? here - OTHER_STACK / 2 : at.floor, at.depth + 1, true});
}

// Coroutines: they park in the midst of something and are resumed from wherever the program is then, or never.
void resume(std::unique_ptr<Coroutine> coroutine) {
    Coroutine *it = coroutine.get();
    swapcontext(&it->resumer, &it->own);
    if (it->done) self->stacks.give_back(it->stack);
    else self->parked.push_back(std::move(coroutine));
}

void run_coroutine(Coroutine *it) {
    steps({it->stack.bottom(), 2, false, it->bare ? nullptr : it});
    it->done = true;
}

void entered(unsigned high, unsigned low) {
    auto *it = reinterpret_cast<Coroutine *>(static_cast<uintptr_t>(high) << 32 | low);
    run_coroutine(it);
    swapcontext(&it->own, &it->resumer);
}

void by_coroutine(Where where) {
    auto it = std::make_unique<Coroutine>();
    size_t bytes = (16 << self->random.below(5)) * PAGE;
    it->stack = self->stacks.take(bytes, static_cast<Above>(self->random.below(static_cast<size_t>(Above::count))));
    it->bare = where.in_handler || self->random.below(2);
    if (it->bare) {
        auto body = [](void *argument) {
            auto *coroutine = static_cast<Coroutine *>(argument);
            near_the_bottom({coroutine->stack.bottom(), 3, true});
            steps({coroutine->stack.bottom(), 3, true});
        };
        on_bare_stack(it->stack.top(), body, it.get());
        self->stacks.give_back(it->stack);
        return;
    }
    getcontext(&it->own);
    it->own.uc_stack.ss_sp = it->stack.bottom();
    it->own.uc_stack.ss_size = bytes;
    auto address = reinterpret_cast<uintptr_t>(it.get());
    makecontext(&it->own, reinterpret_cast<void (*)()>(entered), 2, static_cast<unsigned>(address >> 32),
                static_cast<unsigned>(address));
    resume(std::move(it));
}

void by_parking(Where where) {
    if (where.coroutine) swapcontext(&where.coroutine->own, &where.coroutine->resumer);
    else if (!self->parked.empty() && !where.in_handler) {
        std::swap(self->parked[self->random.below(self->parked.size())], self->parked.back());
        auto coroutine = std::move(self->parked.back());
        self->parked.pop_back();
        resume(std::move(coroutine));
    }
    self->memory.ask(self->random);
}

// Other threads and processes.
void prepare_signals(char *other_stack) {
    stack_t other{};
    other.ss_sp = other_stack;
    other.ss_size = OTHER_STACK;
    sigaltstack(&other, nullptr);
}

void *run_thread(void *argument) {
    self = static_cast<Thread *>(argument);
    auto other_stack = std::make_unique<char[]>(OTHER_STACK);
    prepare_signals(other_stack.get());
    auto *here = static_cast<char *>(__builtin_frame_address(0));
    steps({here - (128 << 10), 2});
    self->memory.give_back_all();
    stack_t none{};
    none.ss_flags = SS_DISABLE;
    sigaltstack(&none, nullptr);
    return nullptr;
}

void by_threads(Where) {
    if (self->threads_below == 0) return;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 256 << 10);
    std::vector<std::unique_ptr<Thread>> threads(1 + self->random.below(3));
    std::vector<pthread_t> started(threads.size());
    for (size_t i = 0; i < threads.size(); i++) {
        threads[i] = std::make_unique<Thread>(self->random.next(), 1 + self->random.below(15), self->threads_below - 1);
        pthread_create(&started[i], &attributes, run_thread, threads[i].get());
    }
    for (size_t i = 0; i < threads.size(); i++) {
        pthread_join(started[i], nullptr);
        self->memory.note(threads[i]->memory.sum);
        self->memory.cases += threads[i]->memory.cases;
    }
}

void by_child(Where where) {
    pid_t child = fork();
    if (child == 0) {
        self->wanted = self->memory.cases + 5;
        where.coroutine = nullptr;  // who resumed it goes on in the parent alone
        steps(where.deeper());
        _exit(static_cast<int>(self->memory.sum % 89));
    }
    int status = -1;
    waitpid(child, &status, 0);
    self->memory.note(static_cast<uint64_t>(status));
}

using Step = void (*)(Where);
void plain(Where) { self->memory.ask(self->random); }
void recursion(Where where) { in_recursion(where, self->random.below(20)); }

const Step ANYWHERE[] = {plain, plain, in_alloca, in_array, near_the_bottom, recursion, by_jump, by_exception, by_coroutine};
const Step NOT_IN_HANDLERS[] = {by_overflow, by_signal, by_parking, by_threads, by_child};

void step(Where where) {
    constexpr size_t anywhere = std::size(ANYWHERE), all = anywhere + std::size(NOT_IN_HANDLERS);
    if (where.depth > 6 || where.left() < 2 * NEEDED) return plain(where);
    size_t choice = self->random.below(where.in_handler ? anywhere : all);
    (choice < anywhere ? ANYWHERE[choice] : NOT_IN_HANDLERS[choice - anywhere])(where);
}

__attribute__((noinline)) void steps(Where where) {
    for (size_t left = 1 + self->random.below(3); left && self->memory.cases < self->wanted; left--) step(where);
}

void handle(int number, int flags, void (*handler)(int, siginfo_t *, void *)) {
    struct sigaction action {};
    action.sa_sigaction = handler;
    action.sa_flags = flags | SA_SIGINFO;
    sigaction(number, &action, nullptr);
}

}  // namespace

int main(int count, char **words) {
    if (count != 3) return 2;
    static char other_stack[OTHER_STACK];
    Thread first(std::stoul(words[1]), std::stol(words[2]), 1);
    self = &first;
    prepare_signals(other_stack);
    handle(SIGSEGV, SA_ONSTACK, on_overflow);
    handle(SIGUSR1, 0, [](int number, siginfo_t *, void *) { on_signal(number); });
    handle(SIGUSR2, SA_ONSTACK, [](int number, siginfo_t *, void *) { on_signal(number); });
    auto *here = static_cast<char *>(__builtin_frame_address(0));
    while (first.memory.cases < first.wanted) steps({here - (4 << 20), 0});
    first.memory.give_back_all();
    printf("%ld cases, sum %016lx\n", first.memory.cases, first.memory.sum);
    return 0;
}
