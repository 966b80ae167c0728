//! How the addresses of an operand follow each other: stream, stride, random, chain.
//!
//! Read off the code: an operand whose registers move by a constant is a stream or a stride; one
//! whose base comes, over any number of instructions, from a load that it feeds itself is a chain;
//! everything else is random but independent.

use tierloom_model::Pattern;
use tierloom_model::units::LINE_BYTES;

use tierloom_binary::cfg::{BlockId, Function, LoopId};
use tierloom_binary::dataflow::induction::Steady;
use tierloom_binary::dataflow::update::Pace;
use tierloom_binary::x86::instruction::{GENERAL, Gpr, Operand, RegisterSet, gpr};
use tierloom_binary::x86::state::State;

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
pub(crate) fn shape(
    function: &Function,
    position: usize,
    operand: &Operand,
    state: Option<&State>,
    rounds: impl Fn(LoopId) -> Option<f64>,
) -> AddressStream {
    let block = function.block_of(position);
    let mut walk: Option<(AddressStream, f64)> = None;
    for around in function.loops_around(block) {
        let steady = Steady::of(function, around);
        if steady.still(operand) {
            continue;
        }
        if let Some((pace, _)) = steady.pace(operand) {
            let shape = moving(pace, state);
            match rounds(around).filter(|rounds| walk.is_none() && is_short(shape, *rounds)) {
                Some(rounds) => walk = Some((shape, rounds)),
                None => return walk.map_or(shape, |(walk, _)| walk),
            }
            continue;
        }
        let chain = operand.registers().iter().any(|register| feeds_itself(function, around, register));
        let pattern = if chain { Pattern::Chain } else { Pattern::Random };
        let (stride, short_walk) = walk.map_or((None, None), |(walk, rounds)| (walk.stride, Some(rounds)));
        return AddressStream { pattern, stride, short_walk };
    }
    match walk {
        Some((walk, _)) => walk,
        None if operand.string => moving(Pace::Constant(8), None),
        None => at_rest(function, block, operand),
    }
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

fn moving(pace: Pace, state: Option<&State>) -> AddressStream {
    let stride = match pace {
        Pace::Constant(stride) => Some(stride),
        Pace::Register { .. } => state.and_then(|state| pace.value(state)),
        Pace::Unknown => None,
    };
    // A stride that is not known is at least not zero; rows of a matrix are the usual case.
    let near = stride.is_some_and(|stride| stride.unsigned_abs() <= LINE_BYTES);
    AddressStream { pattern: if near { Pattern::Stream } else { Pattern::Strided }, stride, short_walk: None }
}

/// Whether the value of a register in one round depends on a load at an address made of its value in
/// the round before.
fn feeds_itself(function: &Function, inside: LoopId, register: Gpr) -> bool {
    let sources = sources(function, inside);
    // (register, whether a load lies on the way)
    let mut seen = [[false; 2]; GENERAL];
    let mut open = vec![(register, false)];
    while let Some((current, loaded)) = open.pop() {
        for &(from, load) in &sources[current] {
            let loaded = loaded || load;
            if from == register && loaded {
                return true;
            }
            if !std::mem::replace(&mut seen[from][usize::from(loaded)], true) {
                open.push((from, loaded));
            }
        }
    }
    false
}

/// Registers that the values of some registers are made of in a loop, those themselves included.
pub(crate) fn sources_of(function: &Function, inside: LoopId, registers: RegisterSet) -> RegisterSet {
    let sources = sources(function, inside);
    let mut found = registers;
    let mut open: Vec<Gpr> = registers.iter().collect();
    while let Some(current) = open.pop() {
        for &(from, _) in &sources[current] {
            if !found.contains(from) {
                found.insert(from);
                open.push(from);
            }
        }
    }
    found
}

/// By register: the registers that its writers in the loop read, and whether through a load.
fn sources(function: &Function, inside: LoopId) -> [Vec<(Gpr, bool)>; GENERAL] {
    let mut sources: [Vec<(Gpr, bool)>; GENERAL] = Default::default();
    for &block in &function.loops[inside].body {
        for step in &function.steps[function.blocks[block].first..function.blocks[block].end] {
            if step.is_call() {
                continue;
            }
            let address: Vec<Gpr> =
                step.operands.iter().flat_map(|o| o.registers().iter().collect::<Vec<_>>()).collect();
            let plain = (0..step.code.op_count()).filter_map(|k| gpr(step.code.op_register(k)));
            let lea = [step.code.memory_base(), step.code.memory_index()].into_iter().filter_map(gpr);
            let mut read: Vec<(Gpr, bool)> = address.iter().map(|register| (*register, true)).collect();
            read.extend(plain.map(|register| (register, false)));
            if address.is_empty() {
                read.extend(lea.map(|register| (register, false)));
            }
            for target in step.written.iter() {
                // A plain move or load does not keep what was in the target.
                let overwrites = matches!(step.code.mnemonic(), iced_x86::Mnemonic::Mov | iced_x86::Mnemonic::Movsxd);
                sources[target].extend(read.iter().filter(|(r, load)| !(overwrites && *r == target && !load)));
            }
        }
    }
    sources
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern_of(code: &[u8], position: usize) -> AddressStream {
        let function = Function::decode(code, 0);
        let operand = function.steps[position].operands[0];
        shape(&function, position, &operand, None, |_| None)
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
        let operand = function.steps[3].operands[0];
        let known = shape(&function, 3, &operand, None, |_| Some(4.0));
        assert_eq!(known, AddressStream { pattern: Pattern::Random, stride: Some(8), short_walk: Some(4.0) });
        assert_eq!(shape(&function, 3, &operand, None, |_| Some(1e6)).pattern, Pattern::Stream);
    }

    #[test]
    fn what_never_moves_stays_in_the_cache() {
        // add rax,[rsi]; dec rdi; jne 0
        let still = pattern_of(&[0x48, 0x03, 0x06, 0x48, 0xff, 0xcf, 0x75, 0xf8, 0xc3], 0);
        assert_eq!(still.stride, Some(0));
    }
}
