//! Which objects an operand touches, by windows: each tells for as many executions as it stands for. And by what halted
//! threads were about to do.
//!
//! An operand may be quick on one object and slow on another. Windows begin at moments of time, so the slow one is seen
//! more often than it is executed; how often the operand is executed in each window sets that right.

use std::collections::BTreeMap;

use crate::attribution::Observed;
use crate::attribution::touches::OperandTouches;
use crate::attribution::windows::CountedWindow;
use crate::attribution::{ByObject, OperandId};
use crate::frequency::windows::Rates;

/// What windows show of operands.
#[derive(Debug, Default)]
pub(crate) struct Placements {
    operands: BTreeMap<OperandId, Shown>,
}

/// Of an operand.
#[derive(Debug, Default)]
struct Shown {
    /// In how many windows and other moments it was seen.
    windows: usize,
    /// By windows that counted it.
    counted: ByObject,
    /// By these moments alone.
    seen: ByObject,
}

impl Placements {
    /// Of these windows.
    pub(crate) fn of(observed: &Observed, windows: &[&CountedWindow], rates: &Rates<'_>) -> Self {
        let mut placements = Self::default();
        let moments =
            windows.iter().map(|window| &window.touches).chain(observed.ahead.iter().map(|ahead| &ahead.touches));
        for moment in moments {
            for touches in &moment.operands {
                let shown = placements.operands.entry(touches.operand).or_default();
                shown.windows += 1;
                add(&mut shown.seen, touches, touches.executions);
            }
        }
        for (window, factor) in rates.windows() {
            for touches in &window.touches.operands {
                let executions = factor * executions(observed, window, touches.operand);
                if let Some(shown) = placements.operands.get_mut(&touches.operand) {
                    add(&mut shown.counted, touches, executions);
                }
            }
        }
        placements
    }

    /// Of an operand, in how many windows and on which objects it was seen.
    pub(crate) fn shown(&self, operand: OperandId) -> Option<(usize, &ByObject)> {
        let shown = self.operands.get(&operand)?;
        let by_object = if shown.counted.values().sum::<f64>() > 0.0 { &shown.counted } else { &shown.seen };
        Some((shown.windows, by_object))
    }
}

fn add(by_object: &mut ByObject, touches: &OperandTouches, executions: f64) {
    let each = executions / touches.objects.len().max(1) as f64;
    for object in &touches.objects {
        *by_object.entry(*object).or_default() += each;
    }
}

/// How often an operand was executed in the part of the run that a window stands for.
fn executions(observed: &Observed, window: &CountedWindow, operand: OperandId) -> f64 {
    let id = operand.function;
    let block = observed.code.functions[id].function.block_of(operand.instruction);
    window.executions.get(&(id, block)).copied().unwrap_or(0.0)
}
