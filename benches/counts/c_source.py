"""A random program as text in C."""

from string import Template

from .plan import Array, Phase, Plan
from .shapes import FOLDER

ALLOCATE = {
    "malloc": "malloc({n} * sizeof(*{a}))",
    "calloc": "calloc({n}, sizeof(*{a}))",
    "aligned_alloc": "aligned_alloc(4096, ({n} * sizeof(*{a}) + 4095) / 4096 * 4096)",
    "mmap": "mmap(0, {n} * sizeof(*{a}), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)",
    "realloc": "realloc(malloc(100), {n} * sizeof(*{a}))",
}
CLEARED = ("static", "calloc", "mmap")


def head(phase: Phase, arrays: dict[str, Array]) -> str:
    """The head of a phase's function, with what its body calls its arrays."""
    if not phase.by_global:
        roles = [f"{array.type} *{role}, size_t {role}_n" for role, array in arrays.items()]
        return f"u64 {phase.name}({', '.join(roles)}, u64 steps, u64 *seed)\n{{\n"
    names = [
        f"    {one.type} *{role} = {one.name};\n    const size_t {role}_n = {one.length};\n"
        for role, one in arrays.items()
    ]
    return f"u64 {phase.name}(u64 steps, u64 *seed)\n{{\n{''.join(names)}"


def declared(phase: Phase) -> str:
    """A phase's function as another file sees it."""
    return head(phase, phase.arrays).split("\n", maxsplit=1)[0] + ";"


def function(phase: Phase, *, alone: bool) -> str:
    """A phase's function; `alone` if no other file calls it."""
    text = phase.shape.text.replace("PHASE($roles, u64 steps, u64 *seed)\n{\n", "$head")
    how = "static inline " if phase.inlined and alone else "static NOINLINE " if alone else "NOINLINE "
    return Template(text).substitute(phase.words, phase=phase.name, head=how + head(phase, phase.arrays))


def allocation(array: Array) -> str:
    """The statements that make an array and fill it."""
    lines = []
    if array.place != "static":
        lines.append(f"{array.name} = {ALLOCATE[array.place].format(a=array.name, n=array.length)};")
        lines.append(f"if (!{array.name}) return 1;")
    if array.place not in CLEARED:
        lines.append(f"memset({array.name}, 0, {array.length} * sizeof(*{array.name}));")
    return "\n    ".join([*lines, f"FILL_{array.fill}({array.name}, {array.length}, {array.type}, {array.bound});"])


def variable(array: Array) -> str:
    """Where an array is known from."""
    return f"{array.type} {array.name}[{array.length}];" if array.place == "static" else f"{array.type} *{array.name};"


def call(phase: Phase) -> str:
    """One round of a phase."""
    arrays = "".join(f"{array.name}, {array.length}, " for array in phase.arrays.values() if not phase.by_global)
    return f"sum += {phase.name}({arrays}{phase.steps}, &seed);"


def main(plan: Plan) -> str:
    """The main function."""
    fills = "\n    ".join(map(allocation, plan.arrays))
    rounds, calls = "for (u64 round = 0; round < rounds; round++)", [call(phase) for phase in plan.phases]
    work = f"{rounds} {{\n        " + "\n        ".join(calls) + "\n    }"
    if not plan.interleaved:
        work = "\n    ".join(f"{rounds} {one}" for one in calls)
    return f"""int main(int argc, char **argv)
{{
    u64 rounds = argc > 1 ? strtoull(argv[1], 0, 10) : 1, seed = {plan.seed}u * 2654435761u + 1, sum = 0;
    {fills}
    {work}
    printf("%llx\\n", (unsigned long long)sum);
    return 0;
}}
"""


def files(plan: Plan) -> dict[str, str]:
    """One file, or two of which the second has every other phase."""
    runtime = (FOLDER / "runtime.h").read_text(encoding="utf-8")
    there = list(plan.phases[1::2]) if plan.two_files else []
    here = [phase for phase in plan.phases if phase not in there]
    variables = [variable(array) for array in plan.arrays]
    first = [runtime, *(f"static {line}" if not there else line for line in variables), *map(declared, there)]
    first += [function(phase, alone=True) for phase in here] + [main(plan)]
    made = {"program.c": "\n".join(first)}
    if there:
        others = [
            runtime,
            *(f"extern {line}" for line in variables),
            *(function(phase, alone=False) for phase in there),
        ]
        made["other.c"] = "\n".join(others)
    return made
