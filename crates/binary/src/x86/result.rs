//! Where the value that a function returned is kept: what follows its call.

use iced_x86::{Decoder, DecoderOptions, FlowControl, InstructionInfoFactory};

use super::registers::ARGUMENTS;
use super::values::{Address, Origin, Stored, Value, Values};
use crate::instruction::{GENERAL, Gpr};

/// Instructions that are followed.
const STEPS: usize = 64;
/// The register that values are returned in.
const RESULT: Gpr = Gpr::new(0);

/// A call that has returned.
pub struct Call<'c> {
    /// Code of the function that called.
    pub code: &'c [u8],
    /// Where that begins.
    pub start: u64,
    /// Where the call returned to.
    pub back: u64,
    /// A register, and how far from it the frame is then.
    pub frame: Option<(Gpr, i64)>,
}

/// How a function hands the value to its caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Carrier {
    /// As its result.
    Result,
    /// In memory at a distance from where an argument points: its position, and the distance.
    Through(usize, i64),
}

/// Where a value goes first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kept {
    /// To a variable at a fixed address.
    Static(u64),
    /// To the caller of the function that got it.
    Handed(Vec<Carrier>),
}

/// A place that holds the value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holder<'v> {
    /// A register.
    Register(Gpr),
    /// Memory at a distance from a register.
    Memory(Gpr, i64),
    /// Memory at a distance from the frame; and how far from the frame each register points, if it does.
    Frame(i64, &'v [Option<i64>; GENERAL]),
}

/// Follows the value that a call handed to its caller.
///
/// Of a branch both sides are tried, the one that falls through first: one of them is that the allocation failed. None
/// where the value goes to the heap, is worked on, or gets lost.
///
/// # Arguments
/// * `passes_on` - whether the function at an address returns its first argument, as `memset` does.
/// * `seen` - told of every place that holds the value before the instruction at an address; of what a store is to, by the
///   addresses before and behind it.
pub fn kept(
    call: &Call<'_>,
    carriers: &[Carrier],
    passes_on: &dyn Fn(u64) -> bool,
    seen: &mut dyn FnMut(u64, Holder<'_>),
) -> Option<Kept> {
    // To know the frame is enough for most, and takes no look at the code before the call.
    let in_frame = call.frame.map(|(register, offset)| Values::in_frame(register, offset)).unwrap_or_default();
    let is_result = carriers == [Carrier::Result];
    let near = if is_result { followed(call, &in_frame, carriers, passes_on, seen) } else { None };
    near.or_else(|| {
        let before = Values::before_call(call.code, call.start, call.back)?;
        followed(call, &before, carriers, passes_on, seen)
    })
}

fn followed(
    call: &Call<'_>,
    before: &Values,
    carriers: &[Carrier],
    passes_on: &dyn Fn(u64) -> bool,
    seen: &mut dyn FnMut(u64, Holder<'_>),
) -> Option<Kept> {
    let mut values = before.clone();
    values.called();
    let mut follower = Follower {
        code: call.code,
        start: call.start,
        passes_on,
        seen,
        left: STEPS,
        factory: InstructionInfoFactory::new(),
    };
    for carrier in carriers {
        let Carrier::Through(argument, distance) = *carrier else {
            values.set(RESULT, Some(Value::Followed));
            continue;
        };
        if let Some(Value::Address(given)) = before.get(ARGUMENTS[argument]) {
            let place = given.plus(distance);
            if place.origin == Origin::Module {
                return Some(Kept::Static(place.distance.cast_unsigned()));
            }
            values.place(place);
        }
    }
    follower.follow(call.back, values)
}

/// One function's code, and how many instructions of it may still be looked at.
struct Follower<'c> {
    code: &'c [u8],
    start: u64,
    passes_on: &'c dyn Fn(u64) -> bool,
    seen: &'c mut dyn FnMut(u64, Holder<'_>),
    left: usize,
    factory: InstructionInfoFactory,
}

impl<'c> Follower<'c> {
    fn follow(&mut self, from: u64, mut values: Values) -> Option<Kept> {
        let mut decoder = self.decoder(from)?;
        while self.left > 0 && decoder.can_decode() && !values.is_lost() {
            self.left -= 1;
            self.tell(decoder.ip(), &values);
            let code = decoder.decode();
            let target = code.near_branch_target();
            match code.flow_control() {
                FlowControl::Next => {}
                FlowControl::Call | FlowControl::IndirectCall => {
                    let given = values.get(ARGUMENTS[0]) == Some(Value::Followed);
                    values.called();
                    values.set(RESULT, (given && (self.passes_on)(target)).then_some(Value::Followed));
                    continue;
                }
                FlowControl::Return => return handed(&values),
                FlowControl::ConditionalBranch => {
                    let straight = self.follow(code.next_ip(), values.clone());
                    return straight.or_else(|| self.follow(target, values));
                }
                FlowControl::UnconditionalBranch if (self.passes_on)(target) => {
                    values.set(RESULT, values.get(ARGUMENTS[0]));
                    return handed(&values);
                }
                FlowControl::UnconditionalBranch if self.decoder(target).is_none() => {
                    // A call in place of the return: what it returns is another value.
                    values.set(RESULT, None);
                    return handed(&values);
                }
                FlowControl::UnconditionalBranch => return self.follow(target, values),
                _ => return None,
            }
            if let Some((base, distance)) = values.store_of(&code) {
                for at in [code.ip(), code.next_ip()] {
                    (self.seen)(at, Holder::Memory(base, distance));
                }
            }
            match values.execute(&code, &mut self.factory) {
                Stored::Not => {}
                Stored::At(Address { origin: Origin::Module, distance }) => {
                    return Some(Kept::Static(distance.cast_unsigned()));
                }
                // Where an argument points and in the frame the value is known to be.
                Stored::At(_) => {}
                Stored::Elsewhere => return None,
            }
        }
        None
    }

    /// Tells of all places that hold the value before the instruction at an address.
    fn tell(&mut self, at: u64, values: &Values) {
        values.holders().for_each(|register| (self.seen)(at, Holder::Register(register)));
        let registers = values.in_frame_at();
        for place in values.places().filter(|place| place.origin == Origin::Frame) {
            (self.seen)(at, Holder::Frame(place.distance, &registers));
        }
    }

    fn decoder(&self, from: u64) -> Option<Decoder<'c>> {
        let distance = usize::try_from(from.checked_sub(self.start)?).ok()?;
        Some(Decoder::with_ip(64, self.code.get(distance..)?, from, DecoderOptions::NONE))
    }
}

/// How a function that returns hands the value on, if it does.
fn handed(values: &Values) -> Option<Kept> {
    let result = (values.get(RESULT) == Some(Value::Followed)).then_some(Carrier::Result);
    let through = values.places().filter_map(|place| match place.origin {
        Origin::Argument(position) => Some(Carrier::Through(position, place.distance)),
        _ => None,
    });
    let carriers: Vec<Carrier> = result.into_iter().chain(through).collect();
    (!carriers.is_empty()).then_some(Kept::Handed(carriers))
}

#[cfg(test)]
mod tests {
    use super::*;

    const BP: Gpr = Gpr::new(5);

    const START: u64 = 0x1000;
    const MEMSET: u64 = 0x1100;

    fn call(code: &[u8]) -> Call<'_> {
        // The frame is at a distance from BP.
        Call { code, start: START, back: START, frame: Some((BP, 16)) }
    }

    fn followed(parts: &[&[u8]]) -> Option<Kept> {
        kept(&call(&parts.concat()), &[Carrier::Result], &|target| target == MEMSET, &mut |_, _| {})
    }

    fn returned() -> Kept {
        Kept::Handed(vec![Carrier::Result])
    }

    const TO_STATIC: &[u8] = &[0x48, 0x89, 0x05, 0x10, 0, 0, 0]; // mov [rip+0x10], rax
    const RET: &[u8] = &[0xc3];

    #[test]
    fn a_store_to_a_fixed_address_names_it() {
        assert_eq!(followed(&[TO_STATIC]), Some(Kept::Static(START + 7 + 0x10)));
        let other = &[0xbf, 1, 0, 0, 0]; // mov edi, 1
        assert_eq!(followed(&[other, TO_STATIC]), Some(Kept::Static(START + 5 + 7 + 0x10)));
    }

    #[test]
    fn a_value_goes_through_registers_calls_tests_and_the_stack() {
        let to_rbx = &[0x48, 0x89, 0xc3]; // mov rbx, rax
        let call = &[0xe8, 0, 0, 0, 0];
        let rbx_to_static = &[0x48, 0x89, 0x1d, 0x10, 0, 0, 0];
        assert!(matches!(followed(&[to_rbx, call, rbx_to_static]), Some(Kept::Static(_))));
        assert_eq!(followed(&[call, TO_STATIC]), None, "a call overwrites its result");
        let (test, failed) = (&[0x48, 0x85, 0xc0], &[0x74, 0x20]); // test rax, rax; je
        assert!(matches!(followed(&[test, failed, TO_STATIC]), Some(Kept::Static(_))));
        let (passed, call) = (&[0x75, 0x05], &[0xe8, 0, 0, 0, 0]); // jne over a call that does not come back
        assert!(matches!(followed(&[test, passed, call, TO_STATIC]), Some(Kept::Static(_))));
        let (spill, reload) = (&[0x48, 0x89, 0x45, 0xf8], &[0x48, 0x8b, 0x45, 0xf8]); // [rbp-8]
        assert!(matches!(followed(&[spill, call, reload, TO_STATIC]), Some(Kept::Static(_))));
    }

    #[test]
    fn places_that_hold_the_value_are_told_of() {
        let code = [&[0x48, 0x89, 0xc3][..], &[0x48, 0x89, 0x45, 0xf8], &[0x31, 0xc0], RET].concat();
        let mut seen = Vec::new();
        let mut note = |at: u64, holder: Holder<'_>| match holder {
            Holder::Frame(distance, _) => seen.push((at - START, Err(distance))),
            Holder::Register(register) => seen.push((at - START, Ok(register))),
            Holder::Memory(..) => {}
        };
        assert_eq!(kept(&call(&code), &[Carrier::Result], &|_| false, &mut note), None);
        let (in_ax, in_bx) = (Ok(RESULT), Ok(Gpr::new(3)));
        seen.truncate(7);
        let after_spill = [(7, in_ax), (7, in_bx), (7, Err(-24)), (9, in_bx)];
        assert_eq!(seen, [&[(0, in_ax), (3, in_ax), (3, in_bx)][..], &after_spill].concat());
    }

    #[test]
    fn what_is_stored_through_an_argument_is_the_callers_to_name() {
        let keep = &[0x48, 0x89, 0xfb]; // mov rbx, rdi
        let call_it = &[0xe8, 0, 0, 0, 0];
        let store = &[0x48, 0x89, 0x43, 0x08]; // mov [rbx+8], rax
        let code = [&keep[..], call_it, store, RET].concat();
        let constructor = Call { code: &code, start: START, back: START + 8, frame: None };
        let carried = Carrier::Through(0, 8);
        let handed = kept(&constructor, &[Carrier::Result], &|_| false, &mut |_, _| {});
        // A function without a result leaves something in the register.
        assert_eq!(handed, Some(Kept::Handed(vec![Carrier::Result, carried])));

        let give = &[0x48, 0x8d, 0x7d, 0xe0]; // lea rdi, [rbp-32]
        let push = &[0x55, 0x48, 0x89, 0xe5]; // push rbp; mov rbp, rsp
        let code = [&push[..], give, call_it, RET].concat();
        let caller = Call { code: &code, start: START, back: START + 13, frame: None };
        let mut seen = Vec::new();
        let mut note =
            |_, holder: Holder<'_>| seen.extend(if let Holder::Frame(at, _) = holder { Some(at) } else { None });
        assert_eq!(kept(&caller, &[carried], &|_| false, &mut note), None);
        assert_eq!(seen, [-16 - 32 + 8]);

        let give = &[0x48, 0x8d, 0x3d, 0x10, 0, 0, 0]; // lea rdi, [rip+0x10]
        let code = [&give[..], call_it, RET].concat();
        let caller = Call { code: &code, start: START, back: START + 12, frame: None };
        assert_eq!(kept(&caller, &[carried], &|_| false, &mut |_, _| {}), Some(Kept::Static(START + 7 + 0x10 + 8)));
    }

    #[test]
    fn a_pair_of_words_is_stored_from_a_vector_register() {
        let pair = [
            &[0x66, 0x48, 0x0f, 0x6e, 0xc0][..], // movq xmm0, rax
            &[0x66, 0x48, 0x0f, 0x6e, 0xcb],     // movq xmm1, rbx
            &[0x31, 0xc0],                       // xor eax, eax
            &[0x66, 0x0f, 0x6c, 0xc8],           // punpcklqdq xmm1, xmm0
            &[0x0f, 0x11, 0x0d, 0x10, 0, 0, 0],  // movups [rip+0x10], xmm1
        ];
        assert_eq!(followed(&pair), Some(Kept::Static(START + 23 + 0x10 + 8)));
        let cleared = [pair[0], &[0x66, 0x0f, 0xef, 0xc0], pair[1], pair[2], pair[3], pair[4]]; // pxor xmm0, xmm0
        assert_eq!(followed(&cleared), None);
    }

    #[test]
    fn where_ways_meet_only_what_is_the_same_on_both_is_known() {
        let branch = &[0x74, 0x03]; // je over the next
        let other = &[0x48, 0x89, 0xf7]; // mov rdi, rsi
        let store = &[0x48, 0x89, 0x07]; // mov [rdi], rax
        let keep = &[0x48, 0x89, 0xfb]; // mov rbx, rdi
        let back = &[0x48, 0x89, 0xdf]; // mov rdi, rbx
        let call_it = &[0xe8, 0, 0, 0, 0];
        let code = [&branch[..], other, keep, call_it, back, store, RET].concat();
        let either = Call { code: &code, start: START, back: START + 13, frame: None };
        assert_eq!(kept(&either, &[Carrier::Result], &|_| false, &mut |_, _| {}), None);
        let code = [&keep[..], call_it, back, store, RET].concat();
        let one = Call { code: &code, start: START, back: START + 8, frame: None };
        assert!(matches!(kept(&one, &[Carrier::Result], &|_| false, &mut |_, _| {}), Some(Kept::Handed(_))));
    }

    #[test]
    fn a_returned_value_is_the_callers() {
        assert_eq!(followed(&[RET]), Some(returned()));
        let from_rbx = &[0x48, 0x89, 0xd8]; // mov rax, rbx
        assert_eq!(followed(&[from_rbx, RET]), None);
    }

    #[test]
    fn some_functions_return_what_they_are_given() {
        let to_rdi = &[0x48, 0x89, 0xc7]; // mov rdi, rax
        let call = &[0xe8, 0xf8, 0, 0, 0]; // from 0x1003 to 0x1100
        assert!(matches!(followed(&[to_rdi, call, TO_STATIC]), Some(Kept::Static(_))));
        assert_eq!(followed(&[to_rdi, &[0xe9, 0xf8, 0, 0, 0]]), Some(returned()));
        assert_eq!(followed(&[to_rdi, &[0xe8, 0xf0, 0, 0, 0], TO_STATIC]), None);
    }

    #[test]
    fn what_is_worked_on_or_goes_to_the_heap_is_lost() {
        let add = &[0x48, 0x83, 0xc0, 0x10]; // add rax, 16
        assert_eq!(followed(&[add, TO_STATIC]), None);
        let field = &[0x48, 0x89, 0x43, 0x08]; // mov [rbx+8], rax
        assert_eq!(followed(&[field, TO_STATIC]), None);
        assert_eq!(followed(&[&[0x06]]), None, "no instruction");
        assert_eq!(followed(&[&[0xeb, 0x70]]), None, "out of the function");
        assert_eq!(followed(&[&[0xeb, 0xfe]]), None, "for ever");
    }
}
