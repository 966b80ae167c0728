//! How often blocks ran, against each other, by what halted threads were about to do: the shape by these, the scale by
//! registers.
//!
//! Threads are halted at moments that are drawn from CPU time, and of each so many instructions are told. Within a stratum
//! (a function's outermost loop, or what is outside of its loops) and what runs along with it these have one pace, so the
//! blocks' executions are to each other as they are in all moments together. How often they ran in the whole run is told by
//! the block that registers count best there; else the instructions of a stratum stay as many as they were estimated.

use std::collections::BTreeMap;

use tierloom_binary::cfg::{BlockId, LoopId};
use tierloom_binary::code::FunctionId;

use crate::attribution::Observed;
use crate::attribution::lookaheads::SeenAhead;
use crate::frequency::Counts;
use crate::frequency::blocks::GUESSED;
use crate::frequency::counter_deltas::delta::Count;
use crate::frequency::strata::outermost;

/// A stratum that was met in fewer moments keeps what registers and samples say. Assumed.
const FEWEST: f64 = 4.0;
/// Registers that count a block worse than this are no scale, relative. Assumed.
const UNSURE: f64 = 0.05;
/// A stratum runs along with another one where this part of the moments that meet it meet the other, too. Assumed.
const ALONG: f64 = 0.5;

type Part = (FunctionId, Option<LoopId>);

/// A stratum as moments show it.
#[derive(Debug, Default, Clone)]
struct Met {
    /// In how many.
    moments: f64,
    /// Instructions, each moment's as a part of all of its own.
    share: f64,
    /// Moments that meet another stratum, too.
    along: BTreeMap<Part, f64>,
}

/// Puts what was seen ahead in the place of estimates where it tells enough.
pub(crate) fn replace(observed: &Observed, counts: &mut Counts) {
    if observed.ahead.is_empty() {
        return;
    }
    let shares = shares(&observed.ahead);
    let met = met(observed);
    let scales = scales(observed, counts, &shares, &met);
    for (&id, known) in &mut counts.blocks {
        for block in observed.code.functions[id].function.blocks.indices() {
            let Some(scale) = scales.get(&(id, outermost(observed, id, block))) else { continue };
            let executions = scale * shares.get(&(id, block)).copied().unwrap_or(0.0);
            let before = std::mem::replace(&mut known.executions[block], executions);
            // As unsure as before, as a part of it: what was the scale before is it still, or one that registers tell as well.
            known.deviations[block] =
                if before > 0.0 { known.deviations[block] / before * executions } else { GUESSED * executions };
        }
    }
}

/// Executions of blocks for each instruction, each moment by itself, added up.
fn shares(ahead: &[SeenAhead]) -> BTreeMap<(FunctionId, BlockId), f64> {
    let mut shares: BTreeMap<(FunctionId, BlockId), f64> = BTreeMap::new();
    for seen in ahead {
        for (block, executions) in &seen.executions {
            *shares.entry(*block).or_default() += executions / seen.instructions.max(1.0);
        }
    }
    shares
}

fn met(observed: &Observed) -> BTreeMap<Part, Met> {
    let mut met: BTreeMap<Part, Met> = BTreeMap::new();
    for seen in &observed.ahead {
        let mut parts: BTreeMap<Part, f64> = BTreeMap::new();
        for (&(id, block), executions) in &seen.executions {
            let instructions = executions * observed.code.functions[id].function.blocks[block].len() as f64;
            *parts.entry((id, outermost(observed, id, block))).or_default() +=
                instructions / seen.instructions.max(1.0);
        }
        for (part, share) in &parts {
            let one = met.entry(*part).or_default();
            (one.moments, one.share) = (one.moments + 1.0, one.share + share);
            for other in parts.keys().filter(|other| *other != part) {
                *one.along.entry(*other).or_default() += 1.0;
            }
        }
    }
    met
}

/// What executions for each instruction are multiplied by, of strata that were met often enough.
fn scales(
    observed: &Observed,
    counts: &Counts,
    shares: &BTreeMap<(FunctionId, BlockId), f64>,
    met: &BTreeMap<Part, Met>,
) -> BTreeMap<Part, f64> {
    let mut clocked: BTreeMap<Part, (&Count, f64)> = BTreeMap::new();
    for ((id, _), clock) in counts.by_loop.iter().filter(|(_, clock)| clock.relative_error < UNSURE) {
        let Some(share) = shares.get(&(*id, clock.block)).copied().filter(|share| *share > 0.0) else { continue };
        let best = clocked.entry((*id, outermost(observed, *id, clock.block))).or_insert((clock, share));
        if clock.relative_error < best.0.relative_error {
            *best = (clock, share);
        }
    }
    let own = |part: &Part| clocked.get(part).map(|(clock, share)| clock.executions / share);
    let along = |one: &Met| {
        let others = one.along.iter().filter(|(_, moments)| **moments >= ALONG * one.moments);
        let scaled = others.filter_map(|(part, moments)| Some((own(part)?, *moments, met.get(part)?.share)));
        scaled.max_by(|one, other| (one.1 * one.2).total_cmp(&(other.1 * other.2))).map(|(scale, ..)| scale)
    };
    let estimated = |(id, inside): &Part, one: &Met| {
        let known = counts.blocks.get(id)?;
        let function = &observed.code.functions[*id].function;
        let blocks = function.blocks.indices().filter(|block| outermost(observed, *id, *block) == *inside);
        let instructions: f64 = blocks.map(|block| known.executions[block] * function.blocks[block].len() as f64).sum();
        Some(instructions / one.share)
    };
    let often = met.iter().filter(|(_, one)| one.moments >= FEWEST && one.share > 0.0);
    let scale =
        |(part, one): (&Part, &Met)| Some((*part, own(part).or_else(|| along(one)).or_else(|| estimated(part, one))?));
    often.filter_map(scale).collect()
}
