//! Bandwidth of a memory as the firmware would state it, and the kernel's automatic weights.

use tierloom_model::{Load, Machine, Path, Peak};

use crate::weights::reduce;

/// Sum that the kernel scales bandwidths to (`mm/mempolicy.c`, `weightiness`, Linux 6.16).
const WEIGHTINESS: f64 = 32.0;

/// Interleave weight by memory as Linux 6.16 and later sets it (`weighted_interleave/auto`):
/// `max(1, floor(32·b/Σb))`, divided by the greatest common divisor.
///
/// The table is one per host, so every memory of the machine takes part, used or not.
pub(crate) fn automatic_weights(machine: &Machine) -> Vec<u32> {
    let bandwidths: Vec<f64> = (0..machine.memories.len()).map(|memory| stated_gb_s(machine, memory)).collect();
    weights_of(&bandwidths)
}

fn weights_of(bandwidths: &[f64]) -> Vec<u32> {
    let total: f64 = bandwidths.iter().sum();
    let weight = |gb_s: &f64| {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 32")]
        let whole = (WEIGHTINESS * gb_s / total).floor() as u32;
        whole.max(1)
    };
    reduce(&bandwidths.iter().map(weight).collect::<Vec<u32>>())
}

/// Lesser of read and write bandwidth, GB/s, from the initiator that is nearest to the memory.
///
/// That the kernel takes the lesser of the two is read from notes on its HMAT coordinates, not
/// verified in its source; it makes no difference where both are equal.
pub fn stated_gb_s(machine: &Machine, memory: usize) -> f64 {
    let name = &machine.memories[memory].name;
    let paths = machine.paths.iter().filter(|path| &path.to == name);
    paths.min_by(|a, b| a.idle_ns.value.total_cmp(&b.idle_ns.value)).map_or(0.0, lesser_gb_s)
}

/// Lesser of read and write bandwidth of the path from a socket, GB/s; 0 where no path leads.
pub(crate) fn path_gb_s(machine: &Machine, socket: usize, memory: usize) -> f64 {
    machine.path(socket, memory).map_or(0.0, lesser_gb_s)
}

fn lesser_gb_s(path: &Path) -> f64 {
    match &path.load {
        Load::Form(form) => match form.peak {
            Peak::Half { read_gb_s, write_gb_s } => read_gb_s.min(write_gb_s),
            Peak::Full { read_gb_s, write_gb_s, combined_gb_s, .. } => read_gb_s.min(write_gb_s).min(combined_gb_s),
        },
        // Curves are sorted by read fraction: the ends are the nearest to all writes and all reads.
        Load::Points(curves) => {
            let peaks = [curves.first(), curves.last()].into_iter().flatten();
            peaks.filter_map(|curve| curve.points.last()).map(|point| point[0]).fold(f64::INFINITY, f64::min)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn automatic_weights_are_the_kernels() {
        assert_eq!(weights_of(&[200.0, 50.0]), [25, 6]);
        assert_eq!(weights_of(&[300.0, 84.0]), [25, 7]);
        assert_eq!(weights_of(&[110.0, 88.0]), [17, 14]);
        assert_eq!(weights_of(&[460.0, 45.0]), [29, 2]);
        assert_eq!(weights_of(&[100.0, 100.0]), [1, 1]);
        assert_eq!(weights_of(&[460.0, 1.0]), [31, 1], "no node is left out");
    }
}
