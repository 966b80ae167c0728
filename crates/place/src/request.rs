//! What a person asks for, in names, and its translation to positions.

use serde::{Deserialize, Serialize};
use tierloom_model::units::{parse_bytes, round_to_u64};
use tierloom_model::{Machine, Profile};
use tierloom_predict::{Ablated, Predictor, Run, ablated};

use crate::context::Context;
use crate::error::PlaceError;
use crate::policy::Brought;

/// Where a program runs, what memory it may use, and what is wanted.
///
/// Left alone, it asks for the least time on the machine's first socket with all memory in reach.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Request {
    /// Socket where the threads run; the machine's first one by default.
    pub socket: Option<String>,
    /// Threads; as many as the profile saw by default, at most the socket's cores.
    pub threads: Option<u32>,
    /// Memories that may be used; all that the socket reaches by default.
    pub nodes: Option<Vec<String>>,
    /// The memory that is short and dear; the one with the least idle latency by default.
    pub fast: Option<String>,
    /// Most bytes of fast memory; all there is by default.
    pub budget: Option<u64>,
    /// Take the least fast memory that keeps the run time within `1 + max_slowdown` of the least that is found with any
    /// amount of fast memory, instead of the least time within the budget.
    pub max_slowdown: Option<f64>,
    /// Policies that whoever asks has brought along, for `policies` to name.
    #[serde(skip)]
    pub brought: Brought,
    /// Objects that cost no memory, as if they were always in the core's caches; none by default.
    pub ablated: Vec<String>,
    /// Names of the policies to compare; [`crate::policy::USUAL`], which stands for many, by default.
    pub policies: Option<Vec<String>>,
}

/// A request's positions, before the profile is compiled for them.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Positions {
    pub(crate) run: Run,
    pub(crate) nodes: Vec<usize>,
    pub(crate) fast: usize,
}

impl Request {
    /// Finds the names in the machine.
    pub(crate) fn positions(&self, machine: &Machine, profile: &Profile) -> Result<Positions, PlaceError> {
        let socket = self.socket_in(machine)?;
        let nodes = self.nodes_in(machine, socket)?;
        let fast = match &self.fast {
            Some(name) => node_in(machine, socket, name)?,
            None => *nodes.first().ok_or(PlaceError::NoNodes)?,
        };
        if !nodes.contains(&fast) {
            let allowed: Vec<&str> = nodes.iter().map(|node| machine.memories[*node].name.as_str()).collect();
            return Err(PlaceError::NotAllowed {
                node: machine.memories[fast].name.clone(),
                allowed: allowed.join(", "),
            });
        }
        let most = machine.sockets[socket].cores.value;
        let threads = self.threads.unwrap_or_else(|| profile.program.threads.clamp(1, most.max(1)));
        Ok(Positions { run: Run { socket, threads }, nodes, fast })
    }

    /// The profile without the waiting for the objects that cost no memory; `None` where all do.
    ///
    /// # Errors
    /// It has no object of a name.
    pub(crate) fn ablated(&self, profile: &Profile) -> Result<Option<Ablated>, PlaceError> {
        if self.ablated.is_empty() {
            return Ok(None);
        }
        if let Some(name) = self.ablated.iter().find(|name| profile.object_index(name).is_none()) {
            let known: Vec<&str> = profile.objects.iter().map(|object| object.name.as_str()).collect();
            let (profile, name) = (profile.name.clone(), name.clone());
            return Err(PlaceError::UnknownObject { profile, name, known: known.join(", ") });
        }
        Ok(Some(ablated(profile, &self.ablated.iter().map(String::as_str).collect())))
    }

    fn socket_in(&self, machine: &Machine) -> Result<usize, PlaceError> {
        let Some(name) = &self.socket else { return Ok(0) };
        machine.socket_index(name).ok_or_else(|| PlaceError::UnknownSocket {
            machine: machine.name.clone(),
            name: name.clone(),
            known: machine.sockets.iter().map(|socket| socket.name.as_str()).collect::<Vec<_>>().join(", "),
        })
    }

    /// Allowed memories, nearest first.
    fn nodes_in(&self, machine: &Machine, socket: usize) -> Result<Vec<usize>, PlaceError> {
        let near = machine.memories_by_distance(socket);
        let Some(names) = &self.nodes else { return Ok(near) };
        let mut wanted = Vec::new();
        for name in names {
            wanted.push(node_in(machine, socket, name)?);
        }
        Ok(near.into_iter().filter(|node| wanted.contains(node)).collect())
    }

    /// The context of this request.
    pub(crate) fn context<'a>(
        &self,
        machine: &'a Machine,
        profile: &'a Profile,
        predictor: &'a Predictor,
        positions: Positions,
    ) -> Result<Context<'a>, PlaceError> {
        let Positions { run, nodes, fast } = positions;
        Context::new(machine, profile, predictor, run.socket, nodes, fast, self.budget)
    }
}

fn node_in(machine: &Machine, socket: usize, name: &str) -> Result<usize, PlaceError> {
    let names = |nodes: Vec<usize>| {
        nodes.iter().map(|node| machine.memories[*node].name.as_str()).collect::<Vec<_>>().join(", ")
    };
    let near = machine.memories_by_distance(socket);
    match machine.memory_index(name) {
        Some(node) if near.contains(&node) => Ok(node),
        Some(_) => Err(PlaceError::NotReachable {
            node: name.to_owned(),
            socket: machine.sockets[socket].name.clone(),
            reachable: names(near),
        }),
        None => Err(PlaceError::UnknownNode {
            machine: machine.name.clone(),
            name: name.to_owned(),
            known: names((0..machine.memories.len()).collect()),
        }),
    }
}

/// Reads an amount of fast memory: `64GiB`, or `40%` of the program's data.
///
/// # Errors
/// [`PlaceError::BadBudget`] for text that is neither.
pub fn parse_budget(text: &str, footprint_bytes: u64) -> Result<u64, PlaceError> {
    let Some(percent) = text.trim().strip_suffix('%') else {
        return parse_bytes(text).map_err(|problem| PlaceError::BadBudget { problem });
    };
    match percent.trim().parse::<f64>() {
        Ok(share) if (0.0..=100.0).contains(&share) => Ok(round_to_u64(share / 100.0 * footprint_bytes as f64)),
        _ => Err(PlaceError::BadBudget { problem: format!("`{text}` is not a share from 0% to 100%") }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    fn fails(request: &Request) -> String {
        request.positions(&testing::machine(), &testing::small_profile()).unwrap_err().to_string()
    }

    #[test]
    fn names_that_are_none_are_answered_with_those_that_are() {
        let text = fails(&Request { socket: Some("s9".to_owned()), ..Request::default() });
        assert!(text.contains("`s9`") && text.contains("hint: use one of: s0, s1"), "{text}");
        let text = fails(&Request { nodes: Some(vec!["hbm".to_owned()]), ..Request::default() });
        assert!(text.contains("`hbm`") && text.contains("ddr0, ddr1, cxl"), "{text}");
        let text = fails(&Request { nodes: Some(Vec::new()), ..Request::default() });
        assert!(text.contains("no memory may be used"), "{text}");
        let named =
            Request { nodes: Some(vec!["cxl".to_owned()]), fast: Some("ddr0".to_owned()), ..Request::default() };
        assert!(fails(&named).contains("not among those"));
    }

    #[test]
    fn a_memory_out_of_reach_is_named() {
        let mut machine = testing::machine();
        machine.paths.retain(|path| path.from != "s1" || path.to != "ddr0");
        let request =
            Request { socket: Some("s1".to_owned()), nodes: Some(vec!["ddr0".to_owned()]), ..Request::default() };
        let text = request.positions(&machine, &testing::small_profile()).unwrap_err().to_string();
        assert!(text.contains("cannot be reached from socket `s1`") && text.contains("ddr1, cxl"), "{text}");
    }

    #[test]
    fn fast_memory_is_the_nearest_unless_named() {
        let machine = testing::machine();
        let request = Request { socket: Some("s1".to_owned()), ..Request::default() };
        let positions = request.positions(&machine, &testing::small_profile()).unwrap();
        assert_eq!((positions.fast, positions.nodes), (1, vec![1, 0, 2]));
    }

    #[test]
    fn budgets_are_amounts_or_shares() {
        assert_eq!(parse_budget("40%", 1000).unwrap(), 400);
        assert_eq!(parse_budget("1KiB", 1000).unwrap(), 1024);
        assert!(parse_budget("140%", 1000).unwrap_err().to_string().contains("hint: write an amount"));
        assert!(parse_budget("lots", 1000).unwrap_err().to_string().contains("`lots`"));
    }
}
