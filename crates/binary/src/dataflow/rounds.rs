//! Which registers hold the same variable at two places of a block: what one instruction leaves there.

use crate::cfg::{BlockId, Function};
use crate::instruction::Gpr;

/// Whether a register holds before the instruction at one position what the same instruction left in it that did before the
/// one at the other position, of the same block: nothing between them changes it, or what is there behind both comes round
/// to both. Its value may be another in each round; what it is a pointer to is of one kind.
pub fn is_one_variable(function: &Function, (one, other): (usize, usize), register: Gpr) -> bool {
    let (low, high) = (one.min(other), one.max(other));
    let kept =
        |mut range: std::ops::Range<usize>| range.all(|at| !function.instructions[at].clobbered.contains(register));
    let own = function.block_of(low);
    let block = &function.blocks[own];
    let comes_round = || {
        let kept_in = |block: BlockId| kept(function.blocks[block].first..function.blocks[block].end);
        block.inner_loop.is_some() && function.reaches(block.successors.clone(), |block| block == own, kept_in)
    };
    kept(low..high) || kept(high..block.end) && kept(block.first..low) && comes_round()
}

#[cfg(test)]
mod tests {
    use super::*;

    const AX: Gpr = Gpr::new(0);

    #[test]
    fn a_pointer_that_is_chased_in_a_loop_is_one_variable_and_elsewhere_it_is_not() {
        // 0 mov rax,[rax] | 3 test rax,rax | 6 jne 0 | 8 ret
        let chase = Function::decode(&[0x48, 0x8b, 0x00, 0x48, 0x85, 0xc0, 0x75, 0xf8, 0xc3], 0);
        assert!(is_one_variable(&chase, (0, 1), AX) && is_one_variable(&chase, (2, 0), AX));
        // The same without the jump back.
        let once = Function::decode(&[0x48, 0x8b, 0x00, 0x48, 0x85, 0xc0, 0x75, 0x00, 0xc3], 0);
        assert!(!is_one_variable(&once, (0, 1), AX) && is_one_variable(&once, (1, 2), AX));
    }

    #[test]
    fn a_register_that_is_used_again_for_what_it_points_to_is_two() {
        // 0 mov rax,[rbx] | 3 mov rax,[rax] | 6 mov [rax],rcx | 9 dec rdx | c jne 0 | e ret
        let code = [0x48, 0x8b, 0x03, 0x48, 0x8b, 0x00, 0x48, 0x89, 0x08, 0x48, 0xff, 0xca, 0x75, 0xf2, 0xc3];
        let function = Function::decode(&code, 0);
        assert!(!is_one_variable(&function, (2, 1), AX), "the table and what is in it");
        assert!(is_one_variable(&function, (0, 4), AX), "left by the round before");
        assert!(!is_one_variable(&function, (1, 4), AX));
    }

    #[test]
    fn what_another_block_of_the_loop_changes_does_not_come_round() {
        // 0 mov rcx,[rax] | 3 mov rax,[rcx] | 6 test rdi,rdi | 9 je 0 | b xor eax,eax | d jmp 0
        let code = [0x48, 0x8b, 0x08, 0x48, 0x8b, 0x01, 0x48, 0x85, 0xff, 0x74, 0xf5, 0x31, 0xc0, 0xeb, 0xf1];
        let function = Function::decode(&code, 0);
        assert!(is_one_variable(&function, (0, 2), AX), "past the other block");
        // The same, always through it: je b.
        let code = [&code[..9], &[0x74, 0x00][..], &code[11..]].concat();
        assert!(!is_one_variable(&Function::decode(&code, 0), (0, 2), AX));
    }
}
