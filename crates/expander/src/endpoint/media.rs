//! Storage media: dies that read and program in parallel, and the bus that brings their data.
//!
//! A read senses a whole page of its die. All that wait for the page when it has been sensed are served of it:
//! lines that one read asks for, and reads that come meanwhile. That is how a device reaches the sequential rate of
//! its data sheet, which is many times what lines sensed one by one would give. Keeping the page for reads that come
//! later is not what drives do (Zhang and Jung propose it for GPUs: `ZnG`, ISCA 2020), and is not modelled.

use tierloom_model::hash::scatter;
use tierloom_model::units::LINE_BYTES;

use crate::line::{Line, Map};
use crate::parameters::{Endpoint, Medium};
use crate::time::{Ps, from_ns, ps_per_byte};

/// The dies and the bus of one SSD.
#[derive(Debug)]
pub(crate) struct Media {
    reading: Vec<Ps>,
    /// When the last sensing of a page has ended, or will.
    sensed: Map<u32, Ps>,
    page_lines: u32,
    programming: Vec<Ps>,
    next_program: usize,
    /// A garbage collection has all dies until then; reads suspend it.
    collecting: Ps,
    bus_free: f64,
    controller: Ps,
    read: Ps,
    program: Ps,
    erase: Ps,
    suspend: Ps,
    ps_per_byte: f64,
    /// Bytes that went over the bus to the controller.
    pub(crate) bytes: f64,
    /// Pages sensed.
    pub(crate) senses: u64,
}

impl Media {
    pub(crate) fn new(medium: &Medium, endpoint: &Endpoint) -> Self {
        let program = medium.program_ns.value;
        let dies = medium.dies.value as usize;
        Self {
            reading: vec![0; dies],
            sensed: Map::default(),
            page_lines: (medium.page_bytes.value / LINE_BYTES) as u32,
            programming: vec![0; dies],
            next_program: 0,
            collecting: 0,
            bus_free: 0.0,
            controller: from_ns(medium.controller_ns.value),
            read: from_ns(medium.read_ns.value),
            program: from_ns(program),
            erase: from_ns(medium.erase_ns.value),
            suspend: from_ns(program * endpoint.suspend_share.value),
            ps_per_byte: ps_per_byte(medium.bus_gb_s.value),
            bytes: 0.0,
            senses: 0,
        }
    }

    /// Latency of a read, and picoseconds that a written byte takes with all dies programming.
    pub(crate) fn rates(medium: &Medium) -> (Ps, f64) {
        let read = from_ns(medium.controller_ns.value + medium.read_ns.value);
        let page = medium.page_bytes.value as f64 * f64::from(medium.dies.value);
        (read, medium.program_ns.value * 1e3 / page)
    }

    /// Senses the page of a line, or waits with those for whom that is done; when it is. A program, or a
    /// collection, that runs on the die is suspended first, unless a read before has done so.
    pub(crate) fn read(&mut self, now: Ps, line: Line) -> Ps {
        let (page, asked) = (line / self.page_lines, now + self.controller);
        if let Some(&ready) = self.sensed.get(&page).filter(|&&ready| ready > asked) {
            return ready;
        }
        let die = (((scatter(u64::from(page)) >> 32) * self.reading.len() as u64) >> 32) as usize;
        let free = self.reading[die];
        let works = self.programming[die].max(self.collecting) > asked;
        let start = if free > asked || !works { asked.max(free) } else { asked + self.suspend };
        let done = start + self.read;
        self.reading[die] = done;
        self.sensed.insert(page, done);
        self.senses += 1;
        done
    }

    /// Brings `bytes` that have been sensed at `ready` to the controller; when the last is there.
    pub(crate) fn transfer(&mut self, now: Ps, ready: Ps, bytes: u64) -> Ps {
        let span = bytes as f64 * self.ps_per_byte;
        self.bus_free = self.bus_free.max(now as f64) + span;
        self.bytes += bytes as f64;
        (ready as f64 + span).max(self.bus_free) as Ps
    }

    /// Whether the next die in turn can take a program.
    pub(crate) fn can_program(&self, now: Ps) -> bool {
        self.programming[self.next_program] <= now && self.collecting <= now
    }

    /// Programs a page that is at the controller at `ready` on the next die in turn; when it is done.
    pub(crate) fn program(&mut self, ready: Ps) -> Ps {
        let done = ready + self.program;
        self.programming[self.next_program] = done;
        self.next_program = (self.next_program + 1) % self.programming.len();
        done
    }

    /// Moves `pages` live pages and erases their block with all dies; when they are free again. A block
    /// of this scaled device has a page or two on each die, where one of the real has hundreds. So dies
    /// that still program start later and do less, and all end together: the time that they lack costs
    /// the collection as much as in the real device, where no die waits long for another.
    pub(crate) fn collect(&mut self, now: Ps, pages: u32) -> Ps {
        let mut free: Vec<Ps> = self.programming.iter().map(|&until| until.max(now)).collect();
        free.sort_unstable();
        let mut work = u64::from(pages) * (self.read + self.program) + free.len() as u64 * self.erase;
        // The end if only the first dies to be free took part; one more is of use while that is earlier.
        let ends = free.iter().zip(1..).map(|(&from, dies)| {
            work += from;
            work.div_ceil(dies)
        });
        self.collecting = ends.min().unwrap_or(now);
        self.collecting
    }

    /// Share of the dies that a request which comes now would queue for: those that still read when it
    /// has passed the controller. A program that runs makes no queue, as reads suspend it; that programs
    /// fall behind shows in the write buffer.
    pub(crate) fn busy(&self, now: Ps) -> f64 {
        let asked = now + self.controller;
        let busy = self.reading.iter().filter(|&&until| until > asked).count();
        busy as f64 / self.reading.len() as f64
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::line::BLOCK_LINES;
    use crate::parameters::Parameters;

    fn medium(name: &str) -> Media {
        let text = include_str!("../../../../python/tierloom/catalog/expander/cxl-gpu.toml");
        let parameters = Parameters::from_toml(text, "cxl-gpu.toml").unwrap();
        Media::new(&parameters.media[name], &parameters.endpoint)
    }

    fn znand() -> Media {
        medium("znand")
    }

    #[test]
    fn a_program_that_reads_suspend_is_no_load() {
        let mut media = znand();
        (0..64).for_each(|_| _ = media.program(0));
        assert!(media.busy(1) < f64::EPSILON);
        let done = media.read(1, 7);
        assert!(media.busy(1) > 0.0);
        assert!(done > from_ns(8_700.0 + 3_000.0), "it waits for the program to be suspended");
        assert!(done < from_ns(8_700.0 + 3_000.0 + 3_000.0), "and not for its end");
    }

    proptest! {
        /// A collection loses no die's time: what it takes of all of them is its work, whenever they come free.
        #[test]
        fn dies_end_a_collection_together(programs in prop::collection::vec(0_u64..200_000_000, 0..64), pages in 1_u32..300) {
            let mut media = znand();
            let now = 50_000_000;
            for &ready in &programs {
                media.program(ready);
            }
            let free = media.programming.clone();
            let end = media.collect(now, pages);
            let taken: u64 = free.iter().map(|&from| end.saturating_sub(from.max(now))).sum();
            let work = u64::from(pages) * (media.read + media.program) + 64 * media.erase;
            prop_assert!(taken >= work && taken < work + 64, "{taken} of {work}");
        }
    }

    #[test]
    fn a_page_is_sensed_once_for_all_who_wait_for_it() {
        let mut media = znand();
        let lines = media.page_lines;
        let first = media.read(0, 7 * lines);
        assert_eq!(media.read(1, 8 * lines - 1), first);
        assert_eq!(media.senses, 1);
        assert_eq!(
            media.read(first, 7 * lines + 1),
            first + media.controller + media.read,
            "who comes later senses anew"
        );
        assert_eq!(media.senses, 2);
        media.read(first, 8 * lines);
        assert_eq!(media.senses, 3, "the next page is another");
    }

    /// A Samsung 980 Pro reads 7.0 GB/s in sequence; blocks of 256 bytes sensed one by one would be 0.4 GB/s.
    #[test]
    fn streams_reach_what_the_bus_carries() {
        let mut media = medium("nand");
        let (streams, lines) = (64, media.page_lines);
        let mut last = 0;
        for at in (0..lines).step_by(BLOCK_LINES as usize) {
            for stream in 0..streams {
                let ready = media.read(0, stream * 1000 * lines + at);
                last = last.max(media.transfer(0, ready, u64::from(BLOCK_LINES) * LINE_BYTES));
            }
        }
        let gb_s = (u64::from(streams * lines) * LINE_BYTES) as f64 / last as f64 * 1e3;
        assert!((gb_s - 9.6).abs() < 0.1, "{gb_s} GB/s");
    }

    #[test]
    fn a_die_is_a_load_while_a_new_request_would_find_it_reading() {
        let mut media = znand();
        let done = media.read(0, 7);
        assert!(media.busy(from_ns(2_999.0)) > 0.0);
        assert!(from_ns(3_001.0) < done);
        assert!(
            media.busy(from_ns(3_001.0)) < f64::EPSILON,
            "what comes now is in the controller until the die is free"
        );
    }
}
