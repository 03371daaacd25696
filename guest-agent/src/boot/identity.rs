//! The identity of a VM that was restored from a snapshot.
//!
//! Everything that a hostile process could replace was opened at boot: a file system
//! of its own in the place of `/dev`, `/run` or `/proc` could otherwise block the
//! agent.

use alloc::{format, rc::Rc, string::String};

use rustix::{
    fd::OwnedFd,
    fs::{AtFlags, CWD, Mode, OFlags, openat, unlinkat},
    io::Errno,
    mount::{MoveMountFlags, OpenTreeFlags, move_mount, open_tree},
};

use super::stages;
use crate::{
    clock::set_wall_clock,
    console::Console,
    snapshot::{IdentityControl, NewIdentity},
    sys,
};

/// Gives the guest a new identity, as its PID 1.
pub(super) struct GuestIdentity {
    pub(super) random: OwnedFd,
    /// What could not be opened at boot is reported when it is needed.
    pub(super) boot_id: Result<BootId, Errno>,
    pub(super) console: Rc<Console>,
}

impl IdentityControl for GuestIdentity {
    fn prepare(&mut self) {
        if let Ok(boot_id) = &mut self.boot_id {
            // If it fails, it is tried again later.
            let _ = boot_id.prepare();
        }
    }

    fn renew(&mut self, identity: &NewIdentity<'_>) -> Result<(), Errno> {
        sys::add_entropy(&self.random, &identity.seed)?;
        // A generator that has been seeded before ignores new entropy for minutes.
        sys::reseed(&self.random)?;
        set_wall_clock(identity.wall_time_ns)?;
        stages::set_hostname(identity.hostname)?;
        let written = match &mut self.boot_id {
            Ok(boot_id) => boot_id.replace(identity.boot_id),
            Err(errno) => Err(*errno),
        };
        // Root of the guest can prevent it, for example by unmounting /proc, and
        // deceives only itself. So the VM can be used without it.
        if let Err(errno) = written {
            self.console.error(format_args!(
                "{DIRECTORY}/{FILE} is still that of the snapshot: {errno}"
            ));
        }
        Ok(())
    }
}

/// The boot id that programs in the guest read: random(4).
///
/// The kernel's own cannot be changed. So a file is mounted over it, which has no
/// name any more, and which only the agent can write. A `/proc` that a program mounts itself,
/// for example a container, still shows the kernel's.
pub(super) struct BootId {
    /// A directory of a tmpfs, for the file.
    files: OwnedFd,
    directory: OwnedFd,
    /// The file, once it is mounted. The mount is shared with the mount namespaces
    /// of commands, so a later boot id is only written.
    mounted: Option<OwnedFd>,
}

const FILES: &str = "/run";
const DIRECTORY: &str = "/proc/sys/kernel/random";
const FILE: &str = "boot_id";

/// The length of the line of a UUID.
const UUID_LINE: usize = 37;

impl BootId {
    pub(super) fn open() -> Result<Self, Errno> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Self {
            files: openat(CWD, FILES, flags, Mode::empty())?,
            directory: openat(CWD, DIRECTORY, flags, Mode::empty())?,
            mounted: None,
        })
    }

    /// Mounts a copy of the kernel's boot id, so that a new one need only be written.
    fn prepare(&mut self) -> Result<(), Errno> {
        if self.mounted.is_some() {
            return Ok(());
        }
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let kernels = openat(&self.directory, FILE, flags, Mode::empty())?;
        let mut text = [0; UUID_LINE];
        let count = rustix::io::read(&kernels, &mut text)?;
        match core::str::from_utf8(&text) {
            Ok(text) if count == UUID_LINE => self.mount_with(text),
            _ => Err(Errno::IO),
        }
    }

    fn replace(&mut self, boot_id: [u8; 16]) -> Result<(), Errno> {
        let text = uuid_line(boot_id);
        match &self.mounted {
            Some(file) => write(file, &text),
            None => self.mount_with(&text),
        }
    }

    /// Mounts a file with this text.
    fn mount_with(&mut self, text: &str) -> Result<(), Errno> {
        // Only root can have taken the name, who deceives only itself.
        let name = format!("vmcell-{}", text.trim_end());
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let file = openat(&self.files, &name, flags, Mode::from_raw_mode(0o444))?;
        // A file without a name cannot be mounted, but can stay mounted.
        let mounted = write(&file, text).and_then(|()| self.mount(&file));
        let _ = unlinkat(&self.files, &name, AtFlags::empty());
        mounted?;
        self.mounted = Some(file);
        Ok(())
    }

    fn mount(&self, file: &OwnedFd) -> Result<(), Errno> {
        let clone = OpenTreeFlags::OPEN_TREE_CLONE
            | OpenTreeFlags::OPEN_TREE_CLOEXEC
            | OpenTreeFlags::AT_EMPTY_PATH;
        let mount = open_tree(file, c"", clone)?;
        sys::make_mount_read_only(&mount)?;
        let from_mount = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH;
        move_mount(&mount, c"", &self.directory, FILE, from_mount)
    }
}

/// Writes the whole text, which replaces one of the same length.
fn write(file: &OwnedFd, text: &str) -> Result<(), Errno> {
    match rustix::io::pwrite(file, text.as_bytes(), 0)? {
        count if count == text.len() => Ok(()),
        _ => Err(Errno::IO),
    }
}

/// Returns the line of a random UUID (RFC 9562, version 4), as the kernel's.
fn uuid_line(random: [u8; 16]) -> String {
    const VERSION: u128 = 0x4 << 76;
    const VERSION_MASK: u128 = 0xf << 76;
    const VARIANT: u128 = 0b10 << 62;
    const VARIANT_MASK: u128 = 0b11 << 62;
    let number = u128::from_be_bytes(random);
    let number = number & !VERSION_MASK & !VARIANT_MASK | VERSION | VARIANT;
    let digits = format!("{number:032x}");
    let part = |range| digits.get(range).unwrap_or_default();
    format!(
        "{}-{}-{}-{}-{}\n",
        part(0..8),
        part(8..12),
        part(12..16),
        part(16..20),
        part(20..32)
    )
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::{
        env, fs,
        io::{Read, Write},
        process::{Command, Stdio},
    };

    use rustix::mount::{MountFlags, mount};

    use super::{super::mounts::share_mounts, *};

    /// In a mount namespace of its own, this program again.
    #[test]
    fn every_new_boot_id_is_read_in_proc_and_cannot_be_written() {
        const IN_NAMESPACE: &str = "VMCELL_TEST_IN_NAMESPACE";
        if env::var_os(IN_NAMESPACE).is_none() {
            let test =
                "boot::identity::tests::every_new_boot_id_is_read_in_proc_and_cannot_be_written";
            let is_allowed = Command::new("unshare").args(["--mount", "true"]).status();
            if !is_allowed.is_ok_and(|status| status.success()) {
                std::println!("skipped: this program may not create mount namespaces");
                return;
            }
            let status = Command::new("unshare")
                .args(["--mount", "--propagation", "private"])
                .arg(env::current_exe().unwrap())
                .args(["--exact", test])
                .env(IN_NAMESPACE, "1")
                .status();
            assert!(status.unwrap().success());
            return;
        }
        mount("tmpfs", FILES, "tmpfs", MountFlags::empty(), c"").unwrap();
        share_mounts().unwrap();
        let path = format!("{DIRECTORY}/{FILE}");
        // As a command that has a mount namespace of its own.
        let script =
            format!("exec 2>&-; echo; read line; cat {path}; echo x > {path} || echo read-only");
        let mut command = Command::new("unshare")
            .args(["--mount", "--propagation", "unchanged", "sh", "-c", &script])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut output = command.stdout.take().unwrap();
        output.read_exact(&mut [0]).unwrap();
        let before = fs::read_to_string(&path).unwrap();
        let mut boot_id = BootId::open().unwrap();
        boot_id.prepare().unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), before);
        for new in [[7; 16], [8; 16]] {
            boot_id.replace(new).unwrap();
            let text = fs::read_to_string(&path).unwrap();
            assert_eq!(
                (text.len(), text.as_str()),
                (before.len(), &*uuid_line(new))
            );
            let error = fs::write(&path, "another").unwrap_err();
            assert_eq!(error.raw_os_error(), Some(Errno::ROFS.raw_os_error()));
        }
        command.stdin.take().unwrap().write_all(b"\n").unwrap();
        let mut seen = String::new();
        output.read_to_string(&mut seen).unwrap();
        command.wait().unwrap();
        assert_eq!(seen, format!("{}read-only\n", uuid_line([8; 16])));
        let mode = fs::metadata(&path).unwrap().permissions();
        assert_eq!(
            std::os::unix::fs::PermissionsExt::mode(&mode) & 0o777,
            0o444
        );
        // The file has no name any more, and there is one mount.
        assert_eq!(fs::read_dir(FILES).unwrap().count(), 0);
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
        let on_it = |line: &&str| line.split(' ').nth(1) == Some(&path);
        assert_eq!(mounts.lines().filter(on_it).count(), 1);
    }

    #[test]
    fn a_boot_id_reads_as_a_random_uuid() {
        assert_eq!(uuid_line([0; 16]), "00000000-0000-4000-8000-000000000000\n");
        let ones = "ffffffff-ffff-4fff-bfff-ffffffffffff\n";
        assert_eq!(uuid_line([0xff; 16]), ones);
        assert_eq!(
            uuid_line([
                0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef, 0x01, 0x23, 0x45, 0x67, 0x89, 0xab,
                0xcd, 0xef
            ]),
            "01234567-89ab-4def-8123-456789abcdef\n"
        );
    }
}
