//! Programs with debug information, and what their allocations are assigned to.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use tierloom_binary::assignment::{Declarations, Fixed, assigned};
use tierloom_binary::code::CodePlace;
use tierloom_binary::debug_info::DebugInfo;
use tierloom_binary::debug_info::variables::Variable;
use tierloom_binary::elf::Binary;
use tierloom_binary::instruction::flow::Flow;

/// Functions that allocate, by their symbols.
const ALLOCATORS: [&str; 5] = ["malloc", "calloc", "posix_memalign", "_Znwm", "_Znam"];
/// Calls between a statement and the allocator, at most.
const DEEPEST: usize = 12;

/// A program, gone afterwards.
struct Program {
    folder: PathBuf,
    modules: Vec<Binary>,
    debug: DebugInfo,
}

impl Program {
    fn compiled(source: &str, compiler: &str, name: &str) -> Self {
        static COUNT: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
        let count = COUNT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("tierloom-assigned-{}-{count}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join(name), source).unwrap();
        let mut words = compiler.split(' ');
        let mut command = Command::new(words.next().unwrap());
        command.args(words).args(["-o", "program", name]).current_dir(&folder);
        assert!(command.status().unwrap().success(), "{compiler}");
        let path = folder.join("program");
        let debug = DebugInfo::read(&path, &[]);
        Self { modules: vec![Binary::read(path.to_str().unwrap())], debug, folder }
    }

    /// By line of the functions with these names: what its allocations are assigned to.
    fn names(&self, functions: &[&str]) -> BTreeMap<u32, Option<String>> {
        let mut found = BTreeMap::new();
        for range in self.modules[0].function_ranges() {
            if self.modules[0].function_name(range.start).is_some_and(|name| functions.contains(&name)) {
                self.allocations(range.start, &mut Vec::new(), &mut found);
            }
        }
        found
    }

    /// Allocations of a function and of those that it calls; `outer` are the calls on the way to it.
    fn allocations(&self, entry: u64, outer: &mut Vec<CodePlace>, found: &mut BTreeMap<u32, Option<String>>) {
        let module = &self.modules[0];
        let Some(range) = module.function_at(entry).filter(|_| outer.len() < DEEPEST) else { return };
        let instructions = tierloom_binary::arch::decode(module.code(&range).unwrap(), range.start);
        for (instruction, next) in instructions.iter().zip(&instructions[1..]) {
            let Flow::Call(target) = instruction.flow else { continue };
            outer.push(CodePlace { module: Some(0), address: next.address });
            match module.import_behind(target) {
                Some(name) if ALLOCATORS.contains(&name) => {
                    let stack: Vec<CodePlace> = outer.iter().rev().copied().collect();
                    found.insert(self.line(outer[0]), self.assigned(&stack));
                }
                Some(_) => {}
                None => self.allocations(target, outer, found),
            }
            outer.pop();
        }
    }

    fn line(&self, place: CodePlace) -> u32 {
        let line = self.debug.frames(place.address - 1).pop().and_then(|frame| frame.line).unwrap();
        line.rsplit(':').next().unwrap().parse().unwrap()
    }

    /// By the longest name.
    fn assigned(&self, stack: &[CodePlace]) -> Option<String> {
        let assignment = assigned(&self.modules, stack, self);
        match assignment.fixed {
            Some(Fixed::Symbol(symbol)) => Some(symbol.to_owned()),
            Some(Fixed::Declared(mut local)) => local.names.pop(),
            None => assignment.locals.into_iter().next().filter(|_| assignment.is_kept)?.names.pop(),
        }
    }
}

impl Declarations for Program {
    /// As the analysis takes them: none of the standard library's.
    fn variables(&self, place: CodePlace) -> Vec<Variable> {
        let functions: Vec<_> = self.debug.frames(place.address - 1).into_iter().rev().collect();
        let mut variables = self.debug.variables(place.address - 1);
        variables.retain(|variable| {
            let function = functions[variable.depth].function.as_deref().unwrap();
            !function.contains("std::") && !function.contains("__gnu_cxx::")
        });
        variables
    }

    fn names(&self, place: CodePlace, variable: &Variable, is_behind: bool, byte: u64) -> Vec<String> {
        self.debug.names(place.address - 1, variable, is_behind, byte)
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn lines(names: &[(u32, &str)]) -> BTreeMap<u32, Option<String>> {
    names.iter().map(|(line, name)| (*line, Some((*name).to_owned()))).collect()
}

const IN_C: &str = "#include <stdlib.h>
#include <string.h>
void use(void *data);
static double *everybodys;
static void *checked(size_t bytes) {
    void *found = malloc(bytes);
    if (!found) exit(1);
    return memset(found, 0, bytes);
}
__attribute__((noinline)) static void create(double **made, size_t bytes) { *made = malloc(bytes); }
int main(int count, char **words) {
    double *pressure = malloc(count * 8);
    double *velocity = calloc(count, 8);
    double *checkedly = checked(count * 8);
    static double *often;
    often = malloc(count * 8);
    double *known = malloc(count * 8);
    everybodys = known;
    use(malloc(count));
    double *aligned; if (posix_memalign((void **)&aligned, 64, count)) return 1;
    double *given; create(&given, count);
    long number = (long)malloc(count);
    use((void *)number); use(pressure); use(velocity); use(checkedly); use(often); use(everybodys); use(aligned); use(given);
    return words[0][0];
}
__attribute__((noinline)) void use(void *data) { __asm__ volatile(\"\" : : \"r\"(data) : \"memory\"); }
";

#[test]
fn an_allocation_in_c_has_the_name_of_its_local_variable() {
    for options in
        ["-O0", "-O1", "-O2", "-O3", "-O2 -fno-omit-frame-pointer", "-O2 -gdwarf-4", "-Og -gsplit-dwarf", "-O2 -flto"]
    {
        let program = Program::compiled(IN_C, &format!("gcc -g -w {options}"), "fields.c");
        let mut names = program.names(&["main"]);
        assert_eq!(names.remove(&19), Some(None), "{options}: what is only handed on has no name");
        assert_eq!(names.remove(&22), Some(None), "{options}: a number has no memory");
        let often = names.get_mut(&16).unwrap().take();
        assert_eq!(often.as_deref(), Some("often"), "{options}");
        names.remove(&16);
        let told =
            [(12, "pressure"), (13, "velocity"), (14, "checkedly"), (17, "everybodys"), (20, "aligned"), (21, "given")];
        assert_eq!(names, lines(&told), "{options}");
    }
}

#[test]
fn without_debug_information_there_are_no_local_variables() {
    let program = Program::compiled(IN_C, "gcc -O2 -w", "fields.c");
    assert!(program.debug.missing().is_some());
    assert!(program.debug.variables(program.modules[0].entry).is_empty());
}

const IN_CPP: &str = "#include <memory>
#include <vector>
void use(void *data);
struct Solver { std::vector<double> rhs; double *raw; Solver(int n) : rhs(n), raw(new double[n]) {} };
int main(int count, char **) {
    double *edges = new double[count];
    std::vector<double> pressure(count);
    std::unique_ptr<double[]> owned(new double[count]);
    auto made = std::make_unique<double[]>(count);
    use(edges); use(pressure.data()); use(owned.get()); use(made.get());
    return 0;
}
__attribute__((noinline)) void use(void *data) { __asm__ volatile(\"\" : : \"r\"(data) : \"memory\"); }
";

#[test]
fn an_allocation_in_cpp_has_the_name_of_its_variable_or_of_the_container_that_has_it() {
    let told = [(6, "edges"), (7, "pressure"), (8, "owned")];
    for options in ["-O1", "-O2", "-O3"] {
        let mut names = Program::compiled(IN_CPP, &format!("g++ -g {options}"), "cells.cpp").names(&["main"]);
        assert_eq!(names.remove(&9), Some(None), "{options}: the compiler says nowhere where it is kept");
        assert_eq!(names, lines(&told), "{options}");
    }
    let mut names = Program::compiled(IN_CPP, "g++ -g -O0", "cells.cpp").names(&["main"]);
    // What a constructor has from its caller is not followed into it.
    assert_eq!([names.remove(&8), names.remove(&9)], [Some(None), Some(None)]);
    assert_eq!(names, lines(&told[..2]));
}

const MEMBERS: &str = "#include <stdlib.h>
void use(void *data);
typedef struct { long count; struct { double *cells, *faces; } fields; int *links; } Mesh;
__attribute__((noinline)) static void fill(Mesh *mesh, size_t count) {
    mesh->fields.faces = malloc(count * 8);
    mesh->links = calloc(count, 4);
    use(mesh);
}
int main(int count, char **words) {
    Mesh mesh = {count};
    mesh.fields.cells = malloc(count * 8);
    fill(&mesh, count);
    use(&mesh);
    return words[0][0];
}
__attribute__((noinline)) void use(void *data) { __asm__ volatile(\"\" : : \"r\"(data) : \"memory\"); }
";

#[test]
fn an_allocation_has_the_name_of_the_member_that_it_is_assigned_to() {
    for options in ["-O1", "-O2", "-O3", "-O2 -gdwarf-4", "-O2 -flto"] {
        let program = Program::compiled(MEMBERS, &format!("gcc -g -w {options}"), "mesh.c");
        assert_eq!(program.names(&["main"]).remove(&11).flatten().as_deref(), Some("mesh.fields.cells"), "{options}");
        let told = [(5, "mesh->fields.faces"), (6, "mesh->links")];
        assert_eq!(program.names(&["fill"]), lines(&told), "{options}");
        assert_eq!(program.names(&["main"]), lines(&[(11, "mesh.fields.cells"), (12, "mesh.links")]), "{options}");
    }
}
