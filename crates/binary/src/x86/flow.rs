//! Where control goes from an x86-64 instruction.

use iced_x86::{ConditionCode, FlowControl, Instruction as Code};

use crate::instruction::{Condition, Flow};

pub(super) fn flow(code: &Code) -> Flow {
    match code.flow_control() {
        FlowControl::Next => Flow::Next,
        FlowControl::UnconditionalBranch => Flow::Jump(code.near_branch_target()),
        FlowControl::ConditionalBranch => {
            // Loop instructions and jumps that ask for a zero in CX ask for more than flags.
            let condition = if code.is_jcc_short_or_near() { condition(code) } else { None };
            Flow::Branch { target: code.near_branch_target(), condition }
        }
        FlowControl::IndirectBranch => Flow::IndirectJump,
        FlowControl::Call => Flow::Call(code.near_branch_target()),
        FlowControl::IndirectCall => {
            let slot = code.is_ip_rel_memory_operand().then(|| code.memory_displacement64());
            Flow::IndirectCall { slot }
        }
        FlowControl::Return => Flow::Return,
        FlowControl::Interrupt | FlowControl::Exception => Flow::Stop,
        FlowControl::XbeginXabortXend => Flow::Unclear,
    }
}

/// What an instruction asks of the flags.
pub(super) fn condition(code: &Code) -> Option<Condition> {
    Some(match code.condition_code() {
        ConditionCode::o => Condition::Overflow,
        ConditionCode::no => Condition::NoOverflow,
        ConditionCode::b => Condition::Below,
        ConditionCode::ae => Condition::AboveOrEqual,
        ConditionCode::e => Condition::Equal,
        ConditionCode::ne => Condition::NotEqual,
        ConditionCode::be => Condition::BelowOrEqual,
        ConditionCode::a => Condition::Above,
        ConditionCode::s => Condition::Negative,
        ConditionCode::ns => Condition::NotNegative,
        ConditionCode::p => Condition::EvenParity,
        ConditionCode::np => Condition::OddParity,
        ConditionCode::l => Condition::Less,
        ConditionCode::ge => Condition::GreaterOrEqual,
        ConditionCode::le => Condition::LessOrEqual,
        ConditionCode::g => Condition::Greater,
        ConditionCode::None => return None,
    })
}
