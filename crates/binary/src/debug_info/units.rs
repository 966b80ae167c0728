//! Other units that entries refer to (`DW_FORM_ref_addr`; DWARF 5, 7.5.5): whoever optimises a whole program keeps what
//! was declared where it was compiled, and code in a unit of its own.

use std::cell::{OnceCell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use gimli::{DebugInfoOffset, Dwarf, Unit, UnitHeader, UnitOffset, UnitRef};

use super::dwarf::Reader;

/// The units of a file; each is read when somebody refers to it.
#[derive(Default)]
pub(super) struct Units {
    /// In the order of their places.
    headers: OnceCell<Vec<UnitHeader<Reader>>>,
    read: RefCell<BTreeMap<usize, Rc<Unit<Reader>>>>,
}

impl Units {
    /// The unit with an entry, and where the entry is in it.
    pub(super) fn around(
        &self,
        from: UnitRef<'_, Reader>,
        entry: DebugInfoOffset,
    ) -> Option<(Rc<Unit<Reader>>, UnitOffset)> {
        let headers = self.headers.get_or_init(|| headers(from.dwarf));
        let behind = headers.partition_point(|header| header.debug_info_offset().is_some_and(|start| start <= entry));
        let number = behind.checked_sub(1)?;
        let offset = entry.to_unit_offset(&headers[number])?;
        if let Some(unit) = self.read.borrow().get(&number) {
            return Some((Rc::clone(unit), offset));
        }
        let unit = Rc::new(from.dwarf.unit(headers[number].clone()).ok()?);
        self.read.borrow_mut().insert(number, Rc::clone(&unit));
        Some((unit, offset))
    }
}

fn headers(dwarf: &Dwarf<Reader>) -> Vec<UnitHeader<Reader>> {
    let mut units = dwarf.units();
    std::iter::from_fn(|| units.next().ok().flatten()).collect()
}
