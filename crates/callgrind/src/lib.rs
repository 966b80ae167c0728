//! How often every instruction ran, from files that Valgrind's callgrind wrote with `--dump-instr=yes`; and with
//! `--cache-sim=yes` how many lines it fetched into the caches that callgrind simulates.
//!
//! Format: *Callgrind Format Specification* in Valgrind's manual, with compressed names and positions. A file is read
//! from front to back and never held as a whole; nothing in it is trusted. Its sums are held against its own totals, so
//! that a file which ends early is refused, and so is a process of which a part is missing.

mod error;
mod line;
mod tally;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, canonicalize};
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

pub use error::CallgrindError;
use error::Flaw;
use line::Line;
use tally::Tally;
use tierloom_recording::InstructionCounts;

/// Names of C++ templates are long; longer lines than this are not text. Assumed.
const LONGEST_LINE: u64 = 1 << 20;

/// What files count together; each is a process, a part of one, or a thread.
///
/// # Errors
/// One cannot be read, or is there twice, or a part of a process is missing.
pub fn read(paths: &[PathBuf]) -> Result<InstructionCounts, CallgrindError> {
    let (mut all, mut files, mut processes) = (InstructionCounts::default(), BTreeSet::new(), Processes::new());
    for path in paths {
        if !files.insert(canonicalize(path).unwrap_or_else(|_| path.clone())) {
            return Err(CallgrindError::Twice { path: path.clone() });
        }
        let counts = read_one(path)?;
        if let Some(first) = paths.first().filter(|_| !all.parts.is_empty() && all.caches != counts.caches) {
            return Err(CallgrindError::OtherCaches { path: path.clone(), first: first.clone() });
        }
        for part in &counts.parts {
            let process = processes.entry((part.pid, part.command.clone())).or_insert((path, BTreeSet::new()));
            process.1.insert(part.number);
        }
        all.add(counts);
    }
    whole(&processes)?;
    Ok(all)
}

/// By process id and command, which an exec changes: a file of it, and the parts that were read.
type Processes<'a> = BTreeMap<(u64, String), (&'a PathBuf, BTreeSet<u64>)>;

/// Parts are numbered from 1 on.
fn whole(processes: &Processes<'_>) -> Result<(), CallgrindError> {
    for ((pid, _), (path, parts)) in processes {
        let missing = (1..).zip(parts).find(|(expected, part)| expected != *part);
        if let Some((part, _)) = missing {
            return Err(CallgrindError::PartMissing { path: (*path).clone(), pid: *pid, part });
        }
    }
    Ok(())
}

fn read_one(path: &Path) -> Result<InstructionCounts, CallgrindError> {
    let file = File::open(path).map_err(|error| Flaw::Unreadable(error).of(path, 0))?;
    let mut number = 0;
    counts(BufReader::new(file), &mut number).map_err(|flaw| flaw.of(path, number))
}

/// `number` is that of the line that was read last.
fn counts(mut lines: impl BufRead, number: &mut u64) -> Result<InstructionCounts, Flaw> {
    let (mut tally, mut bytes) = (Tally::default(), Vec::new());
    loop {
        bytes.clear();
        (&mut lines).take(LONGEST_LINE).read_until(b'\n', &mut bytes).map_err(Flaw::Unreadable)?;
        if bytes.is_empty() {
            return tally.counts();
        }
        *number += 1;
        if bytes.len() as u64 == LONGEST_LINE {
            return Err(Flaw::other("a line has no end"));
        }
        tally.take(Line::of(&String::from_utf8_lossy(&bytes))?)?;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;
    use tierloom_recording::{CacheLines, CountedPart, Fetched, SimulatedCaches};

    use super::*;

    /// A program, a library that it calls, and the program again, as callgrind writes them.
    const SMALL: &str = "# callgrind format\nversion: 1\ncreator: callgrind-3.19.0\npid: 7\ncmd:  ./app 10\npart: 1\n\n\
        desc: I1 cache: \ndesc: D1 cache: \ndesc: LL cache: \n\ndesc: Trigger: Program termination\n\n\
        positions: instr\nevents: Ir\nsummary: 338\n\n\n\
        ob=(1) /home/me/app\nfl=(1) app.c\nfn=(1) main\n0x1000 1\n+3 10\ncob=(2) /lib/libc.so.6\ncfi=(2)\ncfn=(2) malloc\n\
        calls=5 0x8000 \n* 250\n* 5\n-3 2\nfn=(3) sum\njcnd=9/10 +4\n* \n* 10\n\n\
        ob=(2)\nfn=(2)\n0x8000 300\n\nob=(1)\nfn=(1)\n0x1010 10\n\ntotals: 338\n";

    fn parsed(text: &str) -> Result<InstructionCounts, String> {
        let mut number = 0;
        let result = counts(text.as_bytes(), &mut number);
        result.map_err(|flaw| flaw.of(Path::new("callgrind.out.7"), number).to_string())
    }

    fn of(counts: &InstructionCounts, path: &str) -> Vec<(u64, u64)> {
        counts.files[path].iter().map(|(address, executions)| (*address, *executions)).collect()
    }

    #[test]
    fn own_costs_are_counted_and_those_of_calls_and_jumps_are_not() {
        let counts = parsed(SMALL).unwrap();
        assert_eq!(of(&counts, "/home/me/app"), [(0x1000, 13), (0x1003, 15), (0x1010, 10)]);
        assert_eq!(of(&counts, "/lib/libc.so.6"), [(0x8000, 300)]);
        let part = CountedPart { pid: 7, command: "./app 10".to_owned(), number: 1, begin: 0 };
        assert_eq!(counts.parts, [part]);
    }

    #[test]
    fn code_of_no_file_is_left_out() {
        let counts = parsed(&SMALL.replace("(2) /lib/libc.so.6", "(2) ???")).unwrap();
        assert_eq!(counts.files.keys().collect::<Vec<_>>(), ["/home/me/app"]);
    }

    #[test]
    fn names_need_not_be_compressed_and_lines_and_more_events_may_be_there() {
        let text = "version: 1\ncmd: a\npositions: instr line\nevents: Bc Ir\nob=/a\nfn=main\n0x10 5 1 2\n+0x2 * 0 3\n16 6 4\n\
            totals: 5 5\n";
        assert_eq!(of(&parsed(text).unwrap(), "/a"), [(0x10, 2), (0x12, 3)]);
    }

    /// What [`SMALL`] would be with simulated caches: the program misses at one place, and its library at another.
    fn with_caches() -> String {
        let described =
            "desc: D1 cache: 32768 B, 64 B, 8-way associative\ndesc: LL cache: 1048576 B, 64 B, 16-way associative\n";
        SMALL
            .replace("positions: instr", &format!("{described}positions: instr"))
            .replace("events: Ir", "events: Ir Dr Dw I1mr D1mr D1mw ILmr DLmr DLmw")
            .replace("+3 10\n", "+3 10 10 5 0 7 1 0 4 1\n")
            .replace("0x8000 300\n", "0x8000 300 0 100 1 0 9 1\n")
            .replace("totals: 338", "totals: 338 10 105 1 7 10 1 4 1")
    }

    #[test]
    fn lines_are_counted_where_caches_were_simulated() {
        let counts = parsed(&with_caches()).unwrap();
        assert_eq!(counts.caches, Some(SimulatedCaches { first_bytes: 32768, last_bytes: 1 << 20 }));
        let lines = |into_first, from_memory| CacheLines { into_first, from_memory };
        let app = Fetched { by_loads: lines(7, 4), by_stores: lines(1, 1) };
        let library = Fetched { by_loads: lines(0, 0), by_stores: lines(9, 0) };
        assert_eq!(counts.fetched["/home/me/app"], BTreeMap::from([(0x1003, app)]));
        assert_eq!(counts.fetched["/lib/libc.so.6"], BTreeMap::from([(0x8000, library)]));
        assert_eq!(counts.files, parsed(SMALL).unwrap().files, "executions are the same");
        let wrong = parsed(&with_caches().replace("7 10 1 4 1", "7 10 1 5 1"));
        assert!(wrong.unwrap_err().contains("DLmr add up to 4"));
    }

    #[test]
    fn other_lines_than_of_64_bytes_are_refused() {
        let told = parsed(&with_caches().replace("32768 B, 64 B", "32768 B, 32 B")).unwrap_err();
        assert!(told.contains("lines of 32 bytes"), "{told}");
    }

    #[test]
    fn parts_of_one_file_add_up() {
        let text = format!("{SMALL}\npart: 2\n\npositions: instr\nevents: Ir\n\nob=(1)\nfn=(1)\n0x1000 7\ntotals: 7\n");
        let counts = parsed(&text).unwrap();
        assert_eq!(of(&counts, "/home/me/app")[0], (0x1000, 20));
        assert_eq!(counts.parts.iter().map(|part| part.number).collect::<Vec<_>>(), [1, 2]);
    }

    #[test]
    fn a_part_says_where_it_begins() {
        let text = SMALL.replace("desc: Trigger", "desc: Timerange: Basic block 70 - 90\ndesc: Trigger");
        assert_eq!(parsed(&text).unwrap().parts[0].begin, 70);
    }

    #[test]
    fn jumps_to_other_functions_are_told_by_name_and_count_nothing() {
        let jump = "jfi=(3) other.c\njfn=(4) other\njump=7 -4\n* \njfl=(1)\njfn=(3)\njcnd=9/10 +4\n";
        assert_eq!(parsed(&SMALL.replace("jcnd=9/10 +4\n", jump)), parsed(SMALL));
    }

    #[test]
    fn a_process_needs_all_its_parts() {
        let folder = std::env::temp_dir().join(format!("tierloom-callgrind-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let part = |number: u64, pid: u64| {
            let path = folder.join(format!("{pid}.{number}"));
            let text = SMALL.replace("part: 1", &format!("part: {number}")).replace("pid: 7", &format!("pid: {pid}"));
            std::fs::write(&path, text).unwrap();
            path
        };
        let told = |paths: &[PathBuf]| read(paths).map_err(|error| error.to_string());
        let (first, second, third, other) = (part(1, 7), part(2, 7), part(3, 7), part(1, 8));
        let all = told(&[third.clone(), other, first.clone(), second.clone()]).unwrap();
        assert_eq!(of(&all, "/home/me/app")[0], (0x1000, 4 * 13));
        let missing = told(&[first.clone(), third]).unwrap_err();
        assert!(missing.contains("part 2 of this process (pid 7) is missing"), "{missing}");
        assert!(told(&[second]).unwrap_err().contains("part 1 of"));
        assert!(told(&[first.clone(), first.clone()]).unwrap_err().contains("given twice"));
        let simulated = folder.join("9.1");
        std::fs::write(&simulated, with_caches().replace("pid: 7", "pid: 9")).unwrap();
        assert!(told(&[first, simulated]).unwrap_err().contains("9.1: it was counted with other caches than"));
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn what_is_wrong_is_told_with_its_line_and_what_to_do() {
        let told = |from: &str, to: &str| parsed(&SMALL.replace(from, to)).unwrap_err();
        let by_line = told("positions: instr", "positions: line");
        assert!(by_line.starts_with("callgrind.out.7, line 14: "), "{by_line}");
        assert!(by_line.contains("hint: ") && by_line.contains("--dump-instr=yes"), "{by_line}");
        assert!(told("events: Ir", "events: Dr").contains("line 15"));
        assert!(told("totals: 338", "totals: 339").contains("add up to"));
        assert!(told("0x8000 300", "0x8000 three").contains("line 38"));
        assert!(told("ob=(2)\n", "ob=(9)\n").contains("(9)"));
        assert!(told("-3 2", "-4101 2").contains("before the first address"));
        assert!(told("totals: 338\n", "").contains("ends early"));
        assert!(parsed("").unwrap_err().contains("is empty"));
        assert!(parsed("{\"traceEvents\": []}").unwrap_err().contains("line 1"));
    }

    proptest! {
        /// A file that is cut is one error, and one that is changed somewhere is an error or other counts.
        #[test]
        fn a_damaged_file_is_one_error(cut in 0usize..SMALL.len() - 1, at in 0usize..SMALL.len(), byte in 0u8..128) {
            prop_assert!(parsed(&SMALL[..cut]).is_err());
            let mut bytes = SMALL.as_bytes().to_vec();
            bytes[at] = byte;
            let mut number = 0;
            let total = |counts: InstructionCounts| counts.files.values().flat_map(BTreeMap::values).sum::<u64>();
            if let Ok(read) = counts(&bytes[..], &mut number) {
                prop_assert!(total(read) <= 338 * 10, "no more than the totals say");
            }
        }
    }
}
