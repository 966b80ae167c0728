//! Where in a block no status flag is needed any more: there a counter costs one instruction.

use std::collections::BTreeMap;

use iced_x86::{Instruction, RflagsBits};

use crate::blocks::{Block, End};

const ALL: u32 = RflagsBits::OF | RflagsBits::SF | RflagsBits::ZF | RflagsBits::AF | RflagsBits::CF | RflagsBits::PF;

/// Flags that are needed where a block begins; all of them where nobody knows.
pub(crate) struct Needed(BTreeMap<u64, u32>);

impl Needed {
    /// By a backward pass to its fixed point.
    pub(crate) fn of(blocks: &BTreeMap<u64, Block>) -> Self {
        let mut needed = Self(blocks.keys().map(|start| (*start, 0)).collect());
        loop {
            let mut changed = false;
            for (start, block) in blocks.iter().rev() {
                let at_start = needed.before(block).first().copied().unwrap_or(ALL);
                changed |= needed.0.insert(*start, at_start) != Some(at_start);
            }
            if !changed {
                return needed;
            }
        }
    }

    /// Whether none is needed where a block begins.
    pub(crate) fn none_at(&self, start: u64) -> bool {
        self.0.get(&start) == Some(&0)
    }

    /// The position in a block, behind its body at most, where none is needed.
    pub(crate) fn none_in(&self, block: &Block) -> Option<usize> {
        self.before(block).iter().position(|flags| *flags == 0)
    }

    /// Flags needed before each instruction of the body and before its end.
    fn before(&self, block: &Block) -> Vec<u32> {
        let mut flags = match &block.end {
            End::Call { .. } | End::CallThrough { .. } | End::JumpThrough { .. } | End::Return { .. } => ALL,
            End::Leave { .. } => ALL,
            end => end.successors().fold(0, |flags, next| flags | self.0.get(&next).copied().unwrap_or(ALL)),
        };
        if let End::Branch { branch, .. } = &block.end {
            flags |= branch.rflags_read() & ALL;
        }
        let mut all = vec![flags];
        for instruction in block.body.iter().rev() {
            flags = flags & !written(instruction) | instruction.rflags_read() & ALL;
            all.push(flags);
        }
        all.reverse();
        all
    }
}

/// Flags that an instruction leaves without a trace of what they were. One that may not run its course, a shift by
/// no bits or a repeat of no rounds, leaves them as they were.
fn written(instruction: &Instruction) -> u32 {
    let is_fixed =
        instruction.rflags_read() & ALL == 0 || !instruction.has_rep_prefix() && !instruction.has_repne_prefix();
    if is_fixed && !is_shift_by_register(instruction) { instruction.rflags_modified() & ALL } else { 0 }
}

fn is_shift_by_register(instruction: &Instruction) -> bool {
    use iced_x86::Mnemonic::{Rcl, Rcr, Rol, Ror, Sal, Sar, Shl, Shld, Shr, Shrd};
    matches!(instruction.mnemonic(), Rcl | Rcr | Rol | Ror | Sal | Sar | Shl | Shld | Shr | Shrd)
        || instruction.has_rep_prefix()
        || instruction.has_repne_prefix()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blocks::discover;
    use crate::text::tests::Bytes;

    fn spots(bytes: &[u8]) -> Vec<Option<usize>> {
        let blocks = discover(&Bytes(0x1000, bytes), 0x1000, true, &|_| false, &|_| true, 1000);
        let needed = Needed::of(&blocks);
        blocks.values().map(|block| needed.none_in(block)).collect()
    }

    #[test]
    fn before_a_comparison_none_is_needed_and_behind_it_all() {
        // inc eax; cmp eax,ecx; jne 0; ret: `inc` keeps the carry, which `cmp` writes.
        assert_eq!(spots(&[0xff, 0xc0, 0x39, 0xc8, 0x75, 0xfa, 0xc3]), [Some(0), None]);
        // adc eax,ecx; jmp 0
        assert_eq!(spots(&[0x11, 0xc8, 0xeb, 0xfc]), [None]);
        // shl eax,cl; cmp eax,ecx; ret: by no bits it would leave them.
        assert_eq!(spots(&[0xd3, 0xe0, 0x39, 0xc8, 0xc3]), [Some(0)]);
        // shl eax,cl; ret
        assert_eq!(spots(&[0xd3, 0xe0, 0xc3]), [None]);
    }
}
