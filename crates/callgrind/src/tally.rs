//! What lines mean together: of which file of code costs are, and whether all of them were read.

use std::collections::BTreeMap;

use tierloom_recording::{CountedPart, InstructionCounts};

use crate::error::Flaw;
use crate::line::{Line, Name, number, position, unknown};

/// The event that is an execution.
const EXECUTIONS: &str = "Ir";
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
    /// All executions of this part, those of no file too.
    sum: u64,
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
    /// Which of the costs is the number of executions.
    executions: Option<usize>,
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
            Some(_) => Ok(self.counts),
        }
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
        let mut words = value.split_ascii_whitespace();
        match key {
            "pid" => self.part.pid = number(value).ok_or_else(|| unknown(value))?,
            "cmd" => value.clone_into(&mut self.part.command),
            "part" => {
                self.part.number = number(value).ok_or_else(|| unknown(value))?;
                (self.part.begin, self.sum, self.is_whole) = (0, 0, false);
            }
            "desc" => self.part.begin = blocks_before(value).unwrap_or(self.part.begin),
            "positions" if words.clone().next() != Some("instr") => {
                return Err(Flaw::asked("it tells lines, and not instructions"));
            }
            "positions" => self.columns.positions = Some(words.count()),
            "events" => {
                let found = words.position(|event| event == EXECUTIONS);
                self.columns.executions = Some(found.ok_or_else(|| Flaw::asked("it tells no executions (`Ir`)"))?);
            }
            "totals" => self.end(words)?,
            _ => {}
        }
        Ok(())
    }

    fn end<'a>(&mut self, mut totals: impl Iterator<Item = &'a str>) -> Result<(), Flaw> {
        let total = totals.nth(self.columns.executions.unwrap_or(0)).and_then(number);
        if total != Some(self.sum) {
            let told = total.map_or_else(|| "nothing".to_owned(), |total| total.to_string());
            return Err(Flaw::other(format!("executions add up to {}, and its totals say {told}", self.sum)));
        }
        self.counts.parts.push(self.part.clone());
        (self.sum, self.is_whole) = (0, true);
        Ok(())
    }

    fn costs(&mut self, words: &[&str]) -> Result<(), Flaw> {
        let Columns { positions: Some(positions), executions: Some(column) } = self.columns else {
            return Err(Flaw::other("costs come before the lines `positions:` and `events:`"));
        };
        self.address = position(words.first().copied().unwrap_or_default(), self.address)?;
        if std::mem::take(&mut self.is_transfer) {
            return Ok(());
        }
        // Costs of nothing at the end of a line are left out.
        let executions = words.get(positions + column).map_or(Some(0), |word| number(word));
        let executions = executions.ok_or_else(|| Flaw::other("costs are no numbers"))?;
        let too_many = || Flaw::other("more executions than can be");
        self.sum = self.sum.checked_add(executions).ok_or_else(too_many)?;
        self.is_whole = false;
        self.count(executions);
        Ok(())
    }

    fn count(&mut self, executions: u64) {
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
    }
}

/// Of a part that tells so: `Timerange: Basic block 10 - 20`.
fn blocks_before(description: &str) -> Option<u64> {
    let (begin, _) = description.strip_prefix("Timerange: Basic block ")?.split_once(" - ")?;
    number(begin)
}
