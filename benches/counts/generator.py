"""Random programs: a seed decides language, arrays, phases, and how it is compiled.

A program takes one argument, the rounds. What it computes follows from the seed and the rounds alone, so every
run makes the same accesses. How often is not said here, for the compiler decides: `truth.py` counts.
"""

import random
from dataclasses import dataclass, field

from . import c_source, rust_source
from .plan import Array, Build, Phase, Plan
from .shapes import WIDTH, Role, Shape, shapes

DEVELOPMENT = range(1, 1000)
"""Seeds to look at while the estimator is worked on."""
GATE = range(100_000, 10_000_000)
"""Seeds that only judge: nobody mends anything by a program of these."""

MOST_BYTES = 160 << 20


@dataclass
class Draw:
    """A program while it is drawn."""

    dice: random.Random
    language: str
    arrays: list[Array] = field(default_factory=list)

    def length(self, width: int) -> int:
        """Elements of an array of 64 KiB to 64 MiB, small ones as likely as large ones."""
        left = MOST_BYTES - sum(array.bytes for array in self.arrays)
        exponent = self.dice.uniform(16, 24 if self.dice.random() < 0.8 else 26)
        return int(max(min(2**exponent, left), 1 << 16)) // width

    def place(self, bytes_: int) -> str:
        """Where an array lives."""
        static = self.dice.random() < 0.25 and bytes_ <= 16 << 20
        ways = {
            "c": ["malloc", "malloc", "calloc", "aligned_alloc", "mmap", "realloc"],
            "rust": ["vec", "collect", "boxed"],
        }
        return "static" if static else self.dice.choice(ways[self.language])

    def array(self, role: Role, taken: dict[str, Array]) -> Array:
        """An array for a role: one that is there, if any will do, or a new one."""
        type_ = taken[role.same_type].type if role.same_type else self.dice.choice(role.types)
        same = [one for one in self.arrays if one.type == type_ and one.shareable and one not in taken.values()]
        if role.shareable and same and self.dice.random() < 0.4:
            return self.dice.choice(same)
        length = taken[role.same_length].length * role.times if role.same_length else self.length(WIDTH[type_])
        bound = taken[role.into].length if role.into and role.into in taken else role.bound
        number, place = len(self.arrays), self.place(length * WIDTH[type_])
        made = Array(f"o{number}", type_, length, place, role.fill, bound, shareable=role.shareable)
        self.arrays.append(made)
        return made

    def phase(self, number: int, shape: Shape) -> Phase:
        """A shape with its arrays; those that are indexed come before their indices."""
        taken: dict[str, Array] = {}
        for role in sorted(shape.roles, key=lambda role: role.into is not None and role.into != role.name):
            self.role(role, shape, taken)
        arrays = {role.name: taken[role.name] for role in shape.roles}
        steps = int(2 ** self.dice.uniform(17, 20.5))
        inlined, by_global = self.dice.random() < 0.3, self.language == "c" and self.dice.random() < 0.4
        return Phase(f"phase{number}", shape, arrays, self.words(arrays), steps, inlined=inlined, by_global=by_global)

    def role(self, role: Role, shape: Shape, taken: dict[str, Array]) -> None:
        """Takes an array for a role, after those that it depends on."""
        if role.name in taken:
            return
        for other in shape.roles:
            if other.name != role.name and other.name in (role.same_type, role.same_length, role.into):
                self.role(other, shape, taken)
        taken[role.name] = self.array(role, taken)

    def words(self, arrays: dict[str, Array]) -> dict[str, str]:
        """What stands for the words of a template."""
        dice = self.dice
        words = {name: array.type for name, array in arrays.items()}
        words["period"] = str(dice.choice([4, 16, 64]))
        words["rarity"] = str(dice.choice([100, 1000, 3000]))
        words["block"] = str(dice.choice([8, 16]))
        words["short"] = str(dice.randint(1, 5))
        words["often"] = dice.choice(["i % 3 == 0", "1 + 1 == 2"])
        words["inlined"] = dice.choice(["NOINLINE", "inline __attribute__((always_inline))"])
        words["atomic"] = "AtomicU32" if "counter" in arrays and arrays["counter"].type == "u32" else "AtomicU64"
        return words


def flags_of_c(dice: random.Random) -> list[str]:
    """How a program in C is compiled."""
    flags = [dice.choice(["-O0", "-O1", "-O2", "-O2", "-O3", "-O3", "-Os"])]
    flags += dice.choice([[], [], ["-march=x86-64-v3"], ["-march=x86-64-v2"]])
    odds = {
        "-flto": 0.2,
        "-s": 0.2,
        "-g": 0.4,
        "-funroll-loops": 0.15,
        "-fno-omit-frame-pointer": 0.15,
        "-no-pie": 0.15,
    }
    flags += [flag for flag, odd in odds.items() if dice.random() < odd]
    return flags + (["-fno-pie"] if "-no-pie" in flags else [])


def flags_of_rust(dice: random.Random) -> list[str]:
    """How a program in Rust is compiled."""
    flags = [f"-Copt-level={dice.choice(['0', '1', '2', '3', '3', 's'])}"]
    flags += dice.choice([[], [], ["-Ctarget-cpu=x86-64-v3"]])
    odds = {"-Clto=fat": 0.2, "-Cstrip=symbols": 0.2, "-g": 0.4, "-Cpanic=abort": 0.2, "-Ccodegen-units=1": 0.3}
    return flags + [flag for flag, odd in odds.items() if dice.random() < odd]


def plan(seed: int) -> Plan:
    """The program of a seed."""
    dice = random.Random(seed)  # noqa: S311 (no secret)
    language = "rust" if dice.random() < 0.3 else "c"
    draw = Draw(dice, language)
    chosen = dice.sample(shapes(language), dice.randint(2, 6))
    phases = [draw.phase(number, shape) for number, shape in enumerate(chosen)]
    flags = flags_of_c(dice) if language == "c" else flags_of_rust(dice)
    two_files = language == "c" and dice.random() < 0.5
    interleaved = dice.random() < 0.6
    return Plan(
        seed,
        Build(language, tuple(flags)),
        tuple(draw.arrays),
        tuple(phases),
        interleaved,
        two_files,
        dice.uniform(1, 3),
    )


def sources(plan: Plan) -> dict[str, str]:
    """The program's files."""
    return c_source.files(plan) if plan.build.language == "c" else rust_source.files(plan)
