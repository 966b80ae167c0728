//! Samples as rows of a `NumPy` structured array. File: `NAME.profile/samples.npy`.
//!
//! The layout is packed and little-endian, so `numpy.load(path, mmap_mode="r")` reads it as it is.

use serde::{Deserialize, Serialize};

/// What the blamed instruction does to memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[repr(u8)]
pub enum AccessKind {
    /// It touches no memory.
    None = 0,
    /// It loads.
    Read = 1,
    /// It stores.
    Write = 2,
    /// It loads and stores.
    ReadWrite = 3,
}

/// Of a sample that touched the object nobody knows where: the register that told was overwritten by what was loaded.
pub const UNKNOWN_OFFSET: u64 = u64::MAX;

/// One sample: who waited where, when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SampleRow {
    /// ns from the start of the run.
    pub time_ns: u64,
    /// Offset of the touched byte in the object, or [`UNKNOWN_OFFSET`].
    pub offset: u64,
    /// Kernel thread id.
    pub thread: u32,
    /// Position of the object in the profile; negative for unattributed samples, `-1 - position`.
    pub object: i32,
    /// What the instruction does.
    pub access: AccessKind,
}

/// Bytes of a row on disk.
const ROW_BYTES: usize = 25;
const DESCR: &str = "[('time_ns', '<u8'), ('offset', '<u8'), ('thread', '<u4'), ('object', '<i4'), ('access', '|u1')]";
/// NPY format 1.0: magic, version, length of the header (padded to 64 bytes in all).
const MAGIC: &[u8] = b"\x93NUMPY\x01\x00";

/// Writes rows as an `.npy` file (NEP 1, format version 1.0).
pub fn samples_to_npy(rows: &[SampleRow]) -> Vec<u8> {
    let dict = format!("{{'descr': {DESCR}, 'fortran_order': False, 'shape': ({},), }}", rows.len());
    let header_bytes = (MAGIC.len() + 2 + dict.len() + 1).next_multiple_of(64);
    let text_bytes = header_bytes - MAGIC.len() - 2;
    let mut bytes = Vec::with_capacity(header_bytes + rows.len() * ROW_BYTES);
    bytes.extend_from_slice(MAGIC);
    bytes.extend(u16::try_from(text_bytes).unwrap_or(u16::MAX).to_le_bytes());
    bytes.extend(format!("{dict:<width$}\n", width = text_bytes - 1).bytes());
    for row in rows {
        bytes.extend(row.time_ns.to_le_bytes());
        bytes.extend(row.offset.to_le_bytes());
        bytes.extend(row.thread.to_le_bytes());
        bytes.extend(row.object.to_le_bytes());
        bytes.push(row.access as u8);
    }
    bytes
}

/// Reads what [`samples_to_npy`] wrote.
///
/// # Errors
/// A sentence that says why the bytes are not such a file.
pub fn samples_from_npy(bytes: &[u8]) -> Result<Vec<SampleRow>, String> {
    let rest = bytes.strip_prefix(MAGIC).ok_or("this is not an .npy file of format 1.0")?;
    let (length, rest) = rest.split_at_checked(2).ok_or("the header is cut off")?;
    let length = usize::from(u16::from_le_bytes([length[0], length[1]]));
    let (header, data) = rest.split_at_checked(length).ok_or("the header is cut off")?;
    if !String::from_utf8_lossy(header).contains(DESCR) {
        return Err("the columns are not those of tierloom samples".to_owned());
    }
    if !data.len().is_multiple_of(ROW_BYTES) {
        return Err("the last row is cut off".to_owned());
    }
    data.chunks_exact(ROW_BYTES).map(row_from_bytes).collect()
}

fn row_from_bytes(row: &[u8]) -> Result<SampleRow, String> {
    let word = |at: usize| row[at..at + 8].iter().rev().fold(0u64, |sum, byte| (sum << 8) | u64::from(*byte));
    let half = |at: usize| row[at..at + 4].iter().rev().fold(0u32, |sum, byte| (sum << 8) | u32::from(*byte));
    let access = match row[24] {
        0 => AccessKind::None,
        1 => AccessKind::Read,
        2 => AccessKind::Write,
        3 => AccessKind::ReadWrite,
        other => return Err(format!("access kind {other} is not 0 to 3")),
    };
    Ok(SampleRow { time_ns: word(0), offset: word(8), thread: half(16), object: half(20).cast_signed(), access })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn row() -> impl Strategy<Value = SampleRow> {
        let access = prop_oneof![
            Just(AccessKind::None),
            Just(AccessKind::Read),
            Just(AccessKind::Write),
            Just(AccessKind::ReadWrite)
        ];
        (any::<u64>(), any::<u64>(), any::<u32>(), any::<i32>(), access)
            .prop_map(|(time_ns, offset, thread, object, access)| SampleRow { time_ns, offset, thread, object, access })
    }

    proptest! {
        #[test]
        fn rows_survive_the_file(rows in prop::collection::vec(row(), 0..40)) {
            prop_assert_eq!(samples_from_npy(&samples_to_npy(&rows)), Ok(rows));
        }

        #[test]
        fn any_bytes_are_answered(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = samples_from_npy(&bytes);
        }
    }
}
