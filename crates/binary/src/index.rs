//! Numbers that stand for things, a type for each kind: two kinds cannot be taken for each other.

use index_vec::define_index_type;

define_index_type! {
    /// Position of a function in [`Code::functions`](crate::code::Code::functions).
    pub struct FunctionId = u32;
}

define_index_type! {
    /// Position of a block in [`Function::blocks`](crate::cfg::Function::blocks).
    pub struct BlockId = u32;
}

define_index_type! {
    /// Position of a loop in [`Function::loops`](crate::cfg::Function::loops).
    pub struct LoopId = u32;
}
