//! Who is who: numbers with a type of their own.

use tierloom_model::id;

id! {
    /// A request that is under way.
    pub(crate) struct RequestId(u32);
}

id! {
    /// A root port, and the endpoint behind it.
    pub(crate) struct PortId(u8);
}

id! {
    /// A core of the GPU.
    pub(crate) struct CoreId(u32);
}

id! {
    /// A warp; warps are numbered core by core.
    pub(crate) struct WarpId(u32);
}
