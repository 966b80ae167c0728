//! Text traces: `valgrind --tool=lackey --trace-mem=yes` and the record view of drmemtrace.
//!
//! Lackey writes ` L address,size`, ` S …`, ` M …` and `I  …` with hexadecimal addresses; lines of valgrind
//! itself start with `==`. drmemtrace's view (`drrun -t drmemtrace -tool view`) writes a record and an
//! instruction number, the thread (`T7`, `7`, or since 2025 `W0.T7` with the workload), and `read`, `write`, `ifetch` or a
//! marker. What is no data access is
//! passed over; what claims to be one and cannot be read is an error with its row.

use std::str::FromStr;

use super::access::Access;
use crate::error::TieringError;

/// Longest line that is read; lines of both formats are far shorter.
const LONGEST: usize = 4096;

/// Which tool wrote the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// valgrind's lackey.
    Lackey,
    /// The record view of `DynamoRIO`'s drmemtrace.
    Drmemtrace,
}

impl FromStr for Format {
    type Err = TieringError;

    fn from_str(text: &str) -> Result<Self, TieringError> {
        match text {
            "lackey" => Ok(Self::Lackey),
            "drmemtrace" => Ok(Self::Drmemtrace),
            _ => Err(TieringError::request("format", format!("`{text}` is none"), "use lackey or drmemtrace")),
        }
    }
}

/// Takes text as it arrives and hands out accesses.
#[derive(Debug, Clone)]
pub struct Parser {
    format: Format,
    file: String,
    row: u64,
    rest: Vec<u8>,
}

impl Parser {
    /// A parser; `file` is only named in errors.
    pub fn new(format: Format, file: &str) -> Self {
        Self { format, file: file.to_owned(), row: 0, rest: Vec::new() }
    }

    /// Rows read so far.
    pub fn rows(&self) -> u64 {
        self.row
    }

    /// Parses the whole lines of some more text; what is left waits for more.
    ///
    /// # Errors
    /// [`TieringError::BadTrace`] with the first row that cannot be read.
    pub fn feed(&mut self, text: &[u8], out: &mut Vec<Access>) -> Result<(), TieringError> {
        let mut start = 0;
        while let Some(length) = text[start..].iter().position(|byte| *byte == b'\n') {
            let line = &text[start..start + length];
            start += length + 1;
            if self.rest.is_empty() {
                self.line(line, out)?;
            } else {
                let mut whole = std::mem::take(&mut self.rest);
                whole.extend_from_slice(line);
                self.line(&whole, out)?;
                whole.clear();
                self.rest = whole;
            }
        }
        self.rest.extend_from_slice(&text[start..]);
        if self.rest.len() > LONGEST {
            self.row += 1;
            return Err(self.bad(&format!("a line of more than {LONGEST} bytes")));
        }
        Ok(())
    }

    /// Parses a last line that has no end.
    ///
    /// # Errors
    /// As for [`Parser::feed`].
    pub fn finish(&mut self, out: &mut Vec<Access>) -> Result<(), TieringError> {
        let rest = std::mem::take(&mut self.rest);
        if rest.is_empty() { Ok(()) } else { self.line(&rest, out) }
    }

    fn line(&mut self, line: &[u8], out: &mut Vec<Access>) -> Result<(), TieringError> {
        self.row += 1;
        let found = match self.format {
            Format::Lackey => lackey(line),
            Format::Drmemtrace => drmemtrace(line),
        };
        match found {
            Ok(Some((access, modifies))) => {
                out.push(access);
                if modifies {
                    out.push(Access { write: true, ..access });
                }
                Ok(())
            }
            Ok(None) => Ok(()),
            Err(problem) => Err(self.bad(&problem)),
        }
    }

    fn bad(&self, problem: &str) -> TieringError {
        let hint = match self.format {
            Format::Lackey => "lackey writes ` L 1ffeffe7e8,8`; was it run with --trace-mem=yes?",
            Format::Drmemtrace => "the view writes `… read 8 byte(s) @ 0x7ffe1234 by PC …`; was it made by -tool view?",
        };
        TieringError::BadTrace {
            file: self.file.clone(),
            row: self.row,
            problem: problem.to_owned(),
            hint: hint.to_owned(),
        }
    }
}

/// An access, and whether it stores as well as loads; none for a line that is no data access.
type Found = Result<Option<(Access, bool)>, String>;

fn lackey(line: &[u8]) -> Found {
    let (kind, rest) = match line {
        [b' ', kind @ (b'L' | b'S' | b'M'), b' ', rest @ ..] => (*kind, rest),
        _ => return Ok(None),
    };
    let comma = rest.iter().position(|byte| *byte == b',').ok_or_else(|| problem("no size after the address", line))?;
    let address = hexadecimal(&rest[..comma]).ok_or_else(|| problem("no address", line))?;
    if !rest[comma + 1..].trim_ascii().iter().all(u8::is_ascii_digit) || rest.len() == comma + 1 {
        return Err(problem("no size", line));
    }
    Ok(Some((Access { address, write: kind == b'S', ..Access::default() }, kind == b'M')))
}

fn drmemtrace(line: &[u8]) -> Found {
    let mut words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    let mut thread = None;
    while let Some(word) = words.next() {
        let write = match word {
            b"read" => false,
            b"write" => true,
            _ => {
                thread = thread_of(word).or(thread);
                continue;
            }
        };
        let at = words.find(|word| *word == b"@").and_then(|_| words.next());
        let address = at.and_then(|word| word.strip_prefix(b"0x")).and_then(hexadecimal);
        let address = address.ok_or_else(|| problem("no address after `@`", line))?;
        return Ok(Some((Access { address, thread: thread.unwrap_or(0), write, time_ns: 0 }, false)));
    }
    Ok(None)
}

/// The thread of `7`, `T7` or `W0.T7`: threads of the first workload keep their numbers, those of others lie above them.
fn thread_of(word: &[u8]) -> Option<u32> {
    /// Linux has fewer threads: `PID_MAX_LIMIT` is 2^22.
    const A_WORKLOADS_THREADS: u32 = 1 << 22;
    let dot = word.iter().position(|byte| *byte == b'.');
    match (word, dot) {
        ([b'W', ..], Some(dot)) => {
            let workload = decimal(&word[1..dot])?;
            let thread = decimal(word[dot + 1..].strip_prefix(b"T")?)?;
            workload.checked_mul(A_WORKLOADS_THREADS)?.checked_add(thread)
        }
        _ => decimal(word.strip_prefix(b"T").unwrap_or(word)),
    }
}

fn hexadecimal(digits: &[u8]) -> Option<u64> {
    u64::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

fn decimal(digits: &[u8]) -> Option<u32> {
    std::str::from_utf8(digits).ok()?.parse().ok()
}

fn problem(what: &str, line: &[u8]) -> String {
    let shown: String = String::from_utf8_lossy(line).chars().take(60).collect();
    format!("{what} in `{shown}`")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parse(format: Format, text: &str) -> Result<Vec<Access>, TieringError> {
        let (mut parser, mut out) = (Parser::new(format, "t"), Vec::new());
        parser.feed(text.as_bytes(), &mut out)?;
        parser.finish(&mut out)?;
        Ok(out)
    }

    #[test]
    fn lackey_is_read() {
        let text = "==12== Lackey\nI  04016c0,3\n L 1ffeffe7e8,8\n S 1ffeffe7e0,8\n M 0421c7cc,4\n";
        let found = parse(Format::Lackey, text).unwrap();
        let short: Vec<(u64, bool)> = found.iter().map(|access| (access.address, access.write)).collect();
        assert_eq!(short, [(0x1f_feff_e7e8, false), (0x1f_feff_e7e0, true), (0x421_c7cc, false), (0x421_c7cc, true)]);
    }

    #[test]
    fn the_view_of_drmemtrace_is_read() {
        let text = "   1   0:  3264604 <marker: version 3>\n  10   1:  3264604 ifetch 3 byte(s) @ 0x00007f2f7f1a5dd0 non-branch\n  \
                    12   2:  3264604 write 8 byte(s) @ 0x00007ffe7b3f8cd8 by PC 0x00007f2f7f1a5dd3\n  13   3:  T7 read 4 byte(s) @ 0x10 by PC 0x1";
        let found = parse(Format::Drmemtrace, text).unwrap();
        assert_eq!(found.len(), 2);
        assert_eq!((found[0].address, found[0].thread, found[0].write), (0x7ffe_7b3f_8cd8, 3_264_604, true));
        assert_eq!((found[1].address, found[1].thread, found[1].write), (0x10, 7, false));
    }

    #[test]
    fn the_thread_of_a_view_with_workloads_is_no_record_number() {
        let text = "  8  1:  W0.T3 read 32 byte(s) @ 0x10 by PC 0x1\n  9  2:  W0.T4 write 8 byte(s) @ 0x20 by PC 0x1\n  \
                    10  3:  W1.T3 read 8 byte(s) @ 0x30 by PC 0x1\n";
        let found = parse(Format::Drmemtrace, text).unwrap();
        let threads: Vec<u32> = found.iter().map(|access| access.thread).collect();
        assert_eq!(threads, [3, 4, (1 << 22) + 3]);
    }

    #[test]
    fn a_bad_row_is_named() {
        let text = parse(Format::Lackey, " L 10,8\n L zz,8\n").unwrap_err().to_string();
        assert!(text.starts_with("t:2:") && text.contains("zz") && text.contains("hint:"), "{text}");
        let text = parse(Format::Drmemtrace, " 1 1: 2 read 8 byte(s) @ zz").unwrap_err().to_string();
        assert!(text.starts_with("t:1:"), "{text}");
    }

    proptest! {
        #[test]
        fn any_bytes_are_answered(bytes in prop::collection::vec(any::<u8>(), 0..300), lackey in any::<bool>()) {
            let format = if lackey { Format::Lackey } else { Format::Drmemtrace };
            let (mut parser, mut out) = (Parser::new(format, "t"), Vec::new());
            let _ = parser.feed(&bytes, &mut out).and_then(|()| parser.finish(&mut out));
        }

        #[test]
        fn where_text_is_cut_makes_no_difference(cut in 0usize..60) {
            let text = b" L 1ffeffe7e8,8\n S 1ffeffe7e0,8\nI  04016c0,3\n M 0421c7cc,4\n";
            let (mut parser, mut out) = (Parser::new(Format::Lackey, "t"), Vec::new());
            let cut = cut.min(text.len());
            parser.feed(&text[..cut], &mut out).unwrap();
            parser.feed(&text[cut..], &mut out).unwrap();
            parser.finish(&mut out).unwrap();
            prop_assert_eq!(out, parse(Format::Lackey, std::str::from_utf8(text).unwrap()).unwrap());
        }
    }
}
