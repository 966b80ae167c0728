//! The root folder below which `/proc` and `/sys` are read.

use std::fs;
use std::path::{Path, PathBuf};

use crate::error::LinuxError;

/// Where `/proc` and `/sys` are: `/` on the machine itself, a folder for a recorded machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Root(PathBuf);

/// A file of `/proc` or `/sys` that does not hold what the kernel writes there: a damaged recording.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}: `{text}` is not {wanted}\nhint: record the machine's /sys again", .path.display())]
pub struct Damaged {
    /// Which.
    pub path: PathBuf,
    /// What it begins with.
    pub text: String,
    /// What should be there.
    pub wanted: &'static str,
}

impl Default for Root {
    fn default() -> Self {
        Self(PathBuf::from("/"))
    }
}

impl Root {
    /// A root at this folder.
    pub fn at(folder: impl Into<PathBuf>) -> Self {
        Self(folder.into())
    }

    /// Where a path of the machine is below the root.
    pub fn path(&self, path: &str) -> PathBuf {
        let file: &Path = path.trim_start_matches('/').as_ref();
        self.0.join(file)
    }

    /// A file below the root, as text without white space or NULs around it (old kernels and recorders put one at the
    /// end); `None` where it cannot be read.
    pub fn text(&self, path: &str) -> Option<String> {
        let file: &Path = path.trim_start_matches('/').as_ref();
        let text = fs::read_to_string(self.0.join(file)).ok()?;
        Some(text.trim_matches(|character: char| character.is_whitespace() || character == '\0').to_owned())
    }

    /// Writes a file below the root.
    ///
    /// # Errors
    /// It is not there, or may not be written.
    pub fn write(&self, path: &str, text: &str) -> Result<(), LinuxError> {
        fs::write(self.path(path), text).map_err(|error| LinuxError::new("write", path, error))
    }

    /// A number in a file below the root.
    pub fn number(&self, path: &str) -> Option<i64> {
        self.text(path)?.parse().ok()
    }

    /// A whole number in a file below the root, decimal or `0x` hexadecimal; `None` where there is no such file.
    ///
    /// # Errors
    /// The file holds something else.
    pub fn count(&self, path: &str) -> Result<Option<u64>, Damaged> {
        let Some(text) = self.text(path) else { return Ok(None) };
        let number = match text.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16),
            None => text.parse(),
        };
        number.map(Some).map_err(|_| self.damaged(path, &text, "a whole number"))
    }

    /// The error of a file below the root that does not hold what the kernel writes there.
    pub fn damaged(&self, path: &str, text: &str, wanted: &'static str) -> Damaged {
        let start: String = text.chars().take(40).collect();
        Damaged { path: self.0.join(path.trim_start_matches('/')), text: start, wanted }
    }

    /// Names in a folder below the root, sorted; none where it cannot be read.
    pub fn names(&self, path: &str) -> Vec<String> {
        let folder: &Path = path.trim_start_matches('/').as_ref();
        let entries = fs::read_dir(self.0.join(folder)).into_iter().flatten().flatten();
        let mut names: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort();
        names
    }

    /// CPUs of a list, or of a mask where there is no list, as kernels before 2.6.26 have it; `None` without either.
    pub fn cpus(&self, list: &str, mask: &str) -> Option<Vec<u32>> {
        match self.text(list) {
            Some(text) => Some(parse_list(&text).unwrap_or_default()),
            None => self.text(mask).map(|text| parse_mask(&text).unwrap_or_default()),
        }
    }

    /// CPUs that are online, ascending; CPU 0 alone where the kernel does not say.
    pub fn online_cpus(&self) -> Vec<u32> {
        self.list("/sys/devices/system/cpu/online").unwrap_or_else(|| vec![0])
    }

    /// Memory nodes that are online, ascending: as the kernel lists them, else those with a folder; node 0 alone where
    /// it has no NUMA.
    pub fn online_nodes(&self) -> Vec<u32> {
        let listed = self.list("/sys/devices/system/node/online").unwrap_or_else(|| self.node_folders());
        if listed.is_empty() { vec![0] } else { listed }
    }

    /// Memory nodes that have a folder, ascending.
    pub fn node_folders(&self) -> Vec<u32> {
        let names = self.names("/sys/devices/system/node");
        let mut numbers: Vec<u32> = names.iter().filter_map(|name| name.strip_prefix("node")?.parse().ok()).collect();
        numbers.sort_unstable();
        numbers
    }

    /// Highest rate at which the kernel takes samples, per second and CPU.
    pub fn max_sample_rate(&self) -> Option<u32> {
        self.number("/proc/sys/kernel/perf_event_max_sample_rate")?.try_into().ok()
    }

    /// CPU time between two samples as it is wanted, ns, or the shortest that the kernel allows.
    pub fn sample_period_ns(&self, wanted_ns: u64) -> u64 {
        self.max_sample_rate().map_or(wanted_ns, |most| wanted_ns.max(1_000_000_000 / u64::from(most.max(1))))
    }

    /// How much of `perf_event_open` is closed to users: -1 nothing, 4 (Debian, Ubuntu) all.
    pub fn perf_paranoid(&self) -> Option<i64> {
        self.number("/proc/sys/kernel/perf_event_paranoid")
    }

    fn list(&self, path: &str) -> Option<Vec<u32>> {
        parse_list(&self.text(path)?)
    }
}

/// Numbers of a kernel list such as `0-3,8,10-11` (Documentation/admin-guide/cputopology.rst).
pub fn parse_list(text: &str) -> Option<Vec<u32>> {
    /// No kernel has more CPUs or nodes than this; a longer range is a damaged file.
    const MOST: u32 = 1 << 16;
    let mut numbers = Vec::new();
    for part in text.split(',').filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        if last >= MOST {
            return None;
        }
        numbers.extend(first..=last);
    }
    (!numbers.is_empty()).then_some(numbers)
}

/// Numbers of a kernel mask such as `00000000,000000ff`: 32 bits a word, the highest first.
fn parse_mask(text: &str) -> Option<Vec<u32>> {
    let mut numbers = Vec::new();
    for (word, first) in text.rsplit(',').zip((0..).step_by(32)) {
        let bits = u32::from_str_radix(word.trim(), 16).ok()?;
        numbers.extend((0..32).filter(|bit| bits & (1 << bit) != 0).map(|bit| first + bit));
    }
    Some(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_the_kernel_are_read() {
        assert_eq!(parse_list("0-3,8,10-11"), Some(vec![0, 1, 2, 3, 8, 10, 11]));
        assert_eq!(parse_list("0"), Some(vec![0]));
        assert_eq!(parse_list(""), None);
        assert_eq!(parse_list("0-4294967295"), None);
        assert_eq!(parse_list("a-b"), None);
    }

    #[test]
    fn masks_of_old_kernels_are_read() {
        assert_eq!(parse_mask("00000001,80000003"), Some(vec![0, 1, 31, 32]));
        assert_eq!(parse_mask("0"), Some(vec![]));
        assert_eq!(parse_mask("x"), None);
    }

    #[test]
    fn a_recorded_machine_answers_for_itself() {
        let folder = std::env::temp_dir().join(format!("tierloom-root-{}", std::process::id()));
        fs::create_dir_all(folder.join("sys/devices/system/node")).unwrap();
        fs::write(folder.join("sys/devices/system/node/online"), "0-2\n").unwrap();
        let root = Root::at(&folder);
        assert_eq!(root.online_nodes(), [0, 1, 2]);
        assert_eq!(root.online_cpus(), [0]);
        assert_eq!(root.max_sample_rate(), None);
        assert_eq!(root.names("/sys/devices/system"), ["node"]);
        assert!(root.names("/sys/nowhere").is_empty());
        fs::remove_dir_all(folder).unwrap();
    }
}
