//! From the policy that was chosen to rules that a person can read and edit, and back.

use tierloom_model::units::round_to_u64;
use tierloom_model::{
    Action, Comparison, FORMAT_VERSION, Machine, Memory, Object, Plan, PlanMemory, PlanTag, PolicyResult, Predicted,
    Prediction, Profile, Rule, RuleOptions, Selector, Site,
};

use crate::bandwidth::path_gb_s;

/// The plan of one policy of a comparison.
///
/// One rule per object, by its allocation site; where all objects are treated alike, none: then that
/// is what the plan does with all memory. Otherwise memory that no rule selects ([`Object::can_be_placed`]) gets what
/// the policy asks for all of it; where that is not one thing, it is left to first touch. Objects that are `named` have rules
/// of their own in any case, for who wants to do something else with them.
///
/// `None` when the comparison has no such policy, or it cannot be used.
pub fn plan_from(
    machine: &Machine,
    profile: &Profile,
    comparison: &Comparison,
    policy: &str,
    named: &[String],
) -> Option<Plan> {
    let result = comparison.policies.iter().find(|result| result.policy == policy)?;
    let prediction = result.outcome.as_ref().ok()?;
    let (default, rules) = rules(profile, result, named);
    Some(Plan {
        kind: PlanTag::Plan,
        version: FORMAT_VERSION,
        machine: machine.name.clone(),
        profile: profile.name.clone(),
        policy: result.policy.clone(),
        nodes: machine.memories.iter().map(|memory| memory.name.clone()).collect(),
        memories: memories(machine, &comparison.socket),
        predicted: predicted(prediction, comparison.threads),
        default,
        rules,
        phases: Vec::new(),
    })
}

/// What the machine's memories are from a socket.
fn memories(machine: &Machine, socket: &str) -> Vec<PlanMemory> {
    let home = machine.socket_index(socket).unwrap_or(0);
    let memory = |(at, memory): (usize, &Memory)| {
        let path = machine.path(home, at);
        PlanMemory {
            name: memory.name.clone(),
            kind: memory.kind,
            near: memory.socket == socket,
            capacity_bytes: memory.capacity_bytes.value,
            idle_ns: path.map(|path| path.idle_ns.value),
            gb_s: path.map(|_| path_gb_s(machine, home, at)).filter(|gb_s| *gb_s > 0.0),
        }
    };
    machine.memories.iter().enumerate().map(memory).collect()
}

fn rules(profile: &Profile, result: &PolicyResult, named: &[String]) -> (Action, Vec<Rule>) {
    let same = same_for_all(&result.actions);
    let rule = |(object, action): (&Object, &Action)| Rule {
        object: object.name.clone(),
        size_bytes: object.size_bytes,
        select: selector(&object.site),
        place: action.clone(),
        options: RuleOptions::default(),
    };
    let has_rule = |object: &Object| object.can_be_placed() && (same.is_none() || named.contains(&object.name));
    let placed = profile.objects.iter().zip(&result.actions).filter(|(object, _)| has_rule(object));
    (default_action(profile, &result.actions), placed.map(rule).collect())
}

/// What becomes of the actions of a policy: an object that no rule can select gets what the plan's default is. That of a
/// placement which was planned before is the same again.
pub(crate) fn as_planned(profile: &Profile, mut actions: Vec<Action>) -> Vec<Action> {
    let default = default_action(profile, &actions);
    let unselected = profile.objects.iter().zip(&mut actions).filter(|(object, _)| !object.can_be_placed());
    unselected.for_each(|(_, action)| *action = default.clone());
    actions
}

/// What is done with memory that no rule selects. It has one policy: a wish for each of several such objects is none.
fn default_action(profile: &Profile, actions: &[Action]) -> Action {
    let unselected = || profile.objects.iter().zip(actions).filter(|(object, _)| !object.can_be_placed());
    let wished = same_for_all(actions).or_else(|| same_for_all(unselected().map(|(_, action)| action)));
    wished.unwrap_or(&Action::FirstTouch).clone()
}

fn same_for_all<'a>(actions: impl IntoIterator<Item = &'a Action>) -> Option<&'a Action> {
    let mut actions = actions.into_iter();
    let first = actions.next()?;
    actions.all(|action| action == first).then_some(first)
}

fn predicted(prediction: &Prediction, threads: u32) -> Predicted {
    Predicted {
        time_s: prediction.time_s,
        low_s: prediction.low_s,
        high_s: prediction.high_s,
        threads,
        bytes: prediction.tiers.iter().map(|tier| round_to_u64(tier.placed_bytes)).collect(),
    }
}

fn selector(site: &Site) -> Selector {
    match site {
        Site::Stack(frames) => Selector::Stack(frames.iter().map(ToString::to_string).collect()),
        Site::Symbol { module, symbol } => Selector::Symbol(format!("{module}:{symbol}")),
        Site::File(path) => Selector::File(path.clone()),
        Site::Name(name) => Selector::Name(name.clone()),
    }
}

/// What a plan asks of the kernel for each object of a profile: the first rule that selects it.
pub fn actions_for(plan: &Plan, profile: &Profile) -> Vec<Action> {
    let action = |object: &Object| {
        let rule = plan.rules.iter().find(|rule| selects(&rule.select, object));
        rule.map_or(&plan.default, |rule| &rule.place).clone()
    };
    profile.objects.iter().map(action).collect()
}

fn selects(select: &Selector, object: &Object) -> bool {
    match select {
        Selector::SizeAtLeast(bytes) => object.addresses() >= *bytes,
        other => *other == selector(&object.site),
    }
}
