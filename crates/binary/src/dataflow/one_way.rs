//! Operands that a loop moves by constants and always in the same direction, but not equally often in each round: the fingers
//! of a merge, the pointers that meet in a partition.

use crate::cfg::{BlockId, Function, LoopId};
use crate::dataflow::update::{Step, steady_step};
use crate::instruction::{Gpr, Operand};

/// By which blocks of a loop an operand is moved, and by how many bytes each time; `None` where it stays, where anything else
/// sets its address, and where it goes to and fro.
pub fn one_way(function: &Function, inside: LoopId, operand: &Operand) -> Option<Vec<(BlockId, i64)>> {
    let written = function.loops[inside].written;
    let scales =
        operand.base.map(|base| (base, 1)).into_iter().chain(operand.index.map(|index| (index, operand.scale)));
    let moving: Vec<(Gpr, u64)> = scales.filter(|(register, _)| written.contains(*register)).collect();
    let &[(register, scale)] = &moving[..] else { return None };
    let mut moves = Vec::new();
    for &block in &function.loops[inside].body {
        for instruction in function.instructions_of(block).iter().filter(|one| one.clobbered.contains(register)) {
            match steady_step(instruction, written) {
                Some((target, Step::Constant(step), _)) if target == register => {
                    moves.push((block, step.wrapping_mul(scale.cast_signed())));
                }
                _ => return None,
            }
        }
    }
    let first = moves.first()?.1.signum();
    (first != 0 && moves.iter().all(|(_, step)| step.signum() == first)).then_some(moves)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The blocks and steps by which the loop around an operand of the instruction at `position` moves it.
    fn moves(code: &[u8], position: usize) -> Option<Vec<i64>> {
        let function = Function::decode(code, 0);
        let around = function.loops_around(function.block_of(position)).next()?;
        let moves = one_way(&function, around, &function.instructions[position].operands[0])?;
        Some(moves.into_iter().map(|(_, bytes)| bytes).collect())
    }

    #[test]
    fn a_finger_of_a_merge_goes_one_way() {
        // 0 mov ecx,[rsi] | 2 cmp ecx,[rdi] | 4 jl c | 6 add rdi,4 | a jmp 10 | c add rsi,4 | 10 dec rdx | 13 jne 0 | 15 ret
        let code = [
            0x8b, 0x0e, 0x3b, 0x0f, 0x7c, 0x06, 0x48, 0x83, 0xc7, 0x04, 0xeb, 0x04, 0x48, 0x83, 0xc6, 0x04, 0x48, 0xff,
            0xca, 0x75, 0xeb, 0xc3,
        ];
        assert_eq!(moves(&code, 0), Some(vec![4]));
        assert_eq!(moves(&code, 1), Some(vec![4]));
    }

    #[test]
    fn a_loop_inside_moves_what_the_loop_around_moves_on() {
        // 0 nop | 1 mov ecx,[rbx] | 3 add rbx,4 | 7 cmp ecx,edx | 9 jl 1 | b mov [rbx],esi | d add rbx,4 | 11 cmp rbx,rax |
        // 14 jb 0 | 16 ret
        let code = [
            0x90, 0x8b, 0x0b, 0x48, 0x83, 0xc3, 0x04, 0x39, 0xd1, 0x7c, 0xf6, 0x89, 0x33, 0x48, 0x83, 0xc3, 0x04, 0x48,
            0x39, 0xc3, 0x72, 0xea, 0xc3,
        ];
        assert_eq!(moves(&code, 5), Some(vec![4, 4]));
    }

    #[test]
    fn what_goes_to_and_fro_may_be_anywhere() {
        // As the merge, with `sub rsi,8` in the place of `add rdi,4`.
        let code = [
            0x8b, 0x0e, 0x85, 0xc9, 0x7c, 0x06, 0x48, 0x83, 0xc6, 0x04, 0xeb, 0x04, 0x48, 0x83, 0xee, 0x08, 0x48, 0xff,
            0xca, 0x75, 0xeb, 0xc3,
        ];
        assert_eq!(moves(&code, 0), None);
    }
}
