//! What both evaluators run on: regions as pages, work as time, events as costs, and the books.

pub(crate) mod costs;
pub(crate) mod filling;
pub(crate) mod host;
pub(crate) mod layout;
pub(crate) mod ledger;
pub(crate) mod page_state;
pub(crate) mod settle;
