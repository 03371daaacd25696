use rustix::io::Errno;

/// Marks every descriptor but 0, 1 and 2 as not for children, whoever opened
/// it: close_range(2).
pub(crate) fn keep_descriptors_from_children() -> Result<(), Errno> {
    const FIRST: libc::c_uint = 3;
    // SAFETY: a flag of descriptors is changed; nothing is closed.
    let result = unsafe {
        libc::syscall(
            libc::SYS_close_range,
            FIRST,
            libc::c_uint::MAX,
            libc::CLOSE_RANGE_CLOEXEC,
        )
    };
    super::check(result).map(|_| ())
}
