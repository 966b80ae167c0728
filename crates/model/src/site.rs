//! How an object is found again in another run: by who allocated it, by its symbol, by its file.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// How to find an object again in another run.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Site {
    /// Call stack of the allocation, innermost frame first.
    Stack(Vec<Frame>),
    /// Symbol of a static array, with the module that holds it.
    Symbol {
        /// File name of the executable or library.
        module: String,
        /// Name in the symbol table.
        symbol: String,
    },
    /// Path of a mapped file.
    File(String),
    /// Only a name: profiles that were derived on paper, arenas.
    Name(String),
}

/// Whether a mapping's path is that of a file, and not of a device or of memory that the kernel keeps a name for.
pub fn is_on_disk(path: &str) -> bool {
    const KERNELS: [&str; 5] = ["//", "/dev/", "/memfd:", "/SYSV", "/anon_hugepage"];
    path.starts_with('/') && !KERNELS.iter().any(|name| path.starts_with(name))
}

/// A return address that survives address-space randomisation.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Frame {
    /// File name of the executable or library.
    pub module: String,
    /// Build id in hexadecimal; empty when the module has none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub build_id: String,
    /// Offset of the return address in the module's virtual addresses.
    pub offset: u64,
    /// Function, where symbols exist; of functions that were inlined here, the innermost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    /// `file:line`, where line tables exist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<String>,
    /// The functions that this one was inlined into, nearest first; none where it was called.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inlined_into: Vec<InlinedInto>,
}

/// A function with another one inlined into it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct InlinedInto {
    /// Its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    /// `file:line` of the call that was inlined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<String>,
}

/// `module@build_id+0xoffset`, as plans spell a frame.
impl fmt::Display for Frame {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}@{}+{:#x}", self.module, self.build_id, self.offset)
    }
}

impl FromStr for Frame {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` is not a frame; write module@build-id+0xoffset");
        let (rest, offset) = text.rsplit_once("+0x").ok_or_else(wrong)?;
        let (module, build_id) = rest.rsplit_once('@').ok_or_else(wrong)?;
        let offset = u64::from_str_radix(offset, 16).map_err(|_| wrong())?;
        Ok(Self { module: module.to_owned(), build_id: build_id.to_owned(), offset, ..Self::default() })
    }
}
