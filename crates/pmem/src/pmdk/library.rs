//! The functions of libpmemobj that pools are made of, found at run time.
//!
//! Signatures are those of libpmemobj(7), ABI `LIBPMEMOBJ_1.0`, which PMDK 1.5 to 2.1 keep.
//! `pmemobj_tx_begin` takes no jump buffer from us: functions then return errors instead of jumping
//! (`pmemobj_tx_begin(3)`), which is what a language without `setjmp` needs.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::OnceLock;

use libloading::Library;

use crate::error::PmemError;

/// An object's address in a pool: `PMEMoid` of `libpmemobj/base.h`.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(super) struct Oid {
    pub(super) pool: u64,
    /// From the pool's first byte; 0 is no object.
    pub(super) offset: u64,
}

/// Stage of a transaction in which work is done: `TX_STAGE_WORK` of `libpmemobj/tx_base.h`.
pub(super) const STAGE_WORK: c_int = 1;
/// `POBJ_FLAG_TX_NO_ABORT` of `libpmemobj/base.h`: what fails leaves the transaction open.
pub(super) const NO_ABORT: u64 = 1 << 4;
/// `TX_PARAM_NONE`: no further parameters.
const NO_PARAMETERS: c_int = 0;

/// `PMEMobjpool`: its address is that of the pool's first byte.
pub(super) type PoolPointer = *mut c_void;

/// One member per function, of the same name without its prefix.
#[derive(Debug)]
#[allow(clippy::struct_field_names, reason = "the library's own names")]
pub(super) struct Functions {
    create: unsafe extern "C" fn(*const c_char, *const c_char, usize, u32) -> PoolPointer,
    open: unsafe extern "C" fn(*const c_char, *const c_char) -> PoolPointer,
    check: unsafe extern "C" fn(*const c_char, *const c_char) -> c_int,
    errormsg: unsafe extern "C" fn() -> *const c_char,
    ctl_set: unsafe extern "C" fn(PoolPointer, *const c_char, *mut c_void) -> c_int,
    tx_begin: unsafe extern "C" fn(PoolPointer, *mut c_void, ...) -> c_int,
    pub(super) close: unsafe extern "C" fn(PoolPointer),
    pub(super) root: unsafe extern "C" fn(PoolPointer, usize) -> Oid,
    pub(super) root_size: unsafe extern "C" fn(PoolPointer) -> usize,
    pub(super) persist: unsafe extern "C" fn(PoolPointer, *const c_void, usize),
    pub(super) tx_stage: unsafe extern "C" fn() -> c_int,
    pub(super) tx_abort: unsafe extern "C" fn(c_int),
    pub(super) tx_commit: unsafe extern "C" fn(),
    pub(super) tx_end: unsafe extern "C" fn() -> c_int,
    pub(super) tx_add: unsafe extern "C" fn(*const c_void, usize, u64) -> c_int,
    pub(super) tx_alloc: unsafe extern "C" fn(usize, u64, u64) -> Oid,
    pub(super) tx_free: unsafe extern "C" fn(Oid, u64) -> c_int,
    /// Keeps the code loaded.
    _library: Library,
}

static LOADED: OnceLock<Result<Functions, String>> = OnceLock::new();

/// The library, loaded by the first who asks.
///
/// # Errors
/// It is not installed, or is another one.
pub(super) fn functions() -> Result<&'static Functions, PmemError> {
    let loaded = LOADED.get_or_init(|| Functions::load().map_err(|error| error.to_string()));
    loaded.as_ref().map_err(|why| PmemError::NoLibrary { why: why.clone() })
}

impl Functions {
    fn load() -> Result<Self, libloading::Error> {
        // SAFETY: loading runs the library's initialisers, which set up logging and statistics.
        let library = unsafe { Library::new("libpmemobj.so.1")? };
        // SAFETY: each member has the signature of libpmemobj's header for the function of its name;
        // the pointers are used no longer than `_library` lives, which is for ever.
        unsafe {
            Ok(Self {
                create: *library.get(b"pmemobj_create\0")?,
                open: *library.get(b"pmemobj_open\0")?,
                check: *library.get(b"pmemobj_check\0")?,
                errormsg: *library.get(b"pmemobj_errormsg\0")?,
                ctl_set: *library.get(b"pmemobj_ctl_set\0")?,
                tx_begin: *library.get(b"pmemobj_tx_begin\0")?,
                close: *library.get(b"pmemobj_close\0")?,
                root: *library.get(b"pmemobj_root\0")?,
                root_size: *library.get(b"pmemobj_root_size\0")?,
                persist: *library.get(b"pmemobj_persist\0")?,
                tx_stage: *library.get(b"pmemobj_tx_stage\0")?,
                tx_abort: *library.get(b"pmemobj_tx_abort\0")?,
                tx_commit: *library.get(b"pmemobj_tx_commit\0")?,
                tx_end: *library.get(b"pmemobj_tx_end\0")?,
                tx_add: *library.get(b"pmemobj_tx_xadd_range_direct\0")?,
                tx_alloc: *library.get(b"pmemobj_tx_xalloc\0")?,
                tx_free: *library.get(b"pmemobj_tx_xfree\0")?,
                _library: library,
            })
        }
    }

    /// A new pool; 0 bytes mean all of a device.
    pub(super) fn create_pool(&self, path: &Path, bytes: usize) -> Result<PoolPointer, PmemError> {
        let name = text(path)?;
        // SAFETY: both are strings with a zero at their end; the library copies them.
        let pool = unsafe { (self.create)(name.as_ptr(), LAYOUT.as_ptr(), bytes, 0o666) };
        if pool.is_null() { Err(self.refusal(path)) } else { Ok(pool) }
    }

    pub(super) fn open_pool(&self, path: &Path) -> Result<PoolPointer, PmemError> {
        let name = text(path)?;
        // SAFETY: as in `create_pool`.
        let pool = unsafe { (self.open)(name.as_ptr(), LAYOUT.as_ptr()) };
        if pool.is_null() { Err(self.refusal(path)) } else { Ok(pool) }
    }

    /// Whether the library finds its own part of the file sound.
    pub(super) fn is_consistent(&self, path: &Path) -> Result<bool, PmemError> {
        let name = text(path)?;
        // SAFETY: as in `create_pool`.
        match unsafe { (self.check)(name.as_ptr(), LAYOUT.as_ptr()) } {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(self.refusal(path)),
        }
    }

    /// Opens pools in private memory from now on, or as usual again: a look changes nothing.
    pub(super) fn look_only(&self, looking: bool) {
        let mut value = c_int::from(looking);
        // SAFETY: the entry point takes a pointer to an int (pmemobj_ctl_set(3), copy_on_write.at_open).
        unsafe { (self.ctl_set)(std::ptr::null_mut(), c"copy_on_write.at_open".as_ptr(), (&raw mut value).cast()) };
    }

    /// Opens a transaction of this thread; the error number where that fails.
    pub(super) fn begin(&self, pool: PoolPointer) -> c_int {
        // SAFETY: `pool` is open; without a jump buffer the library returns from everything.
        unsafe { (self.tx_begin)(pool, std::ptr::null_mut(), NO_PARAMETERS) }
    }

    /// The library's words about what this thread asked for last.
    pub(super) fn words(&self) -> String {
        // SAFETY: the call has no parameters; the string is this thread's until its next call.
        let said = unsafe { (self.errormsg)() };
        if said.is_null() {
            return "no reason given".to_owned();
        }
        // SAFETY: not null, so a string with a zero at its end.
        unsafe { CStr::from_ptr(said) }.to_string_lossy().into_owned()
    }

    pub(super) fn refusal(&self, path: &Path) -> PmemError {
        PmemError::Library { path: path.display().to_string(), why: self.words() }
    }
}

/// What our pools are called in libpmemobj's header.
const LAYOUT: &CStr = c"tierloom";

fn text(path: &Path) -> Result<CString, PmemError> {
    CString::new(path.as_os_str().as_bytes()).map_err(|_| PmemError::Request {
        what: format!("{} holds a zero byte", path.display()),
        hint: "no file has such a name",
    })
}
