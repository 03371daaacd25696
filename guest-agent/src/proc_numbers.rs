use core::{mem::MaybeUninit, ops::ControlFlow};

use rustix::{fd::OwnedFd, fs::RawDir, io::Errno};

/// Calls `visit` with the number of each process, or of each thread of one, until
/// it breaks. The directory is `/proc` or `/proc/PID/task`.
pub(crate) fn for_each_number(
    directory: &OwnedFd,
    mut visit: impl FnMut(i32) -> ControlFlow<()>,
) -> Result<ControlFlow<()>, Errno> {
    let mut buffer = [MaybeUninit::uninit(); 4096];
    let mut entries = RawDir::new(directory, &mut buffer);
    while let Some(entry) = entries.next() {
        let name = entry?;
        let number = name.file_name().to_str().unwrap_or_default().parse();
        if let Ok(number) = number
            && visit(number).is_break()
        {
            return Ok(ControlFlow::Break(()));
        }
    }
    Ok(ControlFlow::Continue(()))
}
