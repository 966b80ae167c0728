//! Of a long run only some stretches of time keep what samples found on the stack: what callers count is then seen in these,
//! and taken to go on alike in the others.
#![allow(clippy::expect_used, reason = "a recording that is not there should stop the test")]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use tierloom_analysis::analyse;
use tierloom_binary::search::Search;
use tierloom_recording::Recording;

/// Accesses by the name of the object, of all that has some.
fn accesses(recording: &Recording, folder: &Path) -> BTreeMap<String, f64> {
    let (profile, _) = analyse(recording, &Search::new(&recording.binaries, &[folder.into()]));
    let counted = profile.objects.iter().filter_map(|one| Some((one.name.clone(), one.accesses.as_ref()?.count)));
    counted.filter(|(_, count)| *count > 0.0).collect()
}

#[test]
fn half_of_the_stacks_show_nearly_as_much_as_all() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/recordings/kept/callers-O2");
    let whole = Recording::from_bytes(&fs::read(folder.join("recording")).expect("it is kept")).expect("it is whole");
    let mut thinned = whole.clone();
    thinned.stack_tops.retain(|top| (top.time_ns >> 27).is_multiple_of(2));
    let without = Recording { stack_tops: Vec::new(), ..whole.clone() };
    assert!(thinned.stack_tops.len() < whole.stack_tops.len() * 2 / 3);
    let (all, half, none) = (accesses(&whole, &folder), accesses(&thinned, &folder), accesses(&without, &folder));
    let total = |found: &BTreeMap<String, f64>| found.values().sum::<f64>();
    for (name, count) in &all {
        let other = half.get(name).copied().unwrap_or(0.0);
        assert!((other - count).abs() < 0.1 * total(&all), "{name}: {other:.3e}, with all stacks {count:.3e}");
    }
    assert!((total(&half) / total(&all) - 1.0).abs() < 0.1, "{} of {}", total(&half), total(&all));
    assert!((total(&none) / total(&all) - 1.0).abs() > 0.2, "stacks are what tells: {}", total(&none) / total(&all));
}
