//! How the addresses of an operand follow each other: stream, stride, random, chain.
//!
//! Read off the code: an operand whose registers move by a constant is a stream or a stride; one
//! whose base comes, over any number of instructions, from a load that it feeds itself is a chain;
//! everything else is random but independent.

use std::collections::BTreeMap;

use tierloom_model::Pattern;
use tierloom_model::units::LINE_BYTES;

use tierloom_binary::cfg::{BlockId, Function, LoopId};
use tierloom_binary::dataflow::dependence::feeds_itself;
use tierloom_binary::dataflow::forms::RoundForms;
use tierloom_binary::dataflow::state::State;
use tierloom_binary::dataflow::steady::Steady;
use tierloom_binary::dataflow::update::Step;
use tierloom_binary::instruction::{Operand, RegisterSet};

/// Pattern of an operand, and how far apart its addresses are where that is constant.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct AddressStream {
    pub(crate) pattern: Pattern,
    /// Bytes from one access to the next; 0 when it stays where it is.
    pub(crate) stride: Option<i64>,
    /// Rounds of a walk that is too short for a prefetcher to notice.
    pub(crate) short_walk: Option<f64>,
}

/// Shape of an operand at a position, judged in the innermost loop that moves it. `state` gives
/// strides that are in registers; `rounds` tells the rounds of a loop that starts somewhere else each
/// time, where they are known.
pub(crate) fn shape<'a>(
    function: &'a Function,
    position: usize,
    operand: &Operand,
    state: Option<&State>,
    forms: &mut Forms<'a>,
    rounds: impl Fn(LoopId) -> Option<f64>,
) -> AddressStream {
    if operand.repeats.is_some() {
        // It walks by itself, wherever it begins.
        return moving(Step::Constant(i64::from(operand.bytes)), None);
    }
    let block = function.block_of(position);
    let mut walk: Option<(AddressStream, f64)> = None;
    for around in function.loops_around(block) {
        let steady = Steady::of(function, around);
        if steady.still(operand) {
            continue;
        }
        let by_register = steady.step(operand).map(|(step, _)| step);
        let step = by_register.or_else(|| stride(function, around, position, operand, forms).map(Step::Constant));
        if step == Some(Step::Constant(0)) {
            continue;
        }
        if let Some(step) = step {
            let shape = moving(step, state);
            match rounds(around).filter(|rounds| walk.is_none() && is_short(shape, *rounds)) {
                Some(rounds) => walk = Some((shape, rounds)),
                None => return walk.map_or(shape, |(walk, _)| walk),
            }
            continue;
        }
        let chain = operand.registers().iter().any(|register| feeds_itself(function, around, position, register));
        let pattern = if chain { Pattern::Chain } else { Pattern::Random };
        let (stride, short_walk) = walk.map_or((None, None), |(walk, rounds)| (walk.stride, Some(rounds)));
        return AddressStream { pattern, stride, short_walk };
    }
    walk.map_or_else(|| at_rest(function, block, operand), |(walk, _)| walk)
}

/// What registers are made of, by loop that was asked for.
pub(crate) type Forms<'a> = BTreeMap<LoopId, RoundForms<'a>>;

/// How far an operand moves in a round of a loop, where no register of it is moved by an instruction alone.
fn stride<'a>(
    function: &'a Function,
    around: LoopId,
    position: usize,
    operand: &Operand,
    forms: &mut Forms<'a>,
) -> Option<i64> {
    forms.entry(around).or_insert_with(|| RoundForms::of(function, around)).stride(position, operand)
}

/// Whether a walk ends before a prefetcher has seen enough of it: three lines (Intel's streamer starts
/// on the second or third miss of a page; optimisation manual, 2.5.5.4).
fn is_short(shape: AddressStream, rounds: f64) -> bool {
    const UNNOTICED_BYTES: f64 = 3.0 * LINE_BYTES as f64;
    shape.stride.is_some_and(|stride| stride.unsigned_abs() as f64 * rounds <= UNNOTICED_BYTES)
}

/// Outside all loops, or never moving: the function is called anew for each address.
fn at_rest(function: &Function, block: BlockId, operand: &Operand) -> AddressStream {
    let looped = function.loops_around(block).next().is_some();
    let fixed = looped || operand.registers() == RegisterSet::default();
    let pattern = if fixed { Pattern::Stream } else { Pattern::Random };
    AddressStream { pattern, stride: fixed.then_some(0), short_walk: None }
}

fn moving(step: Step, state: Option<&State>) -> AddressStream {
    let stride = match step {
        Step::Constant(stride) => Some(stride),
        Step::Register { .. } => state.and_then(|state| step.value(state)),
        Step::Unknown => None,
    };
    // A stride that is not known is at least not zero; rows of a matrix are the usual case.
    let near = stride.is_some_and(|stride| stride.unsigned_abs() <= LINE_BYTES);
    AddressStream { pattern: if near { Pattern::Stream } else { Pattern::Strided }, stride, short_walk: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern_of(code: &[u8], position: usize) -> AddressStream {
        let function = Function::decode(code, 0);
        let operand = function.instructions[position].operands[0];
        shape(&function, position, &operand, None, &mut Forms::new(), |_| None)
    }

    #[test]
    fn the_four_patterns() {
        // add rax,[rdi]; add rdi,8; cmp rdi,rsi; jne 0
        let stream = pattern_of(&[0x48, 0x03, 0x07, 0x48, 0x83, 0xc7, 8, 0x48, 0x39, 0xf7, 0x75, 0xf4, 0xc3], 0);
        assert_eq!((stream.pattern, stream.stride), (Pattern::Stream, Some(8)));
        // as above with a step of 1024
        let code = [0x48, 0x03, 0x07, 0x48, 0x81, 0xc7, 0, 4, 0, 0, 0x48, 0x39, 0xf7, 0x75, 0xf1, 0xc3];
        assert_eq!(
            pattern_of(&code, 0),
            AddressStream { pattern: Pattern::Strided, stride: Some(1024), short_walk: None }
        );
        // mov eax,[rdi+rcx*4]; add edx,[rsi+rax*4]; inc rcx; cmp rcx,r8; jne 0
        let gather = [0x8b, 0x04, 0x8f, 0x03, 0x14, 0x86, 0x48, 0xff, 0xc1, 0x4c, 0x39, 0xc1, 0x75, 0xf2, 0xc3];
        assert_eq!(pattern_of(&gather, 0).pattern, Pattern::Stream);
        assert_eq!(pattern_of(&gather, 1).pattern, Pattern::Random);
        // add rdx,[rdi+8]; mov rdi,[rdi]; dec rsi; jne 0
        let chase = [0x48, 0x03, 0x57, 8, 0x48, 0x8b, 0x3f, 0x48, 0xff, 0xce, 0x75, 0xf4, 0xc3];
        assert_eq!(pattern_of(&chase, 0).pattern, Pattern::Chain);
        assert_eq!(pattern_of(&chase, 1).pattern, Pattern::Chain);
    }

    #[test]
    fn a_few_words_at_a_loaded_place_are_random() {
        // 0: mov rdx,[rsi]; add rsi,8; mov ecx,4 | c: add rax,[rdx]; add rdx,8; dec ecx; jne c | cmp; jne 0
        let code = [
            0x48, 0x8b, 0x16, 0x48, 0x83, 0xc6, 8, 0xb9, 4, 0, 0, 0, 0x48, 0x03, 0x02, 0x48, 0x83, 0xc2, 8, 0xff, 0xc9,
            0x75, 0xf5, 0x48, 0x39, 0xfe, 0x75, 0xe4, 0xc3,
        ];
        let function = Function::decode(&code, 0);
        let operand = function.instructions[3].operands[0];
        let known = shape(&function, 3, &operand, None, &mut Forms::new(), |_| Some(4.0));
        assert_eq!(known, AddressStream { pattern: Pattern::Random, stride: Some(8), short_walk: Some(4.0) });
        assert_eq!(shape(&function, 3, &operand, None, &mut Forms::new(), |_| Some(1e6)).pattern, Pattern::Stream);
    }

    #[test]
    fn what_never_moves_stays_in_the_cache() {
        // add rax,[rsi]; dec rdi; jne 0
        let still = pattern_of(&[0x48, 0x03, 0x06, 0x48, 0xff, 0xcf, 0x75, 0xf8, 0xc3], 0);
        assert_eq!(still.stride, Some(0));
    }
}
