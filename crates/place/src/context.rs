//! What a policy may look at, and what its actions come to.
//!
//! Stands between the [`Request`](crate::Request), which speaks in names, and the policies, which
//! work with positions. [`Context::realise`] is the one place where actions become fractions, so
//! every policy is judged by what the kernel would really do with what it asks for.

use std::collections::BTreeMap;
use std::sync::Arc;

use tierloom_model::units::{format_bytes, round_to_u64};
use tierloom_model::{Action, Machine, Piece, Placement, Profile};
use tierloom_predict::Predictor;

use crate::error::PlaceError;
use crate::pages::{Deal, Filling, Turn};

/// A program, a machine, and which part of its memory may be used.
#[derive(Debug, Clone)]
pub struct Context<'a> {
    /// The machine.
    pub machine: &'a Machine,
    /// The program.
    pub profile: &'a Profile,
    /// Both together, compiled.
    pub predictor: &'a Predictor,
    /// Where the threads run.
    pub socket: usize,
    /// Memories that may be used, nearest first.
    pub nodes: Vec<usize>,
    /// The memory that is short and dear.
    pub fast: usize,
    /// Bytes that may be used of each memory; 0 for those that may not be used.
    pub capacity: Vec<f64>,
    fixed: Arc<Fixed>,
}

/// What no budget changes.
#[derive(Debug)]
struct Fixed {
    /// Parts of objects in the order of their first touch.
    filling: Vec<Piece>,
    /// By memory: allowed nodes in the order in which the kernel tries them for a page meant for it.
    zonelists: Vec<Vec<usize>>,
    /// Bytes by object.
    sizes: Vec<f64>,
    /// Bytes of all objects.
    footprint: f64,
    /// Objects by waiting over bytes, most first, and by waiting over traffic.
    densest: [Vec<usize>; 2],
}

impl<'a> Context<'a> {
    /// Gathers what policies need; `budget` limits the bytes of fast memory.
    ///
    /// # Errors
    /// [`PlaceError::TooLarge`] when the objects do not fit in the allowed memories together.
    pub fn new(
        machine: &'a Machine,
        profile: &'a Profile,
        predictor: &'a Predictor,
        socket: usize,
        nodes: Vec<usize>,
        fast: usize,
        budget: Option<u64>,
    ) -> Result<Self, PlaceError> {
        let mut capacity = vec![0.0; machine.memories.len()];
        for node in &nodes {
            capacity[*node] = machine.memories[*node].capacity_bytes.value as f64;
        }
        let zonelists = (0..capacity.len()).map(|node| zonelist(machine, socket, &nodes, node)).collect();
        let sizes: Vec<f64> = profile.objects.iter().map(|object| object.size_bytes as f64).collect();
        let footprint = sizes.iter().sum();
        let traffic: Vec<f64> = (0..sizes.len()).map(|object| predictor.dram_bytes(object)).collect();
        let densest = [&sizes, &traffic].map(|uses| densest(predictor, uses));
        let fixed = Arc::new(Fixed { filling: profile.filling(), zonelists, sizes, footprint, densest });
        let context = Self { machine, profile, predictor, socket, nodes, fast, capacity, fixed };
        budget.map_or(Ok(context.clone()), |bytes| context.with_budget(bytes as f64)).and_then(Self::checked)
    }

    /// The same with at most so many bytes of fast memory.
    ///
    /// # Errors
    /// [`PlaceError::TooLarge`] when the objects do not fit any more.
    pub fn with_budget(&self, bytes: f64) -> Result<Self, PlaceError> {
        let mut context = self.clone();
        context.capacity[self.fast] = context.capacity[self.fast].min(bytes);
        context.checked()
    }

    /// The same with all fast memory there is.
    pub(crate) fn without_budget(&self) -> Self {
        let mut context = self.clone();
        context.capacity[self.fast] = self.machine.memories[self.fast].capacity_bytes.value as f64;
        context
    }

    fn checked(self) -> Result<Self, PlaceError> {
        let (footprint, room) = (self.footprint(), self.capacity.iter().sum::<f64>());
        if footprint <= room {
            return Ok(self);
        }
        let text = |bytes: f64| format_bytes(round_to_u64(bytes));
        let less = self.capacity[self.fast] < self.machine.memories[self.fast].capacity_bytes.value as f64;
        let hint = if less {
            "give more fast memory, or allow more memories"
        } else {
            "allow more memories, or take a machine with more"
        };
        Err(PlaceError::TooLarge {
            footprint: text(footprint),
            nodes: self.names(&self.nodes).join(", "),
            room: text(room),
            short: text(footprint - room),
            hint: hint.to_owned(),
        })
    }

    /// Bytes of all objects.
    pub fn footprint(&self) -> f64 {
        self.fixed.footprint
    }

    /// Bytes of one object.
    pub fn size(&self, object: usize) -> f64 {
        self.fixed.sizes[object]
    }

    /// Objects by how much is waited for them per byte that they take, most first.
    pub(crate) fn densest_in_bytes(&self) -> &[usize] {
        &self.fixed.densest[0]
    }

    /// Objects by how much is waited for them per byte of their traffic, most first.
    pub(crate) fn densest_in_traffic(&self) -> &[usize] {
        &self.fixed.densest[1]
    }

    /// Name of a memory.
    pub fn name(&self, node: usize) -> &'a str {
        &self.machine.memories[node].name
    }

    /// Names of memories.
    pub fn names(&self, nodes: &[usize]) -> Vec<String> {
        nodes.iter().map(|node| self.name(*node).to_owned()).collect()
    }

    /// Position of a memory that may be used.
    ///
    /// # Errors
    /// A name that is unknown or left out by the request.
    pub fn node(&self, name: &str) -> Result<usize, PlaceError> {
        let known = |nodes: &[usize]| self.names(nodes).join(", ");
        let Some(node) = self.machine.memory_index(name) else {
            return Err(PlaceError::UnknownNode {
                machine: self.machine.name.clone(),
                name: name.to_owned(),
                known: known(&self.nodes),
            });
        };
        if self.nodes.contains(&node) {
            return Ok(node);
        }
        Err(PlaceError::NotAllowed { node: name.to_owned(), allowed: known(&self.nodes) })
    }

    /// The same action for every object.
    pub fn everywhere(&self, action: &Action) -> Vec<Action> {
        vec![action.clone(); self.profile.objects.len()]
    }

    /// Where the kernel puts every object when this is asked of it, in the order of first touch.
    ///
    /// # Errors
    /// [`PlaceError::DoesNotFit`] when a bind runs out of room; node names that are not allowed.
    pub fn realise(&self, actions: &[Action]) -> Result<Placement, PlaceError> {
        let (deals, deal_of) = self.deals(actions)?;
        let mut filling = Filling::new(self.capacity.clone(), deals);
        let mut rows = vec![vec![0.0; self.capacity.len()]; self.profile.objects.len()];
        for (turn, Piece { object, share }) in self.fixed.filling.iter().enumerate() {
            let bytes = self.size(*object) * share;
            filling
                .place(deal_of[*object], bytes, *share, &mut rows[*object])
                .map_err(|missing| self.no_room(turn, actions, missing))?;
        }
        Ok(Placement::new(rows, self.capacity.len())?)
    }

    /// The different deals among some actions, and by action the position of its own.
    fn deals(&self, actions: &[Action]) -> Result<(Vec<Deal>, Vec<usize>), PlaceError> {
        let (mut deals, mut known) = (Vec::new(), BTreeMap::new());
        let mut deal_of = Vec::with_capacity(actions.len());
        for action in actions {
            let next = deals.len();
            let position = *known.entry(action).or_insert(next);
            if position == next {
                deals.push(self.deal(action)?);
            }
            deal_of.push(position);
        }
        Ok((deals, deal_of))
    }

    /// The kernel's reading of an action.
    fn deal(&self, action: &Action) -> Result<Deal, PlaceError> {
        let mut weights = Vec::new();
        for (name, weight) in action.weights() {
            weights.push((self.node(name)?, f64::from(weight)));
        }
        let turns = match action {
            Action::FirstTouch => vec![Turn { weight: 1.0, zonelist: self.nodes.clone() }],
            Action::Bind(_) => {
                let bound = |node: &usize| weights.iter().any(|(own, _)| own == node);
                vec![Turn { weight: 1.0, zonelist: self.nodes.iter().copied().filter(bound).collect() }]
            }
            Action::PreferMany(_) => {
                let named = |node: &&usize| weights.iter().any(|(own, _)| own == *node);
                let (first, others): (Vec<&usize>, Vec<&usize>) = self.nodes.iter().partition(named);
                vec![Turn { weight: 1.0, zonelist: first.into_iter().chain(others).copied().collect() }]
            }
            Action::Prefer(_) | Action::Interleave(_) | Action::Weighted(_) => weights
                .into_iter()
                .map(|(node, weight)| Turn { weight, zonelist: self.fixed.zonelists[node].clone() })
                .collect(),
        };
        Ok(Deal { turns })
    }

    /// No room for `missing` bytes of the piece of this turn, nor for any later one that must go to the same nodes.
    fn no_room(&self, turn: usize, actions: &[Action], missing: f64) -> PlaceError {
        let object = self.fixed.filling[turn].object;
        let bytes_of = |pieces: &[Piece]| -> f64 {
            let alike = pieces.iter().filter(|piece| actions[piece.object] == actions[object]);
            alike.map(|piece| piece.share * self.size(piece.object)).sum()
        };
        let nodes: Vec<&str> = actions[object].weights().into_iter().map(|(name, _)| name).collect();
        let text = |bytes: f64| format_bytes(round_to_u64(bytes.ceil()));
        PlaceError::DoesNotFit {
            object: self.profile.objects[object].name.clone(),
            nodes: nodes.join(", "),
            bound: text(bytes_of(&self.fixed.filling)),
            short: text(missing + bytes_of(&self.fixed.filling[turn + 1..])),
        }
    }
}

/// Objects by waiting over what they use, most first.
fn densest(predictor: &Predictor, uses: &[f64]) -> Vec<usize> {
    let density = |(object, usage): (usize, &f64)| predictor.stall_per_ns(object) / usage.max(f64::MIN_POSITIVE);
    let mut keyed: Vec<(f64, usize)> = uses.iter().enumerate().map(|each| (density(each), each.0)).collect();
    keyed.sort_by(|a, b| b.0.total_cmp(&a.0));
    keyed.into_iter().map(|(_, object)| object).collect()
}

/// Allowed nodes in the order in which the kernel tries them for a page meant for `node`: the node
/// itself, then by distance from the socket that it hangs on.
fn zonelist(machine: &Machine, socket: usize, allowed: &[usize], node: usize) -> Vec<usize> {
    let home = machine.socket_index(&machine.memories[node].socket).unwrap_or(socket);
    let near = machine.memories_by_distance(home);
    // A node that only the program's own socket reaches still is somewhere to go.
    let far = allowed.iter().filter(|other| !near.contains(other));
    let others = near.iter().filter(|other| allowed.contains(other)).chain(far);
    [node].into_iter().chain(others.copied().filter(|other| *other != node)).collect()
}
