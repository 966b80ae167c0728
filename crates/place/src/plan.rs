//! From the policy that was chosen to rules that a person can read and edit, and back.

use tierloom_model::units::round_to_u64;
use tierloom_model::{
    Action, Comparison, FORMAT_VERSION, Machine, Memory, Object, ObjectKind, Plan, PlanMemory, PlanTag, PolicyResult,
    Predicted, Prediction, Profile, Rule, RuleOptions, Selector, Site,
};

use crate::bandwidth::path_gb_s;

/// The plan of one policy of a comparison.
///
/// One rule per object, by its allocation site; where all objects are treated alike, none: then that
/// is what the plan does with all memory. Otherwise memory that no rule selects gets what the policy
/// asks for the largest arena, which no rule can select; without one it is left to first touch: the
/// profile says nothing about it, and it is small.
///
/// `None` when the comparison has no such policy, or it cannot be used.
pub fn plan_from(machine: &Machine, profile: &Profile, comparison: &Comparison, policy: &str) -> Option<Plan> {
    let result = comparison.policies.iter().find(|result| result.policy == policy)?;
    let prediction = result.outcome.as_ref().ok()?;
    let (default, rules) = rules(profile, result);
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

fn rules(profile: &Profile, result: &PolicyResult) -> (Action, Vec<Rule>) {
    if let Some(first) = result.actions.first()
        && result.actions.iter().all(|action| action == first)
    {
        return (first.clone(), Vec::new());
    }
    let rule = |(object, action): (&Object, &Action)| Rule {
        object: object.name.clone(),
        size_bytes: object.size_bytes,
        select: selector(&object.site),
        place: action.clone(),
        options: RuleOptions::default(),
    };
    let placed = || profile.objects.iter().zip(&result.actions);
    let arenas = placed().filter(|(object, _)| object.kind == ObjectKind::Arena);
    let default = arenas.max_by_key(|(object, _)| object.size_bytes).map_or(Action::FirstTouch, |(_, own)| own.clone());
    (default, placed().filter(|(object, _)| object.kind != ObjectKind::Arena).map(rule).collect())
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
