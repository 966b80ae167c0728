//! The processor of a machine, as it tells itself.

use tierloom_linux::host::host;
use tierloom_linux::root::Root;
use tierloom_model::units;
use tierloom_recording::Processor;

/// The processor of the machine that `root` shows: this one, or a recorded one.
pub fn processor(root: &Root) -> Processor {
    let text = root.text("/proc/cpuinfo").unwrap_or_default();
    let named = text.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    let sizes = (0..8).filter_map(|index| {
        let text = root.text(&format!("/sys/devices/system/cpu/cpu0/cache/index{index}/size"))?;
        units::parse_bytes(&text.trim().replace('K', "KiB").replace('M', "MiB")).ok()
    });
    let named = Processor::new(named.map(|(_, name)| name.trim().to_owned()), sizes.max());
    Processor { host: host(root), highest_khz: highest_khz(root), ..named }
}

/// Of all of them, for some have fast and slow ones.
fn highest_khz(root: &Root) -> Option<u64> {
    let told = |cpu| root.text(&format!("/sys/devices/system/cpu/cpu{cpu}/cpufreq/cpuinfo_max_freq"));
    root.online_cpus().into_iter().filter_map(told).filter_map(|text| text.trim().parse().ok()).max()
}
