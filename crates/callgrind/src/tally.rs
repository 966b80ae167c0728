//! What lines mean together: of which file of code costs are, and whether all of them were read.

use std::collections::BTreeMap;

use tierloom_model::units::LINE_BYTES;
use tierloom_recording::{CacheLines, CountedPart, Fetched, InstructionCounts, SimulatedCaches};

use crate::error::Flaw;
use crate::line::{Line, Name, number, position, unknown};

/// Executions; loads and stores that the first level of the simulated caches did not have, and that no level had.
const EVENTS: [&str; 5] = ["Ir", "D1mr", "D1mw", "DLmr", "DLmw"];
/// Of a line of costs, or of all.
type Costs = [u64; EVENTS.len()];
/// Code of no file.
const NO_FILE: &str = "???";

/// What was read so far.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// Positions and costs of a line; nothing before the headers that say so.
    columns: Columns,
    /// Files of code by number.
    names: BTreeMap<u64, String>,
    /// The file of code that costs are of; empty where that is none.
    object: String,
    /// Address of the line before.
    address: u64,
    /// The next line holds the costs of what was called.
    is_transfer: bool,
    /// All costs of this part, those of no file too.
    sum: Costs,
    /// Sizes of the data caches, first and last level, bytes; a file tells them once.
    caches: [Option<u64>; 2],
    /// What is read now.
    part: CountedPart,
    /// Whether the totals of the last part were there.
    is_whole: bool,
    counts: InstructionCounts,
}

/// What stands where in a line of costs.
#[derive(Debug, Default, Clone, Copy)]
struct Columns {
    /// How many positions; the address is the first.
    positions: Option<usize>,
    /// Which of the costs is which event; executions are there before anything is counted.
    events: [Option<usize>; EVENTS.len()],
}

impl Columns {
    /// Whether lines were counted, all of them.
    fn has_lines(&self) -> bool {
        self.events.iter().all(Option::is_some)
    }
}

impl Tally {
    pub(crate) fn take(&mut self, line: Line<'_>) -> Result<(), Flaw> {
        match line {
            Line::Object(name) => self.object = self.named(name)?,
            Line::Called(name) => drop(self.named(name)?),
            Line::Transfer => self.is_transfer = true,
            Line::Costs(words) => self.costs(&words)?,
            Line::Header(key, value) => self.header(key, value)?,
            Line::Nothing => {}
        }
        Ok(())
    }

    /// All counts, if nothing is missing.
    pub(crate) fn counts(self) -> Result<InstructionCounts, Flaw> {
        match self.columns.positions {
            None => Err(Flaw::empty()),
            Some(_) if !self.is_whole => Err(Flaw::other("it ends early: its totals are missing")),
            Some(_) => Ok(InstructionCounts { caches: self.caches(), ..self.counts }),
        }
    }

    /// What lines were counted for.
    fn caches(&self) -> Option<SimulatedCaches> {
        let [first_bytes, last_bytes] = self.caches;
        self.columns.has_lines().then_some(SimulatedCaches { first_bytes: first_bytes?, last_bytes: last_bytes? })
    }

    fn named(&mut self, name: Name<'_>) -> Result<String, Flaw> {
        match name.number {
            None => Ok(name.text.to_owned()),
            Some(number) if name.text.is_empty() => {
                let known = self.names.get(&number).cloned();
                known.ok_or_else(|| Flaw::other(format!("nothing was given the number ({number}) before")))
            }
            Some(number) => {
                self.names.insert(number, name.text.to_owned());
                Ok(name.text.to_owned())
            }
        }
    }

    fn header(&mut self, key: &str, value: &str) -> Result<(), Flaw> {
        let words = value.split_ascii_whitespace();
        match key {
            "pid" => self.part.pid = number(value).ok_or_else(|| unknown(value))?,
            "cmd" => value.clone_into(&mut self.part.command),
            "part" => {
                self.part.number = number(value).ok_or_else(|| unknown(value))?;
                (self.part.begin, self.sum, self.is_whole) = (0, Costs::default(), false);
            }
            "desc" => self.describe(value)?,
            "positions" if words.clone().next() != Some("instr") => {
                return Err(Flaw::asked("it tells lines, and not instructions"));
            }
            "positions" => self.columns.positions = Some(words.count()),
            "events" => {
                let words: Vec<&str> = words.collect();
                self.columns.events = EVENTS.map(|event| words.iter().position(|word| *word == event));
                if self.columns.events[0].is_none() {
                    return Err(Flaw::asked("it tells no executions (`Ir`)"));
                }
            }
            "totals" => self.end(words)?,
            _ => {}
        }
        Ok(())
    }

    fn describe(&mut self, value: &str) -> Result<(), Flaw> {
        self.part.begin = blocks_before(value).unwrap_or(self.part.begin);
        for (name, size) in ["D1 cache:", "LL cache:"].iter().zip(&mut self.caches) {
            // Without simulation there is nothing behind the name.
            let told = value.strip_prefix(name).map(str::trim_ascii).filter(|told| !told.is_empty());
            *size = told.map(cache_bytes).transpose()?.or(*size);
        }
        Ok(())
    }

    fn end<'a>(&mut self, totals: impl Iterator<Item = &'a str>) -> Result<(), Flaw> {
        let totals: Vec<&str> = totals.collect();
        for (event, column) in self.columns.events.iter().enumerate() {
            let Some(column) = column else { continue };
            // Costs of nothing at the end of a line are left out; executions of nothing are none at all.
            let nothing = (event > 0).then_some(0);
            let (sum, total) = (self.sum[event], totals.get(*column).map_or(nothing, |word| number(word)));
            if total != Some(sum) {
                let told = total.map_or_else(|| "nothing".to_owned(), |total| total.to_string());
                let what = if event == 0 { "executions" } else { EVENTS[event] };
                return Err(Flaw::other(format!("{what} add up to {sum}, and its totals say {told}")));
            }
        }
        self.counts.parts.push(self.part.clone());
        (self.sum, self.is_whole) = (Costs::default(), true);
        Ok(())
    }

    fn costs(&mut self, words: &[&str]) -> Result<(), Flaw> {
        let Columns { positions: Some(positions), events } = self.columns else {
            return Err(Flaw::other("costs come before the lines `positions:` and `events:`"));
        };
        self.address = position(words.first().copied().unwrap_or_default(), self.address)?;
        if std::mem::take(&mut self.is_transfer) {
            return Ok(());
        }
        let mut costs = Costs::default();
        for (column, cost) in events.iter().zip(&mut costs) {
            // Costs of nothing at the end of a line are left out.
            let told = column.and_then(|column| words.get(positions + column));
            *cost = told.map_or(Some(0), |word| number(word)).ok_or_else(|| Flaw::other("costs are no numbers"))?;
        }
        for (sum, cost) in self.sum.iter_mut().zip(costs) {
            *sum = sum.checked_add(cost).ok_or_else(|| Flaw::other("more executions than can be"))?;
        }
        self.is_whole = false;
        self.count(costs);
        Ok(())
    }

    fn count(&mut self, [executions, load_first, store_first, load_last, store_last]: Costs) {
        if executions == 0 || self.object.is_empty() || self.object == NO_FILE {
            return;
        }
        if !self.counts.files.contains_key(&self.object) {
            self.counts.files.insert(self.object.clone(), BTreeMap::new());
        }
        if let Some(file) = self.counts.files.get_mut(&self.object) {
            let known = file.entry(self.address).or_default();
            *known = known.saturating_add(executions);
        }
        if [load_first, store_first, load_last, store_last] != [0; 4] && self.columns.has_lines() {
            let fetched = Fetched {
                by_loads: CacheLines { into_first: load_first, from_memory: load_last },
                by_stores: CacheLines { into_first: store_first, from_memory: store_last },
            };
            let file = self.counts.fetched.entry(self.object.clone()).or_default();
            file.entry(self.address).or_default().add(fetched);
        }
    }
}

/// Size of a cache that is described as `32768 B, 64 B, 8-way associative`.
fn cache_bytes(description: &str) -> Result<u64, Flaw> {
    let mut words = description.split(", ").map(|word| word.strip_suffix(" B").and_then(number));
    match (words.next().flatten(), words.next().flatten()) {
        (Some(size), Some(LINE_BYTES)) if size > 0 => Ok(size),
        (Some(_), Some(line)) => Err(Flaw::asked(format!("its caches have lines of {line} bytes, and not of 64"))),
        _ => Err(unknown(description)),
    }
}

/// Of a part that tells so: `Timerange: Basic block 10 - 20`.
fn blocks_before(description: &str) -> Option<u64> {
    let (begin, _) = description.strip_prefix("Timerange: Basic block ")?.split_once(" - ")?;
    number(begin)
}
