//! What the pass over the samples finds.

use std::collections::{BTreeMap, BTreeSet};

use tierloom_model::AccessKind;

use crate::address_space::Place;
use crate::address_space::objects::ObjectId;
use crate::attribution::callers::{CallPlace, CallerFrame};
use crate::attribution::counted_code::CountedCode;
use crate::attribution::lookaheads::SeenAhead;
use crate::attribution::operand::OperandId;
use crate::attribution::operand_addresses::How;
use crate::attribution::unsampled::Unsampled;
use crate::attribution::windows::CountedWindow;
use tierloom_binary::call_graph::complete::Roots;
use tierloom_binary::call_graph::teams::InTeams;
use tierloom_binary::call_graph::unique_callers::Levels;
use tierloom_binary::code::{Code, FunctionId};
use tierloom_binary::dataflow::state::{Shown, State};
use tierloom_recording::{InCopy, STACK_WORDS};

/// What a sample waited on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Attribution {
    /// `offset` where the address is known.
    Object {
        object: ObjectId,
        offset: Option<u64>,
        access: AccessKind,
    },
    Rest(Rest),
}

/// Why a sample belongs to no object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Rest {
    /// An instruction that touches no memory.
    Compute,
    Stack,
    Kernel,
    /// Code or addresses that could not be worked out.
    Unrecovered,
    /// An address that belongs to nothing known.
    Other,
}

/// Who called the function that a sample is in.
#[derive(Debug, Clone)]
pub(crate) enum Callers {
    /// Nearest first, as its stack tells.
    Shown(Box<[CallerFrame]>),
    /// It brings no stack that tells. Those of this sample, the last of its thread in the function that does, are likely.
    Like(usize),
    Unknown,
}

/// A sample, understood.
#[derive(Debug, Clone)]
pub(crate) struct AttributedSample {
    pub(crate) time_ns: u64,
    pub(crate) thread: usize,
    pub(crate) instructions: u64,
    /// Whether it was taken in a copy that counts.
    pub(crate) copy: InCopy,
    /// Function and position of the sampled instruction, where the code is known.
    pub(crate) at: Option<(FunctionId, usize)>,
    pub(crate) state: State,
    /// Which of the stack's tops it brought.
    pub(crate) stack_top: Option<usize>,
    pub(crate) callers: Callers,
    pub(crate) verdict: Attribution,
    /// Position of the instruction that it waited for, where that is an object's. Where the skid blurs
    /// instructions it may be a neighbour: enough to count by, for what waits is then near.
    pub(crate) waited: Option<usize>,
}

impl AttributedSample {
    /// The callers that its own stack tells of, nearest first.
    pub(crate) fn shown_callers(&self) -> &[CallerFrame] {
        if let Callers::Shown(callers) = &self.callers { callers } else { &[] }
    }

    /// The calls that it is in, innermost first: what was called, and who called.
    pub(crate) fn calls(&self) -> impl Iterator<Item = (FunctionId, &CallerFrame)> {
        let callers = self.shown_callers();
        let called = self.at.map(|at| at.0).into_iter().chain(callers.iter().map(|frame| frame.function));
        called.zip(callers)
    }
}

/// An operand near a sample, and where it pointed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OperandAddress {
    /// Position of the sample.
    pub(crate) seen: usize,
    pub(crate) function: FunctionId,
    pub(crate) instruction: usize,
    pub(crate) operand: usize,
    pub(crate) place: Place,
    /// Offset of the address in its cache line's page-granular object is in `place`; how sure it is.
    pub(crate) how: How,
}

impl OperandAddress {
    pub(crate) fn id(&self) -> OperandId {
        OperandId { function: self.function, instruction: self.instruction, operand: self.operand }
    }
}

/// Everything the pass found.
pub(crate) struct Observed {
    pub(crate) seen: Vec<AttributedSample>,
    /// When samples found a thread in the recorder's own library, in order, ns: time that is not the program's.
    pub(crate) in_library: Vec<u64>,
    /// Words of the stack, from the stack pointer on, that some samples brought.
    pub(crate) stack_tops: Vec<[u64; STACK_WORDS]>,
    pub(crate) operand_addresses: Vec<OperandAddress>,
    pub(crate) unsampled: Unsampled,
    /// Places of operands whose address is in the code, of blocks that were counted.
    pub(crate) fixed: BTreeMap<OperandId, Place>,
    pub(crate) windows: Vec<CountedWindow>,
    pub(crate) ahead: Vec<SeenAhead>,
    pub(crate) counted: CountedCode,
    /// CPU time of the kernel for page faults, of which windows are free, s.
    pub(crate) in_faults_s: f64,
    /// Kernel ids by thread number.
    pub(crate) threads: Vec<(u32, u32)>,
    pub(crate) code: Code,
    pub(crate) levels: Levels,
    /// Places that run each function with samples whenever they are passed, as (caller, position).
    pub(crate) calls: BTreeMap<FunctionId, Vec<(FunctionId, usize)>>,
    /// What calls that name it run, as far as samples are in there.
    pub(crate) named_calls: BTreeMap<CallPlace, FunctionId>,
    pub(crate) roots: Roots,
    /// Of the functions in which samples are, and those that called them.
    pub(crate) in_teams: BTreeMap<FunctionId, InTeams>,
    /// By module: processes that ran it from its entry.
    pub(crate) images: BTreeMap<usize, BTreeSet<u32>>,
    /// Samples in code that the program generated itself.
    pub(crate) generated: usize,
}

impl Observed {
    /// What a sample shows, by its position.
    pub(crate) fn shown(&self, number: usize) -> Shown<'_> {
        let AttributedSample { state, stack_top, .. } = &self.seen[number];
        Shown { state, stack: stack_top.map_or(&[], |at| &self.stack_tops[at]) }
    }

    /// What it shows of a function that called the one that it is in.
    pub(crate) fn shown_of<'a>(&'a self, number: usize, caller: &'a CallerFrame) -> Shown<'a> {
        let own = self.shown(number);
        Shown { state: &caller.state, stack: own.stack.get(caller.stack_from..).unwrap_or(&[]) }
    }

    /// The callers of a sample, as its stack tells or else as they are likely; nothing where no stack tells.
    pub(crate) fn callers(&self, number: usize) -> Option<&[CallerFrame]> {
        match self.seen[number].callers {
            Callers::Shown(_) => Some(self.seen[number].shown_callers()),
            Callers::Like(other) => Some(self.seen[other].shown_callers()),
            Callers::Unknown => None,
        }
    }

    /// The registers of a function that a sample is in, or that led there, as far as it shows them.
    pub(crate) fn state_in(&self, number: usize, function: FunctionId) -> Option<State> {
        let seen = &self.seen[number];
        let (own, _) = seen.at?;
        if own == function {
            return Some(seen.state);
        }
        if let Callers::Shown(callers) = &seen.callers {
            return callers.iter().find(|caller| caller.function == function).map(|caller| caller.state);
        }
        let level = self.levels.known(own).iter().find(|level| level.function == function)?;
        let mut state = seen.state;
        state.forget(level.valid.others());
        Some(state)
    }
}
