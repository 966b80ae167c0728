"""A random program as text in Rust."""

from string import Template

from .plan import Array, Phase, Plan
from .shapes import FOLDER

MAKE = {
    "vec": "let mut {a} = vec![0 as {t}; {n}];",
    "collect": "let mut {a}: Vec<{t}> = (0..{n}).map(|_| 0 as {t}).collect();",
    "boxed": "let mut {a} = vec![0 as {t}; {n}].into_boxed_slice();",
    "static": "let {a} = unsafe {{ &mut {A} }};",
}


def function(phase: Phase) -> str:
    """A phase's function."""
    roles = ", ".join(f"{role}: &mut [{array.type}]" for role, array in phase.arrays.items())
    how = "" if phase.inlined else "#[inline(never)]\n"
    head = f"{how}fn {phase.name}({roles}, steps: u64, seed: &mut u64) -> u64"
    return Template(phase.shape.text).substitute(phase.words, phase=phase.name, PHASE=head)


def made(array: Array) -> str:
    """The statements that make an array and fill it."""
    names = {"a": array.name, "A": array.name.upper(), "t": array.type, "n": array.length}
    fill = f"fill!({array.fill}, {array.name}, {array.type}, {array.bound}, &mut seed);"
    return f"{MAKE[array.place].format(**names)}\n    {fill}"


def call(phase: Phase) -> str:
    """One round of a phase."""
    arrays = "".join(f"&mut {array.name}[..], " for array in phase.arrays.values())
    return f"sum = sum.wrapping_add({phase.name}({arrays}{phase.steps}, &mut seed));"


def files(plan: Plan) -> dict[str, str]:
    """The program's only file."""
    statics = [one for one in plan.arrays if one.place == "static"]
    lines = [
        f"static mut {one.name.upper()}: [{one.type}; {one.length}] = [0 as {one.type}; {one.length}];"
        for one in statics
    ]
    calls = [call(phase) for phase in plan.phases]
    work = "for _ in 0..rounds {\n        " + "\n        ".join(calls) + "\n    }"
    if not plan.interleaved:
        work = "\n    ".join(f"for _ in 0..rounds {{ {one} }}" for one in calls)
    arrays = "\n    ".join(map(made, plan.arrays))
    main = f"""fn main() {{
    let rounds: u64 = std::env::args().nth(1).and_then(|word| word.parse().ok()).unwrap_or(1);
    let (mut seed, mut sum) = ({plan.seed}u64 * 2654435761 + 1, 0u64);
    {arrays}
    {work}
    println!("{{sum:x}}");
}}
"""
    runtime = (FOLDER / "runtime.rs").read_text(encoding="utf-8")
    return {"program.rs": "\n".join([runtime, *lines, *map(function, plan.phases), main])}
