//! A CXL link: two directions that each carry one message after another.

use crate::parameters::Link as Parameters;
use crate::time::{Ps, from_ns, ps_per_byte};

/// One direction: its bytes leave in the order in which they were handed over.
#[derive(Debug)]
struct Direction {
    free: f64,
    bytes: f64,
}

/// Both directions of one link, with the controllers at its ends.
#[derive(Debug)]
pub(crate) struct Link {
    down: Direction,
    up: Direction,
    ps_per_byte: f64,
    one_way: Ps,
    request: f64,
    data: f64,
    answer: f64,
}

impl Link {
    pub(crate) fn new(parameters: &Parameters) -> Self {
        Self {
            down: Direction { free: 0.0, bytes: 0.0 },
            up: Direction { free: 0.0, bytes: 0.0 },
            ps_per_byte: ps_per_byte(parameters.gb_s.value),
            one_way: from_ns(parameters.round_trip_ns.value / 2.0),
            request: parameters.request_bytes.value,
            data: parameters.data_bytes.value,
            answer: parameters.answer_bytes.value,
        }
    }

    /// A request without data (`MemRd`, `MemSpecRd`) to the endpoint; when it arrives.
    pub(crate) fn request(&mut self, now: Ps) -> Ps {
        self.down.carry(now, self.request, self.ps_per_byte) + self.one_way
    }

    /// A write with its line to the endpoint; when it arrives.
    pub(crate) fn write(&mut self, now: Ps) -> Ps {
        self.down.carry(now, self.data, self.ps_per_byte) + self.one_way
    }

    /// A line to the GPU; when it arrives.
    pub(crate) fn data(&mut self, now: Ps) -> Ps {
        self.up.carry(now, self.data, self.ps_per_byte) + self.one_way
    }

    /// A completion without data to the GPU; when it arrives.
    pub(crate) fn answer(&mut self, now: Ps) -> Ps {
        self.up.carry(now, self.answer, self.ps_per_byte) + self.one_way
    }

    /// Bytes that have gone down and up.
    pub(crate) fn bytes(&self) -> [f64; 2] {
        [self.down.bytes, self.up.bytes]
    }
}

impl Direction {
    /// Puts `bytes` on the wire at `now` or behind what is on it; when the last has left.
    fn carry(&mut self, now: Ps, bytes: f64, ps_per_byte: f64) -> Ps {
        self.free = self.free.max(now as f64) + bytes * ps_per_byte;
        self.bytes += bytes;
        self.free as Ps
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_direction_never_carries_more_than_its_bandwidth(sends in prop::collection::vec((0_u64..5_000, 1.0_f64..100.0), 1..100)) {
            let (mut wire, mut now, mut last) = (Direction { free: 0.0, bytes: 0.0 }, 0, 0);
            for (pause, bytes) in sends {
                now += pause;
                let done = wire.carry(now, bytes, 31.25);
                prop_assert!(done >= last, "messages overtook each other");
                prop_assert!(wire.bytes * 31.25 <= done as f64 + 1.0);
                last = done;
            }
        }
    }
}
