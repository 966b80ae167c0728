//! Who is at the other end of a local socket.

use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;

/// Whether this user is at the other end, or root. The kernel noted it when the connection was made.
pub fn is_same_user(stream: &UnixStream) -> bool {
    peer(stream).is_some_and(|uid| uid == own() || uid == 0)
}

/// Whether we are root.
pub fn is_root() -> bool {
    own() == 0
}

fn own() -> u32 {
    // SAFETY: no arguments, and it cannot fail.
    unsafe { libc::geteuid() }
}

fn peer(stream: &UnixStream) -> Option<u32> {
    let mut found = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let mut bytes = libc::socklen_t::try_from(size_of_val(&found)).ok()?;
    let (level, option) = (libc::SOL_SOCKET, libc::SO_PEERCRED);
    // SAFETY: both pointers are to values of the types and sizes that the call fills.
    let failed =
        unsafe { libc::getsockopt(stream.as_raw_fd(), level, option, (&raw mut found).cast(), &raw mut bytes) };
    (failed == 0).then_some(found.uid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ends_of_a_pair_are_this_user() {
        let (one, other) = UnixStream::pair().unwrap();
        assert_eq!((peer(&one), peer(&other)), (Some(own()), Some(own())));
        assert!(is_same_user(&one));
    }
}
