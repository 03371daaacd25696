//! A script whose execution blocks until it is released: fcntl(2), F_SETLEASE.
// There is no safe wrapper for leases.
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

/// A script with a lease on it: execve waits until the lease is dropped, or for
/// 45 seconds, after which the kernel breaks it.
pub(crate) struct LeasedScript {
    folder: tempfile::TempDir,
    lease: Option<File>,
}

impl LeasedScript {
    /// `None`: leases are not supported here.
    pub(crate) fn new(script: &str) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let everybody = fs::Permissions::from_mode(0o755);
        fs::set_permissions(folder.path(), everybody.clone()).unwrap();
        let path = folder.path().join("script");
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&path, everybody).unwrap();
        let file = File::open(&path).unwrap();
        // The kernel reports a break by a signal, and the default one would
        // kill the test.
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

    /// Drops the lease, so that the script can be executed.
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
