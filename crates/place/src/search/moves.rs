//! Which moves are worth trying, in which order.
//!
//! A move can help against the prices: latency is not linear, and where two memories are the
//! bottleneck together, only an exchange helps. With few objects every move and every exchange is
//! tried. With many, prices choose, and exchanges are between the objects that gain and lose most
//! per byte.

use super::lattice::{Lattice, Move, whole};
use crate::weights::MAX_ROUND;

/// Single moves tried in a sweep.
const MOST_SINGLES: usize = 512;
/// Objects on each side of an exchange between two memories.
const PARTNERS: usize = 12;
/// Objects that are moved out of the way of one move.
const MOST_EVICTIONS: usize = 8;

/// A move and, in an exchange, the object that goes the other way.
#[derive(Debug, Clone, Copy)]
pub(super) struct Candidate {
    /// Seconds that it saves by the prices.
    saving_s: f64,
    object: usize,
    from: usize,
    to: usize,
    /// Who goes the other way, and how many pages of its round.
    partner: Option<(usize, u32)>,
    /// Where what has to make room goes; where prices say, if not given.
    clear_to: Option<usize>,
}

/// Moves of one size around a placement.
pub(super) struct Neighbourhood {
    step: u32,
    /// Whether candidates are tried that cost time by the prices.
    against_prices: bool,
    nodes: Vec<usize>,
    /// Seconds by the prices for all of an object in a memory, up to a constant per object.
    cost_s: Vec<Vec<f64>>,
    /// By memory: who leaves it for where, cheapest per byte first.
    leavers: Vec<Vec<(f64, usize, usize)>>,
}

impl Neighbourhood {
    /// Takes prices at a placement.
    pub(super) fn of(lattice: &Lattice<'_>, step: u32, few: bool) -> Self {
        let context = lattice.context;
        let prices = context.predictor.prices(lattice.demand());
        let allowed = |node: &usize| context.nodes.contains(node);
        let cost = |object, node| match Some(node).filter(allowed) {
            Some(node) => context.predictor.cost_of_move_s(&prices, object, context.nodes[0], node),
            None => f64::INFINITY,
        };
        let all = 0..context.capacity.len();
        let costs = |object| all.clone().map(|node| cost(object, node)).collect();
        let cost_s: Vec<Vec<f64>> = (0..context.profile.objects.len()).map(costs).collect();
        let (against_prices, nodes) = (few, context.nodes.clone());
        let mut around = Self { step, against_prices, nodes, cost_s, leavers: Vec::new() };
        around.leavers = all.map(|node| around.leavers_of(lattice, node)).collect();
        around
    }

    /// Seconds that moving all of an object saves by the prices.
    fn saving_s(&self, object: usize, from: usize, to: usize) -> f64 {
        self.cost_s[object][from] - self.cost_s[object][to]
    }

    fn leavers_of(&self, lattice: &Lattice<'_>, node: usize) -> Vec<(f64, usize, usize)> {
        let mut leavers = Vec::new();
        for object in (0..self.cost_s.len()).filter(|o| lattice.pages(*o, node) > 0 && lattice.page_bytes(*o) > 0.0) {
            let loss = |to: usize| -self.saving_s(object, node, to) / lattice.context.size(object);
            leavers.extend(self.nodes.iter().filter(|to| **to != node).map(|to| (loss(*to), object, *to)));
        }
        leavers.sort_by(|a, b| a.0.total_cmp(&b.0));
        leavers
    }

    /// Pages of an object that a step moves away from a memory.
    fn pages(&self, lattice: &Lattice<'_>, object: usize, from: usize) -> u32 {
        (self.step * lattice.round(object)).div_ceil(MAX_ROUND).min(lattice.pages(object, from))
    }

    /// Moves and exchanges, most promising first.
    pub(super) fn candidates(&self, lattice: &Lattice<'_>) -> Vec<Candidate> {
        let mut singles = self.singles(lattice);
        singles.sort_by(|a, b| b.saving_s.total_cmp(&a.saving_s));
        singles.truncate(MOST_SINGLES);
        let mut exchanges = self.exchanges(lattice);
        exchanges.sort_by(|a, b| b.saving_s.total_cmp(&a.saving_s));
        singles.extend(exchanges);
        singles
    }

    fn singles(&self, lattice: &Lattice<'_>) -> Vec<Candidate> {
        let mut singles = Vec::new();
        for object in 0..self.cost_s.len() {
            for from in self.nodes.iter().copied().filter(|from| lattice.pages(object, *from) > 0) {
                let share = f64::from(self.pages(lattice, object, from)) / f64::from(lattice.round(object));
                for to in self.nodes.iter().copied().filter(|to| *to != from) {
                    let saving_s = share * self.saving_s(object, from, to);
                    if saving_s > 0.0 || self.against_prices {
                        let candidate = Candidate { saving_s, object, from, to, partner: None, clear_to: None };
                        singles.push(candidate);
                        singles.extend(self.clearings(lattice, candidate));
                    }
                }
            }
        }
        singles
    }

    /// The same move with each place to clear its room to. At a roofline all prices but the
    /// bottleneck's are zero, and say nothing about where to.
    fn clearings(&self, lattice: &Lattice<'_>, candidate: Candidate) -> Vec<Candidate> {
        let Candidate { object, from, to, .. } = candidate;
        let bytes = f64::from(self.pages(lattice, object, from)) * lattice.page_bytes(object);
        if !self.against_prices || bytes <= lattice.free_bytes(to) {
            return Vec::new();
        }
        let places = self.nodes.iter().filter(|node| **node != to);
        places.map(|node| Candidate { clear_to: Some(*node), ..candidate }).collect()
    }

    fn exchanges(&self, lattice: &Lattice<'_>) -> Vec<Candidate> {
        let mut exchanges = Vec::new();
        for from in self.nodes.iter().copied() {
            for to in self.nodes.iter().copied().filter(|to| *to > from) {
                let back = self.gainers(lattice, to, from);
                for (gain, object) in self.gainers(lattice, from, to) {
                    for (loss, partner) in back.iter().filter(|(_, partner)| *partner != object) {
                        let bytes = f64::from(self.pages(lattice, object, from)) * lattice.page_bytes(object);
                        let saving_s = (gain + loss) * bytes;
                        if saving_s > 0.0 || self.against_prices {
                            let backs = self.pages_back(lattice, object, from, *partner, to).into_iter();
                            let partners = backs.map(|pages| Some((*partner, pages)));
                            exchanges.extend(partners.map(|partner| Candidate {
                                saving_s,
                                object,
                                from,
                                to,
                                partner,
                                clear_to: None,
                            }));
                        }
                    }
                }
            }
        }
        exchanges
    }

    /// How much of a partner goes the other way: as large a step, and against prices also as much
    /// traffic, which leaves two memories that are both full of it as full as they are.
    fn pages_back(&self, lattice: &Lattice<'_>, object: usize, from: usize, partner: usize, to: usize) -> Vec<u32> {
        let step = self.pages(lattice, partner, to);
        if !self.against_prices {
            return vec![step];
        }
        let traffic = |object| lattice.context.predictor.dram_bytes(object) / f64::from(lattice.round(object));
        let same = f64::from(self.pages(lattice, object, from)) * traffic(object) / traffic(partner);
        let same = whole(same.round()).clamp(1, lattice.pages(partner, to));
        if same == step { vec![step] } else { vec![step, same] }
    }

    /// Objects that gain most per byte, or lose least, by a change of memory.
    fn gainers(&self, lattice: &Lattice<'_>, from: usize, to: usize) -> Vec<(f64, usize)> {
        let leaving =
            self.leavers[from].iter().filter(|(_, object, target)| *target == to && lattice.pages(*object, from) > 0);
        leaving.take(PARTNERS).map(|(loss, object, _)| (-loss, *object)).collect()
    }

    /// The moves of a candidate as things are now, with others making room; `None` where that fails.
    pub(super) fn moves(&self, lattice: &Lattice<'_>, candidate: &Candidate) -> Option<Vec<Move>> {
        let Candidate { object, from, to, partner, clear_to, .. } = *candidate;
        let pages = self.pages(lattice, object, from);
        if pages == 0 {
            return None;
        }
        let mut plan = Plan::new(lattice);
        plan.add(Move { object, from, to, pages });
        if let Some((partner, pages)) = partner {
            let pages = pages.max(plan.pages_lacking(partner, to)).min(lattice.pages(partner, to));
            if pages == 0 {
                return None;
            }
            plan.add(Move { object: partner, from: to, to: from, pages });
        }
        self.make_room(&mut plan, to, clear_to);
        plan.fits().then_some(plan.moves)
    }

    /// Moves others out of a memory, cheapest per byte first, until what was planned fits.
    fn make_room(&self, plan: &mut Plan<'_, '_>, node: usize, clear_to: Option<usize>) {
        let mut evictions = 0;
        let places = self.leavers[node].iter().filter(|(_, _, to)| clear_to.is_none_or(|place| place == *to));
        for (_, other, to) in places {
            let lacking = plan.pages_lacking(*other, node);
            if lacking == 0 || evictions == MOST_EVICTIONS {
                return;
            }
            if plan.moves.iter().any(|planned| planned.object == *other) {
                continue;
            }
            let room = whole((plan.free[*to] / plan.lattice.page_bytes(*other)).floor());
            let pages = lacking.min(room).min(plan.lattice.pages(*other, node));
            if pages > 0 {
                plan.add(Move { object: *other, from: node, to: *to, pages });
                evictions += 1;
            }
        }
    }
}

/// Moves that are made together, and the room that they leave.
struct Plan<'l, 'c> {
    lattice: &'l Lattice<'c>,
    moves: Vec<Move>,
    free: Vec<f64>,
}

impl<'l, 'c> Plan<'l, 'c> {
    fn new(lattice: &'l Lattice<'c>) -> Self {
        let free = (0..lattice.context.capacity.len()).map(|node| lattice.free_bytes(node)).collect();
        Self { lattice, moves: Vec::new(), free }
    }

    fn add(&mut self, step: Move) {
        let bytes = f64::from(step.pages) * self.lattice.page_bytes(step.object);
        self.free[step.from] += bytes;
        self.free[step.to] -= bytes;
        self.moves.push(step);
    }

    /// Pages of an object that must leave a memory before it is no longer overfull.
    fn pages_lacking(&self, object: usize, node: usize) -> u32 {
        let page = self.lattice.page_bytes(object);
        if self.free[node] >= 0.0 || page <= 0.0 { 0 } else { whole((-self.free[node] / page).ceil()) }
    }

    fn fits(&self) -> bool {
        self.free.iter().all(|bytes| *bytes >= 0.0)
    }
}
