//! Chunks of a file that grows: how long each is, a checksum of it, and its bytes.
//!
//! A file may end anywhere and is good up to the last whole chunk.

use xxhash_rust::xxh3::xxh3_64;

/// Bytes in front of each: its length and its checksum.
const HEAD_BYTES: usize = 16;

/// Why there is no further chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stop {
    /// The file ends here, behind a whole chunk.
    End,
    /// It ends within one: whoever wrote it was stopped.
    Cut,
    /// The bytes are not those that were written.
    Damaged,
}

/// Appends a chunk.
pub(super) fn append(file: &mut Vec<u8>, payload: &[u8]) {
    file.extend((payload.len() as u64).to_le_bytes());
    file.extend(xxh3_64(payload).to_le_bytes());
    file.extend(payload);
}

/// The first chunk of these bytes, and what is behind it.
pub(super) fn first(bytes: &[u8]) -> Result<(&[u8], &[u8]), Stop> {
    if bytes.is_empty() {
        return Err(Stop::End);
    }
    let (head, rest) = bytes.split_at_checked(HEAD_BYTES).ok_or(Stop::Cut)?;
    let (length, sum) = head.split_at(HEAD_BYTES / 2);
    let number = |bytes: &[u8]| bytes.try_into().map_or(0, u64::from_le_bytes);
    let length = usize::try_from(number(length)).unwrap_or(usize::MAX);
    let (payload, rest) = rest.split_at_checked(length).ok_or(Stop::Cut)?;
    if xxh3_64(payload) == number(sum) { Ok((payload, rest)) } else { Err(Stop::Damaged) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_come_back_up_to_where_the_file_was_cut_or_damaged() {
        let mut file = Vec::new();
        append(&mut file, b"one");
        let whole = file.len();
        append(&mut file, b"another");
        let (payload, rest) = first(&file).unwrap();
        assert_eq!((payload, first(rest).unwrap()), (&b"one"[..], (&b"another"[..], &b""[..])));
        for cut in whole + 1..file.len() {
            assert_eq!(first(first(&file[..cut]).unwrap().1), Err(Stop::Cut));
        }
        assert_eq!(first(b""), Err(Stop::End));
        file[HEAD_BYTES] ^= 1;
        assert_eq!(first(&file), Err(Stop::Damaged));
    }
}
