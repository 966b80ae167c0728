//! The decoder of host-managed device memory: which root port an address belongs to.

use tierloom_model::units::LINE_BYTES;

use super::speculate::Speculation;
use crate::ids::PortId;
use crate::line::Line;

/// A range of lines, one or several ports in turn.
#[derive(Debug, Clone, Copy)]
struct Range {
    base: Line,
    lines: u32,
    first_port: u32,
    ports: u32,
}

/// The ranges of all root ports, in order of address.
#[derive(Debug)]
pub(crate) struct Decoder {
    ranges: Vec<Range>,
    granule: u32,
}

impl Decoder {
    /// One range over `lines` lines, interleaved over `ports` ports every `granule_bytes`.
    pub(crate) fn interleaved(lines: u32, ports: u32, granule_bytes: u64) -> Self {
        let granule = (granule_bytes / LINE_BYTES).max(1) as u32;
        Self { ranges: vec![Range { base: 0, lines, first_port: 0, ports }], granule }
    }

    /// The port that holds a line; lines beyond all ranges belong to the last range.
    pub(crate) fn port(&self, line: Line) -> PortId {
        let at = self.ranges.partition_point(|range| range.base <= line).saturating_sub(1);
        let Some(range) = self.ranges.get(at) else { return PortId(0) };
        if range.ports == 1 {
            return PortId(range.first_port as u8);
        }
        let turn = (line - range.base) / self.granule % range.ports;
        PortId((range.first_port + turn) as u8)
    }

    /// The part of some lines that lies in memory, with `line`, behind the port of `line`.
    pub(crate) fn clip(&self, line: Line, Speculation { start, end }: Speculation) -> Speculation {
        let last = self.ranges.last().map_or(0, |range| range.base + range.lines);
        let (mut low, mut high) = (start, end.min(last.max(line + 1)));
        if self.ranges.iter().any(|range| range.ports > 1) {
            let granule = line / self.granule * self.granule;
            low = low.max(granule);
            high = high.min(granule + self.granule);
        }
        Speculation { start: low, end: high }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use tierloom_model::index::Id;

    use super::*;

    proptest! {
        #[test]
        fn interleaving_shares_lines_evenly(ports in 1_u32..9, granules in 1_u32..40) {
            let decoder = Decoder::interleaved(granules * ports * 4, ports, 256);
            let mut lines = vec![0; ports as usize];
            (0..granules * ports * 4).for_each(|line| lines[decoder.port(line).position()] += 1);
            prop_assert!(lines.iter().all(|&count| count == granules * 4));
        }

        #[test]
        fn a_clipped_window_stays_behind_its_port(line in 0_u32..4000, back in 0_u32..40, ahead in 1_u32..40) {
            let decoder = Decoder::interleaved(4096, 3, 1024);
            let asked = Speculation { start: line.saturating_sub(back), end: line + ahead };
            let Speculation { start: low, end: high } = decoder.clip(line, asked);
            prop_assert!(low <= line && line < high);
            prop_assert!((low..high).all(|other| decoder.port(other) == decoder.port(line)));
        }
    }
}
