//! What cold caches cost windows that count from their beginning.
//!
//! Counting begins after a millisecond, in which caches become as warm as they were. A window that ends before, because its
//! code does or because it comes to a system call, has nothing else to count. Longer ones tell how much time that millisecond
//! lost against the same work later: those that began in the same stratum, or all where these are few.

use std::collections::BTreeMap;

use tierloom_recording::WarmUp;

use crate::attribution::Observed;
use crate::attribution::windows::CountedWindow;
use crate::frequency::strata::{Stratum, stratum_at};

/// Windows of a stratum that tell it. Assumed.
const FEWEST: usize = 5;
/// Of a window no more than this is deducted: something it counted took its time. Assumed.
const MOST: f64 = 0.5;

/// Time that is lost in the beginning.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct WarmUps {
    by_stratum: BTreeMap<Stratum, f64>,
    usual_ns: f64,
}

impl WarmUps {
    /// As windows tell.
    pub(crate) fn of(observed: &Observed, windows: &[&CountedWindow]) -> Self {
        let told = windows.iter().filter_map(|window| match window.warm_up {
            WarmUp::Longer(ns) => Some((stratum_at(observed, window.entered), ns as f64)),
            WarmUp::Counted | WarmUp::LeftOut => None,
        });
        Self::told(told)
    }

    fn told(told: impl Iterator<Item = (Stratum, f64)>) -> Self {
        let (mut by_stratum, mut all): (BTreeMap<Stratum, Vec<f64>>, Vec<f64>) = Default::default();
        for (stratum, ns) in told {
            by_stratum.entry(stratum).or_default().push(ns);
            all.push(ns);
        }
        let enough =
            |(stratum, mut own): (Stratum, Vec<f64>)| (own.len() >= FEWEST).then(|| (stratum, median(&mut own)));
        Self { by_stratum: by_stratum.into_iter().filter_map(enough).collect(), usual_ns: median(&mut all) }
    }

    /// Share of a window's time that it lost so.
    pub(crate) fn share(&self, stratum: Stratum, window: &CountedWindow) -> f64 {
        let lost_ns = self.by_stratum.get(&stratum).copied().unwrap_or(self.usual_ns);
        if window.warm_up == WarmUp::Counted { (lost_ns / window.duration_ns).min(MOST) } else { 0.0 }
    }
}

/// 0 of nothing.
fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use tierloom_binary::code::FunctionId;
    use tierloom_recording::Outcome;

    use super::*;
    use crate::attribution::touches::Touches;

    fn window(duration_ns: f64, warm_up: WarmUp) -> CountedWindow {
        CountedWindow {
            entered: None,
            stands_for_ns: 0.0,
            duration_ns,
            with_faults_ns: duration_ns,
            warm_up,
            outcome: Outcome::Whole,
            executions: BTreeMap::new(),
            touches: Touches::default(),
        }
    }

    #[test]
    fn a_window_loses_what_others_of_its_stratum_lost_and_as_usual_where_they_are_few() {
        let [many, few, none] = [1, 2, 3].map(|function| Some((FunctionId::new(function), None)));
        let warm_ups = WarmUps::told([(many, 300.0); 6].into_iter().chain([(few, 100.0); 4]));
        let share = |stratum, warm_up| warm_ups.share(stratum, &window(1000.0, warm_up));
        assert!([many, few, none].iter().all(|stratum| (share(*stratum, WarmUp::Counted) - 0.3).abs() < 1e-9));
        assert!(share(many, WarmUp::LeftOut) < 1e-9, "it is left out already");
        assert!((warm_ups.share(many, &window(100.0, WarmUp::Counted)) - MOST).abs() < 1e-9);
        assert!(WarmUps::default().share(many, &window(1000.0, WarmUp::Counted)) < 1e-9, "nothing tells");
    }
}
