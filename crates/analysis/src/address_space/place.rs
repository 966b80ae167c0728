//! Where an address lies.

use crate::address_space::objects::ObjectId;

/// What an address belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Place {
    /// An object, and the offset in the piece of it that was allocated at once.
    Object(ObjectId, u64),
    /// The stack of the thread.
    Stack,
    /// Nothing that is known.
    Nowhere,
}

impl Place {
    /// The object, where it is one.
    pub(crate) fn object(self) -> Option<ObjectId> {
        match self {
            Self::Object(object, _) => Some(object),
            Self::Stack | Self::Nowhere => None,
        }
    }
}
