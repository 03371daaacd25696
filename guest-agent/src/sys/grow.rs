use rustix::{
    fd::{AsRawFd as _, OwnedFd},
    fs::fstatfs,
    io::Errno,
};

/// Grows a mounted ext4 file system to a size in bytes: `EXT4_IOC_RESIZE_FS`. Does nothing
/// if it has that size.
pub(crate) fn grow_file_system(root: &OwnedFd, size: u64) -> Result<(), Errno> {
    const EXT4_IOC_RESIZE_FS: libc::c_ulong = 0x4008_6610;
    let block_size = u64::try_from(fstatfs(root)?.f_bsize).unwrap_or(0);
    let blocks = size.checked_div(block_size).ok_or(Errno::INVAL)?;
    // SAFETY: the kernel reads one number, which is there.
    let result = unsafe {
        libc::syscall(
            libc::SYS_ioctl,
            root.as_raw_fd(),
            EXT4_IOC_RESIZE_FS,
            &raw const blocks,
        )
    };
    super::check(result).map(|_| ())
}
