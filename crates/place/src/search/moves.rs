//! Which moves are worth trying, in which order.
//!
//! A move can help against the prices: latency is not linear, and where two memories are the
//! bottleneck together, only an exchange helps. With few objects every move and every exchange is
//! tried. With many, prices choose, and exchanges are between the objects that gain and lose most
//! per byte.

use super::lattice::{Lattice, Move, whole};
use super::ranking::{Ranking, by_key};
use crate::weights::MAX_ROUND;

/// Single moves tried in a sweep.
const MOST_SINGLES: usize = 512;
/// Objects on each side of an exchange between two memories.
const PARTNERS: usize = 12;
/// Objects that are moved out of the way of one move.
const MOST_EVICTIONS: usize = 8;
/// Objects that are looked at for that, by where they would go (assumed): where a memory has little room left,
/// thousands may find none in it, move after move.
const MOST_LOOKS: usize = 64;

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

/// What moves around a placement cost.
pub(super) struct Neighbourhood {
    /// Whether candidates are tried that cost time by the prices.
    against_prices: bool,
    nodes: Vec<usize>,
    memories: usize,
    /// Seconds by the prices for all of an object in a memory, up to a constant per object; object after object.
    cost_s: Vec<f64>,
    /// By memory and where to: objects that leave it, cheapest per byte first.
    leavers: Vec<Ranking>,
}

impl Neighbourhood {
    /// Takes prices at a placement.
    pub(super) fn of(lattice: &Lattice<'_>, few: bool) -> Self {
        let context = lattice.context;
        let (objects, memories) = (context.profile.objects.len(), context.capacity.len());
        let prices = context.predictor.prices(lattice.demand());
        let mut cost_s = vec![f64::INFINITY; objects * memories];
        for (object, costs) in cost_s.chunks_exact_mut(memories).enumerate() {
            context.predictor.costs_of_moves_s(&prices, object, context.nodes[0], &context.nodes, costs);
        }
        let mut around =
            Self { against_prices: few, nodes: context.nodes.clone(), memories, cost_s, leavers: Vec::new() };
        let ways = (0..memories).flat_map(|from| (0..memories).map(move |to| (from, to)));
        around.leavers = ways.map(|(from, to)| around.leavers_of(lattice, from, to)).collect();
        around
    }

    /// Seconds that moving all of an object saves by the prices.
    fn saving_s(&self, object: usize, from: usize, to: usize) -> f64 {
        self.cost_s[object * self.memories + from] - self.cost_s[object * self.memories + to]
    }

    fn leavers_of(&self, lattice: &Lattice<'_>, from: usize, to: usize) -> Ranking {
        let allowed = from != to && self.nodes.contains(&to);
        let objects = if allowed { 0..lattice.objects() } else { 0..0 };
        let there = objects.filter(|o| lattice.pages(*o, from) > 0 && lattice.page_bytes(*o) > 0.0);
        Ranking::new(there.map(|object| (-self.saving_s(object, from, to) / lattice.context.size(object), object)))
    }

    fn leavers(&self, from: usize, to: usize) -> &Ranking {
        &self.leavers[from * self.memories + to]
    }

    /// Who leaves a memory for where, cheapest per byte first; to one memory only, where it is given.
    fn leaving(&self, from: usize, to: Option<usize>) -> impl Iterator<Item = (usize, usize)> + '_ {
        let targets = self.nodes.iter().copied().filter(move |node| *node != from && to.is_none_or(|to| to == *node));
        let mut ways: Vec<_> =
            targets.map(|to| (self.leavers(from, to).iter().take(MOST_LOOKS).peekable(), to)).collect();
        std::iter::from_fn(move || {
            let heads = ways.iter_mut().enumerate().filter_map(|(way, (leavers, _))| Some((*leavers.peek()?, way)));
            let (_, way) = heads.min_by(|a, b| by_key(&a.0, &b.0))?;
            let (leavers, to) = &mut ways[way];
            leavers.next().map(|(_, object)| (object, *to))
        })
    }

    /// Moves of one size around the same placement.
    pub(super) fn in_steps_of(&self, step: u32) -> Steps<'_> {
        Steps { around: self, step }
    }
}

/// Moves of one size around a placement.
pub(super) struct Steps<'n> {
    around: &'n Neighbourhood,
    /// Pages of a full round.
    step: u32,
}

impl Steps<'_> {
    /// Pages of an object that a step moves away from a memory.
    fn pages(&self, lattice: &Lattice<'_>, object: usize, from: usize) -> u32 {
        (self.step * lattice.round(object)).div_ceil(MAX_ROUND).min(lattice.pages(object, from))
    }

    /// Moves and exchanges, most promising first.
    pub(super) fn candidates(&self, lattice: &Lattice<'_>) -> Vec<Candidate> {
        let mut exchanges = self.exchanges(lattice);
        exchanges.sort_by(|a, b| b.saving_s.total_cmp(&a.saving_s));
        let mut candidates = self.singles(lattice);
        candidates.extend(exchanges);
        candidates
    }

    /// The most promising moves, each with its clearings.
    fn singles(&self, lattice: &Lattice<'_>) -> Vec<Candidate> {
        let nodes = self.around.nodes.len();
        let mut ways = Vec::new();
        for object in 0..lattice.objects() {
            for (from, node) in
                self.around.nodes.iter().enumerate().filter(|(_, node)| lattice.pages(object, **node) > 0)
            {
                let share = f64::from(self.pages(lattice, object, *node)) / f64::from(lattice.round(object));
                for (to, target) in self.around.nodes.iter().enumerate().filter(|(to, _)| *to != from) {
                    let saving_s = share * self.around.saving_s(object, *node, *target);
                    if saving_s > 0.0 || self.around.against_prices {
                        ways.push((-saving_s, (object * nodes + from) * nodes + to));
                    }
                }
            }
        }
        let candidate = |(cost_s, way): (f64, usize)| Candidate {
            saving_s: -cost_s,
            object: way / nodes / nodes,
            from: self.around.nodes[way / nodes % nodes],
            to: self.around.nodes[way % nodes],
            partner: None,
            clear_to: None,
        };
        let ranking = Ranking::new(ways.into_iter());
        let cleared = |single| std::iter::once(single).chain(self.clearings(lattice, single));
        ranking.iter().map(candidate).flat_map(cleared).take(MOST_SINGLES).collect()
    }

    /// The same move with each place to clear its room to. At a roofline all prices but the
    /// bottleneck's are zero, and say nothing about where to.
    fn clearings(&self, lattice: &Lattice<'_>, candidate: Candidate) -> Vec<Candidate> {
        let Candidate { object, from, to, .. } = candidate;
        let bytes = f64::from(self.pages(lattice, object, from)) * lattice.page_bytes(object);
        if !self.around.against_prices || bytes <= lattice.free_bytes(to) {
            return Vec::new();
        }
        let places = self.around.nodes.iter().filter(|node| **node != to);
        places.map(|node| Candidate { clear_to: Some(*node), ..candidate }).collect()
    }

    fn exchanges(&self, lattice: &Lattice<'_>) -> Vec<Candidate> {
        let mut exchanges = Vec::new();
        for from in self.around.nodes.iter().copied() {
            for to in self.around.nodes.iter().copied().filter(|to| *to > from) {
                let back = self.gainers(lattice, to, from);
                for (gain, object) in self.gainers(lattice, from, to) {
                    for (loss, partner) in back.iter().filter(|(_, partner)| *partner != object) {
                        let bytes = f64::from(self.pages(lattice, object, from)) * lattice.page_bytes(object);
                        let saving_s = (gain + loss) * bytes;
                        if saving_s > 0.0 || self.around.against_prices {
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
        if !self.around.against_prices {
            return vec![step];
        }
        let traffic = |object| lattice.context.predictor.dram_bytes(object) / f64::from(lattice.round(object));
        let same = f64::from(self.pages(lattice, object, from)) * traffic(object) / traffic(partner);
        let same = whole(same.round()).clamp(1, lattice.pages(partner, to));
        if same == step { vec![step] } else { vec![step, same] }
    }

    /// Objects that gain most per byte, or lose least, by a change of memory.
    fn gainers(&self, lattice: &Lattice<'_>, from: usize, to: usize) -> Vec<(f64, usize)> {
        let leaving = self.around.leavers(from, to).iter().filter(|(_, object)| lattice.pages(*object, from) > 0);
        leaving.take(PARTNERS).map(|(loss, object)| (-loss, object)).collect()
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
        for (other, to) in self.around.leaving(node, clear_to) {
            let lacking = plan.pages_lacking(other, node);
            if lacking == 0 || evictions == MOST_EVICTIONS {
                return;
            }
            if plan.moves.iter().any(|planned| planned.object == other) {
                continue;
            }
            let room = whole((plan.free[to] / plan.lattice.page_bytes(other)).floor());
            let pages = lacking.min(room).min(plan.lattice.pages(other, node));
            if pages > 0 {
                plan.add(Move { object: other, from: node, to, pages });
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
