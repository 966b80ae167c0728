//! Where operands were in the moment before a window counted, or ahead of a halted thread: which objects, and how often a
//! string was repeated.

use tierloom_binary::arch::ARGUMENTS;
use tierloom_binary::code::Code;
use tierloom_binary::instruction::Instruction;
use tierloom_recording::{Touch, Which};

use crate::address_space::AddressSpaces;
use crate::address_space::objects::ObjectId;
use crate::attribution::operand::OperandId;

/// An operand in a moment.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct OperandTouches {
    pub(crate) operand: OperandId,
    /// How often it was executed in that moment.
    pub(crate) executions: f64,
    /// Objects of some of the addresses; `None` is the stack, or nothing known.
    pub(crate) objects: Vec<Option<ObjectId>>,
}

/// What was seen of operands in a moment.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Touches {
    pub(crate) operands: Vec<OperandTouches>,
    /// Operands of string instructions, with how often some executions were repeated.
    pub(crate) rounds: Vec<(OperandId, Vec<u64>)>,
}

impl Touches {
    /// Of a process and the thread with this stack pointer, as the world is now.
    pub(crate) fn of(
        (pid, stack_pointer): (u32, u64),
        seen: &[Touch],
        code: &mut Code,
        spaces: &mut AddressSpaces<'_>,
    ) -> Self {
        let mut touches = Self::default();
        for touch in seen {
            let place = spaces.code_at(pid, touch.instruction);
            let Some((function, instruction)) = code.find(&spaces.modules, place) else { continue };
            let content = &code.functions[function].function.instructions[instruction];
            let id = |operand| OperandId { function, instruction, operand };
            if touch.operand == Which::Rounds {
                let rounds = |operand| (id(operand), touch.addresses.clone());
                touches.rounds.extend((0..content.operands.len()).map(rounds));
            } else if let Some(operand) = position(content, touch.operand) {
                let object = |address: &u64| spaces.locate(pid, *address, stack_pointer).object();
                let objects = touch.addresses.iter().map(object).collect();
                touches.operands.push(OperandTouches {
                    operand: id(operand),
                    executions: touch.executions as f64,
                    objects,
                });
            }
        }
        touches
    }
}

/// Which operand of an instruction is meant.
fn position(instruction: &Instruction, which: Which) -> Option<usize> {
    let [destination, source, ..] = ARGUMENTS;
    let base = match which {
        Which::Named => return (instruction.operands.len() == 1).then_some(0),
        Which::Source => source,
        Which::Destination => destination,
        Which::Rounds => return None,
    };
    instruction.operands.iter().position(|operand| operand.base == Some(base))
}
