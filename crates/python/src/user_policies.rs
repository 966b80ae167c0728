//! Policies that are written in Python: placements for the planner, migration for the simulator.
//!
//! What such a function raises ends the whole request and comes out as it was raised: the first of them is kept
//! beside the policy, since the engines know no exceptions. A policy that has no placement says so in words instead.

use std::sync::{Arc, Mutex, PoisonError};

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use serde::Deserialize;
use tierloom_model::Action;
use tierloom_model::units::round_to_u64;
use tierloom_place::{self as place, Context, PlaceError};
use tierloom_tiering::policy::{Brought, Group, Knob, Move, Policy, View};

use crate::documents::request;

/// The first exception of a policy.
#[derive(Clone, Default)]
pub(crate) struct Raised(Arc<Mutex<Option<PyErr>>>);

impl Raised {
    fn keep(&self, error: PyErr) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
    }

    /// Whether there is one.
    fn is_some(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// The exception, if there was one.
    pub(crate) fn check(&self) -> PyResult<()> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take().map_or(Ok(()), Err)
    }
}

/// A placement policy: a function of the memories that may be used, the fast one, and the bytes that each may take.
pub(crate) struct PlacementPolicy {
    name: String,
    about: String,
    function: Py<PyAny>,
    raised: Raised,
}

impl PlacementPolicy {
    /// From its name, a line on what it does, and the function.
    pub(crate) fn new((name, about, function): (String, String, Py<PyAny>), raised: &Raised) -> Self {
        Self { name, about, function, raised: raised.clone() }
    }

    /// As the planner takes it.
    pub(crate) fn shared(self) -> Arc<dyn place::Policy + Send + Sync> {
        Arc::new(self)
    }
}

/// What a placement policy answers.
#[derive(Deserialize)]
#[serde(untagged)]
enum Told {
    /// By object.
    Actions(Vec<Action>),
    /// Why there is no placement.
    Refused(String),
}

impl place::Policy for PlacementPolicy {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn about(&self) -> String {
        self.about.clone()
    }

    fn actions(&self, context: &Context<'_>) -> Result<Vec<Action>, PlaceError> {
        // One exception is enough: the answer will be that.
        if self.raised.is_some() {
            return Err(PlaceError::Brought { reason: "it raised an exception before".to_owned() });
        }
        let bytes = |node: usize| round_to_u64(context.capacity[node].floor());
        let room = context.nodes.iter().map(|node| (context.name(*node), bytes(*node)));
        let asked = (room.collect::<Vec<(&str, u64)>>(), context.name(context.fast));
        let told = Python::attach(|py| request(&self.function.bind(py).call1(asked)?));
        match told {
            Ok(Told::Actions(actions)) => Ok(actions),
            Ok(Told::Refused(reason)) => Err(PlaceError::Brought { reason }),
            Err(error) => {
                let reason = error.to_string();
                self.raised.keep(error);
                Err(PlaceError::Brought { reason })
            }
        }
    }
}

/// What is told of a migration policy before it runs; `make` starts it, and returns the function that looks.
#[derive(FromPyObject)]
pub(crate) struct MigrationTerms {
    name: String,
    about: String,
    period_s: f64,
    sample_period: f64,
    waits_for_copy: bool,
    shootdowns: f64,
    knobs: Vec<(String, f64)>,
    make: Py<PyAny>,
}

impl MigrationTerms {
    /// What the simulator makes such policies with; exceptions go to `raised`.
    pub(crate) fn brought(self, raised: &Raised) -> Brought {
        let (terms, raised) = (Arc::new(self), raised.clone());
        Brought::new(move || {
            let look = Python::attach(|py| terms.make.call0(py));
            let look = look.map_err(|error| raised.keep(error)).ok();
            Box::new(MigrationPolicy { terms: Arc::clone(&terms), look, raised: raised.clone() })
        })
    }
}

struct MigrationPolicy {
    terms: Arc<MigrationTerms>,
    /// None where it could not be started.
    look: Option<Py<PyAny>>,
    raised: Raised,
}

impl Policy for MigrationPolicy {
    fn name(&self) -> &str {
        &self.terms.name
    }

    fn about(&self) -> &str {
        &self.terms.about
    }

    fn knobs(&self) -> Vec<Knob> {
        let knob =
            |(name, value): &(String, f64)| Knob { name: name.clone(), value: *value, source: "asked".to_owned() };
        self.terms.knobs.iter().map(knob).collect()
    }

    fn waits_for_copy(&self) -> bool {
        self.terms.waits_for_copy
    }

    fn shootdowns(&self) -> f64 {
        self.terms.shootdowns
    }

    fn period_s(&self) -> Option<f64> {
        Some(self.terms.period_s)
    }

    fn sample_period(&self) -> f64 {
        self.terms.sample_period
    }

    fn look(&mut self, view: &View<'_>) -> Vec<Move> {
        // One exception is enough: the answer will be that.
        let Some(look) = self.look.as_ref().filter(|_| !self.raised.is_some()) else { return Vec::new() };
        let moves = Python::attach(|py| moves(look.bind(py), view));
        moves.unwrap_or_else(|error| {
            self.raised.keep(error);
            Vec::new()
        })
    }
}

/// Asks the function: columns go over as the bytes of their numbers, for an array to be laid over them.
fn moves(look: &Bound<'_, PyAny>, view: &View<'_>) -> PyResult<Vec<Move>> {
    let py = look.py();
    let column = |of: &dyn Fn(&Group) -> f64| bytes(py, view.groups.iter().map(of));
    let pages = bytes(py, view.groups.iter().flat_map(|group| group.pages.iter().copied()));
    let region = column(&|group| group.region as f64);
    let rates = (column(&|group| group.reads), column(&|group| group.writes), column(&|group| group.visits));
    let names: Vec<&str> = view.nodes.list.iter().map(|node| node.name.as_str()).collect();
    let low = bytes(py, view.nodes.list.iter().map(|node| node.marks.low));
    let rooms = (bytes(py, view.free.iter().copied()), low, bytes(py, view.latency_ns.iter().copied()));
    let told = look.call1((view.now_s, view.since_s, names, region, pages, rates, rooms))?;
    let told: Vec<(usize, usize, usize, f64)> = told.extract()?;
    Ok(told.into_iter().map(|(group, from, to, pages)| Move { group, from, to, pages }).collect())
}

fn bytes(py: Python<'_>, numbers: impl Iterator<Item = f64>) -> Bound<'_, PyBytes> {
    let bytes: Vec<u8> = numbers.flat_map(f64::to_ne_bytes).collect();
    PyBytes::new(py, &bytes)
}
