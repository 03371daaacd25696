//! Files in memory, without a name: memfd_create(2).

use std::{
    fs::File,
    io::{self, Seek as _, Write as _},
};

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};

/// Creates a file with these contents, at its start.
pub(crate) fn memory_file(name: &str, contents: &[u8]) -> io::Result<File> {
    create(name, contents, MemfdFlags::CLOEXEC)
}

/// Same, and nobody can change it any more.
pub(crate) fn sealed_memory_file(name: &str, contents: &[u8]) -> io::Result<File> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let file = create(name, contents, flags)?;
    let seals = SealFlags::WRITE | SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL;
    fcntl_add_seals(&file, seals)?;
    Ok(file)
}

fn create(name: &str, contents: &[u8], flags: MemfdFlags) -> io::Result<File> {
    let mut file = File::from(memfd_create(name, flags)?);
    file.write_all(contents)?;
    file.rewind()?;
    Ok(file)
}
