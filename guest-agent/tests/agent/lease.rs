//! A script that nobody can execute for as long as somebody wants: fcntl(2),
//! F_SETLEASE.
// There is no safe call for a lease.
#![allow(unsafe_code)]

use std::{
    fs::{self, File},
    os::{
        fd::{AsRawFd, RawFd},
        unix::fs::PermissionsExt,
    },
};

/// Of `linux/fcntl.h`.
const F_SETSIG: libc::c_int = 10;

/// A script with a lease on it: to execute it waits until the lease is dropped,
/// or for 45 seconds, after which the kernel takes it away.
pub(crate) struct Leased {
    folder: tempfile::TempDir,
    lease: Option<File>,
}

impl Leased {
    /// None: there are no leases here.
    pub(crate) fn new(script: &str) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let everybody = fs::Permissions::from_mode(0o755);
        fs::set_permissions(folder.path(), everybody.clone()).unwrap();
        let path = folder.path().join("script");
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&path, everybody).unwrap();
        let file = File::open(&path).unwrap();
        // What tells of a break is a signal, and the usual one would end us.
        control(file.as_raw_fd(), F_SETSIG, libc::SIGURG).unwrap();
        if let Err(error) = control(file.as_raw_fd(), libc::F_SETLEASE, libc::F_WRLCK) {
            println!("skipped: no lease on {}: {error}", path.display());
            return None;
        }
        Some(Self {
            folder,
            lease: Some(file),
        })
    }

    pub(crate) fn path(&self) -> String {
        self.folder.path().join("script").to_str().unwrap().into()
    }

    /// Lets everybody execute it.
    pub(crate) fn release(&mut self) {
        self.lease = None;
    }
}

fn control(file: RawFd, command: libc::c_int, argument: libc::c_int) -> std::io::Result<()> {
    // SAFETY: these commands take a number, and no memory.
    match unsafe { libc::fcntl(file, command, argument) } {
        -1 => Err(std::io::Error::last_os_error()),
        _ => Ok(()),
    }
}
