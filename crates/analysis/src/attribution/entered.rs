//! What the registers point to with which functions are entered.
//!
//! Operands that no sample shows, in parts of a function that are seldom run, are mostly made of the same arguments as those
//! that samples do show. It is asked where executions were counted.

use std::collections::BTreeMap;
use std::sync::Arc;

use tierloom_binary::cfg::Function;
use tierloom_binary::code::FunctionId;
use tierloom_binary::dataflow::origins::{Origin, RegisterOrigins};
use tierloom_binary::dataflow::state::State;
use tierloom_binary::instruction::{Gpr, RegisterSet};

use crate::address_space::objects::ObjectId;
use crate::attribution::operand::ByObject;

/// By function that samples fell into, or into what it called.
#[derive(Debug, Default)]
pub(crate) struct Entered {
    functions: BTreeMap<FunctionId, Bases>,
    places: BTreeMap<(FunctionId, Gpr), ByObject>,
}

/// Of a function.
#[derive(Debug, Clone)]
struct Bases {
    origins: Arc<RegisterOrigins>,
    /// Registers whose value at the entry operands have for a base.
    used: RegisterSet,
}

impl Bases {
    fn of(function: &Function) -> Self {
        let origins = RegisterOrigins::of(function);
        let instructions = function.instructions.iter().enumerate();
        let bases =
            instructions.flat_map(|(at, one)| one.operands.iter().filter_map(move |operand| Some((at, operand.base?))));
        let used = bases.filter_map(|(at, base)| match origins.of_register(at, base)? {
            Origin::Entry(register) => Some(register),
            Origin::Stack => None,
        });
        Self { used: used.collect(), origins: Arc::new(origins) }
    }
}

impl Entered {
    /// What registers held at the entry of a function, which is at one of these positions now, and whose registers are known
    /// as far as they are `valid`.
    pub(crate) fn values(
        &mut self,
        id: FunctionId,
        function: &Function,
        positions: &[usize],
        (state, valid): (&State, RegisterSet),
    ) -> BTreeMap<Gpr, u64> {
        let Bases { origins, used } = self.functions.entry(id).or_insert_with(|| Bases::of(function));
        let [first, others @ ..] = positions else { return BTreeMap::new() };
        let held =
            origins.from_entry(*first).filter(|(register, from)| used.contains(*from) && valid.contains(*register));
        let anyhow =
            |register, from| others.iter().all(|at| origins.of_register(*at, register) == Some(Origin::Entry(from)));
        held.filter(|(register, from)| anyhow(*register, *from))
            .filter_map(|(register, from)| Some((from, state.get(register)?)))
            .collect()
    }

    /// Notes what a register pointed to at the entry; `None` is the stack.
    pub(crate) fn note(&mut self, id: FunctionId, register: Gpr, object: Option<ObjectId>) {
        *self.places.entry((id, register)).or_default().entry(object).or_default() += 1.0;
    }

    /// What was noted.
    pub(crate) fn shown(&self, id: FunctionId, register: Gpr) -> Option<&ByObject> {
        self.places.get(&(id, register))
    }

    /// Where the registers of a function have their values from.
    pub(crate) fn origins(&self, id: FunctionId, function: &Function) -> Arc<RegisterOrigins> {
        let known = self.functions.get(&id).map(|bases| bases.origins.clone());
        known.unwrap_or_else(|| Arc::new(RegisterOrigins::of(function)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tierloom_recording::{REGISTERS, register};

    #[test]
    fn a_register_that_keeps_an_argument_tells_it_at_all_of_the_positions_or_not() {
        // 0 mov rbx,rdi | 3 mov rax,[rbx] | 6 mov rdi,rax | 9 mov rax,[rsi] | c ret
        let code = [0x48, 0x89, 0xfb, 0x48, 0x8b, 0x03, 0x48, 0x89, 0xc7, 0x48, 0x8b, 0x06, 0xc3];
        let (function, id) = (Function::decode(&code, 0), FunctionId::new(0));
        let mut registers = [0; REGISTERS];
        for (name, value) in [(register::BX, 0x1000), (register::SI, 0x2000), (register::DI, 0x3000)] {
            registers[name] = value;
        }
        let state = State::of_sample(&registers, 0);
        let (rbx, rsi, rdi) = (Gpr::new(3), Gpr::new(6), Gpr::new(7));
        let mut entered = Entered::default();
        let mut values = |positions: &[usize], valid| entered.values(id, &function, positions, (&state, valid));
        assert_eq!(values(&[3], RegisterSet::ALL), BTreeMap::from([(rdi, 0x1000), (rsi, 0x2000)]));
        assert_eq!(values(&[3], RegisterSet::of(&[rbx])), BTreeMap::from([(rdi, 0x1000)]));
        assert_eq!(values(&[3, 0], RegisterSet::of(&[rbx])), BTreeMap::new(), "not yet copied");
        assert_eq!(values(&[], RegisterSet::ALL), BTreeMap::new());
    }
}
