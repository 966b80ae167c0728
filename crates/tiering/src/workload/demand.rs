//! What a stream asks of memory per visit, on a machine: the same for both evaluators.

use tierloom_contention::Work;
use tierloom_model::units::{LINE_BYTES_F64, NS};
use tierloom_model::{Pattern, Socket};

use super::description::{Phase, Stream};

/// Work of a whole stream if it were on one node.
pub(crate) fn work_of(stream: &Stream, phase: &Phase, socket: &Socket) -> Work {
    let in_a_row = stream.read_bytes / LINE_BYTES_F64 / in_flight(stream, socket);
    let wait = in_a_row * stream.wait_factor / f64::from(phase.threads) * NS;
    let in_a_window = stream.pattern == Pattern::Random && stream.mlp <= socket.demand_lines.value;
    let beside = if in_a_window { wait } else { 0.0 };
    Work {
        wait,
        random: if stream.pattern.is_random() { wait } else { 0.0 },
        beside,
        alone: beside * in_flight(stream, socket),
        read: stream.read_bytes,
        write: stream.write_bytes,
    }
}

/// Misses that one thread keeps in flight: what the program offers, up to what a core can hold.
fn in_flight(stream: &Stream, socket: &Socket) -> f64 {
    let held = match stream.pattern {
        Pattern::Stream | Pattern::Strided => socket.stream_lines.value,
        Pattern::Random | Pattern::Chain => socket.demand_lines.value,
    };
    stream.mlp.min(held).max(1.0)
}

/// Share of a stream's faults whose last fault came from the same thread: all where threads own parts
/// of the region, one in `threads` where they draw from all of it.
pub(crate) fn private_share(stream: &Stream, threads: u32) -> f64 {
    match stream.pattern {
        Pattern::Stream | Pattern::Strided if !stream.shared => 1.0,
        _ => 1.0 / f64::from(threads.max(1)),
    }
}
