//! The program to be: where it is, what it is, and the environment that it gets.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use object::Endianness;
use object::read::elf::{FileHeader, ProgramHeader};
use tierloom_linux::LinuxError;
use tierloom_model::Warning;
use tierloom_wire::REGION_VARIABLE;

use crate::error::LaunchError;
use tierloom_binary::image::{Image, Wants};

const PRELOAD_VARIABLE: &str = "LD_PRELOAD";
/// The shared runtime of `AddressSanitizer` refuses to start behind another library unless told not to
/// look; behind ours, which passes every call on, it works.
const ASAN_VARIABLE: &str = "ASAN_OPTIONS";
const ASAN_ANYWHERE: &str = "verify_asan_link_order=0";

/// The program, before it runs.
#[derive(Debug)]
pub struct Program {
    typed: String,
    path: PathBuf,
    kind: Kind,
}

/// What the file is, as far as it decides whether the preload library can come in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// An ELF program that the loader starts, or a script, which is its interpreter's business.
    Usual,
    /// An ELF program without a loader.
    Static,
    /// It runs with the rights of its owner; the loader takes no library from us.
    SetUid,
}

impl Program {
    /// Looks the program up as `execvp` will.
    pub fn find(command: &[OsString]) -> Result<Self, LaunchError> {
        let program = command.first().filter(|program| !program.is_empty()).ok_or(LaunchError::NoCommand)?;
        let typed = program.to_string_lossy().into_owned();
        let path = locate(program).ok_or_else(|| LaunchError::NotFound { program: typed.clone() })?;
        Ok(Self { typed, kind: kind_of(&path), path })
    }

    /// The file that will run.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The kernel's refusal to execute it, with a remedy.
    pub fn not_executable(&self, source: LinuxError) -> LaunchError {
        let program = self.typed.clone();
        let hint = match source.source.kind() {
            ErrorKind::NotFound => "its interpreter (first line of a script, or the loader of an ELF file) is missing",
            ErrorKind::PermissionDenied => "make it executable with `chmod +x`; a folder is not a program",
            _ => "see whether it runs without Tierloom",
        };
        LaunchError::NotExecutable { program, hint, source }
    }

    /// What a reader must know about objects in this program.
    pub fn warning(&self, preload: bool, attached: bool) -> Option<Warning> {
        let program = self.typed.clone();
        match (preload, self.kind) {
            _ if attached => None,
            (false, _) => Some(Warning::NoLibrary),
            (true, Kind::Static) => Some(Warning::StaticProgram { program }),
            (true, Kind::SetUid) => Some(Warning::SetIdProgram { program }),
            (true, Kind::Usual) => Some(Warning::LibraryNotLoaded { program }),
        }
    }
}

fn locate(program: &OsStr) -> Option<PathBuf> {
    let path = Path::new(program);
    if path.components().count() > 1 || path.is_absolute() || program.as_encoded_bytes().contains(&b'/') {
        return path.exists().then(|| path.to_owned());
    }
    let folders = env::var_os("PATH").unwrap_or_else(|| "/bin:/usr/bin".into());
    env::split_paths(&folders).map(|folder| folder.join(path)).find(|file| file.is_file())
}

fn kind_of(path: &Path) -> Kind {
    const SET_ID: u32 = 0o6000;
    let owned = fs::metadata(path).is_ok_and(|status| status.permissions().mode() & SET_ID != 0);
    match Image::read(path, Wants::Headers) {
        _ if owned => Kind::SetUid,
        Ok(image) if is_static(&image) == Some(true) => Kind::Static,
        _ => Kind::Usual,
    }
}

/// Whether an ELF program names no loader; `None` for other files.
fn is_static(image: &Image) -> Option<bool> {
    let header = object::elf::FileHeader64::<Endianness>::parse(image).ok()?;
    let endian = header.endian().ok()?;
    let segments = header.program_headers(endian, image).ok()?;
    Some(!segments.iter().any(|segment| segment.p_type(endian) == object::elf::PT_INTERP))
}

/// The preload library, if it is there.
pub fn existing(path: &Path) -> Result<&Path, LaunchError> {
    if path.is_file() { Ok(path) } else { Err(LaunchError::NoPreload { path: path.to_owned() }) }
}

/// The caller's environment with the request's additions, the preload library and the file that it shares with us.
pub fn environment(added: &[(OsString, OsString)], preload: Option<&Path>, shared: &Path) -> Vec<(OsString, OsString)> {
    let mut variables: Vec<(OsString, OsString)> = env::vars_os().collect();
    for (name, value) in added {
        set(&mut variables, name, value.clone());
    }
    let Some(preload) = preload else { return variables };
    // An absolute path: the program may change its folder and start others.
    let mut libraries = std::path::absolute(preload).unwrap_or_else(|_| preload.to_owned()).into_os_string();
    if let Some(others) = value_of(&variables, PRELOAD_VARIABLE) {
        libraries.push(":");
        libraries.push(others);
    }
    let mut asan = value_of(&variables, ASAN_VARIABLE).map(OsStr::to_owned).unwrap_or_default();
    asan.push(if asan.is_empty() { "" } else { ":" });
    asan.push(ASAN_ANYWHERE);
    set(&mut variables, OsStr::new(PRELOAD_VARIABLE), libraries);
    set(&mut variables, OsStr::new(ASAN_VARIABLE), asan);
    set(&mut variables, OsStr::new(REGION_VARIABLE), shared.as_os_str().to_owned());
    variables
}

fn value_of<'a>(variables: &'a [(OsString, OsString)], name: &str) -> Option<&'a OsStr> {
    variables.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_os_str())
}

fn set(variables: &mut Vec<(OsString, OsString)>, name: &OsStr, value: OsString) {
    variables.retain(|(known, _)| known != name);
    variables.push((name.to_owned(), value));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found_as_a_shell_finds_them() {
        assert_eq!(Program::find(&["sh".into()]).unwrap().kind, Kind::Usual);
        assert!(Program::find(&["/bin/sh".into()]).is_ok());
        assert!(matches!(Program::find(&["no-such-program".into()]), Err(LaunchError::NotFound { .. })));
        assert!(matches!(Program::find(&["./sh".into()]), Err(LaunchError::NotFound { .. })));
        assert!(matches!(Program::find(&[]), Err(LaunchError::NoCommand)));
        assert!(matches!(Program::find(&["".into()]), Err(LaunchError::NoCommand)));
    }

    #[test]
    fn our_library_comes_first_and_others_stay() {
        let added = ["LD_PRELOAD=/other.so", "X=1", "ASAN_OPTIONS=a=1"]
            .map(|word| word.split_once('=').map(|(name, value)| (name.into(), value.into())).unwrap());
        let variables = environment(&added, Some(Path::new("/ours.so")), Path::new("/region"));
        let values = |wanted: &str| -> Vec<OsString> {
            variables.iter().filter(|(name, _)| name == wanted).map(|(_, value)| value.clone()).collect()
        };
        assert_eq!(values("LD_PRELOAD"), ["/ours.so:/other.so"]);
        assert_eq!(values(REGION_VARIABLE), ["/region"]);
        assert_eq!(values("X"), ["1"]);
        assert_eq!(values("ASAN_OPTIONS"), ["a=1:verify_asan_link_order=0"]);
    }

    #[test]
    fn only_programs_without_a_loader_are_static() {
        let told = |path: &Path| is_static(&Image::read(path, Wants::Headers).unwrap());
        assert_eq!(told(&env::current_exe().unwrap()), Some(false));
        assert_eq!(told(Path::new("/etc/passwd")), None);
    }
}
