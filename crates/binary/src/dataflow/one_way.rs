//! Operands that a loop moves by constants and always in the same direction, but not equally often in each round: the fingers
//! of a merge, the pointers that meet in a partition, the end of a ring.

use crate::cfg::{BlockId, Function, LoopId};
use crate::dataflow::forms::Body;
use crate::instruction::Operand;

/// By which blocks of a loop the operand of an instruction is moved, and by how many bytes each time; `None` where it stays, where
/// anything else sets its address, and where it goes to and fro.
pub fn one_way(function: &Function, inside: LoopId, position: usize, operand: &Operand) -> Option<Vec<(BlockId, i64)>> {
    let body = Body { function, inside };
    let &[(register, scale)] = &body.addends(position, operand)?[..] else { return None };
    let mut moves = Vec::new();
    for &block in &function.loops[inside].body {
        match body.moved(block, register)?.wrapping_mul(scale) {
            0 => {}
            bytes => moves.push((block, bytes)),
        }
    }
    let direction = moves.first()?.1.signum();
    moves.iter().all(|(_, bytes)| bytes.signum() == direction).then_some(moves)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The blocks and steps by which the loop around an operand of the instruction at `position` moves it.
    fn moves(code: &[u8], position: usize) -> Option<Vec<i64>> {
        let function = Function::decode(code, 0);
        let around = function.loops_around(function.block_of(position)).next()?;
        let moves = one_way(&function, around, position, &function.instructions[position].operands[0])?;
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
    fn the_end_of_a_ring_that_some_rounds_move_goes_one_way() {
        // 0 cmp eax,esi | 2 jbe 12 | 4 mov edx,ecx | 6 add ecx,1 | 9 and edx,0xffffff | f mov edx,[rbx+rdx*4] | 12 add eax,1 |
        // 15 cmp eax,edi | 17 jne 0 | 19 ret
        let code = [
            0x39, 0xf0, 0x76, 0x0e, 0x89, 0xca, 0x83, 0xc1, 0x01, 0x81, 0xe2, 0xff, 0xff, 0xff, 0x00, 0x8b, 0x14, 0x93,
            0x83, 0xc0, 0x01, 0x39, 0xf8, 0x75, 0xe7, 0xc3,
        ];
        assert_eq!(moves(&code, 5), Some(vec![4]));
    }

    #[test]
    fn a_counter_may_be_kept_elsewhere_while_its_register_is_the_index() {
        // 0 lea rbp,[rax+1] | 4 and eax,0x1fffff | 9 mov [r10+rax*8],rsi | d mov rax,rbp | 10 test edx,edx | 12 jne 0 | 14 ret
        let code = [
            0x48, 0x8d, 0x68, 0x01, 0x25, 0xff, 0xff, 0x1f, 0x00, 0x49, 0x89, 0x34, 0xc2, 0x48, 0x89, 0xe8, 0x85, 0xd2,
            0x75, 0xec, 0xc3,
        ];
        assert_eq!(moves(&code, 2), Some(vec![8]));
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
