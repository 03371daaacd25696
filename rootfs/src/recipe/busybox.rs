//! The host's static busybox.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::Error;
use crate::tools::find_program;

/// The folders of applets, and the path from there to the program.
const FOLDERS: [(&str, &str); 4] = [
    ("bin", "busybox"),
    ("sbin", "../bin/busybox"),
    ("usr/bin", "../../bin/busybox"),
    ("usr/sbin", "../../bin/busybox"),
];

/// A statically linked busybox.
#[derive(Debug)]
pub(super) struct Busybox {
    pub(super) path: PathBuf,
    pub(super) bytes: Vec<u8>,
}

/// A symbolic link that invokes an applet.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Applet {
    pub(super) path: PathBuf,
    pub(super) target: &'static str,
}

impl Busybox {
    /// Reads and checks the program: the caller's choice, else the one in `VMCELL_BUSYBOX`, else
    /// the installed one.
    pub(super) fn open(chosen: Option<&Path>) -> Result<Self, Error> {
        let named = || {
            env::var_os("VMCELL_BUSYBOX")
                .filter(|path| !path.is_empty())
                .map(PathBuf::from)
        };
        let path = match chosen.map(Path::to_owned).or_else(named) {
            Some(path) => path,
            None => installed().ok_or(Error::BusyboxMissing)?,
        };
        // `Command` would search `PATH` for a bare name, and might run another file.
        let path = std::path::absolute(&path).unwrap_or(path);
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Err(Error::BusyboxMissing);
            }
            Err(source) => return Err(Error::Read { path, source }),
        };
        if !is_static_program(&bytes) {
            return Err(Error::BusyboxNotStatic { path });
        }
        Ok(Self { path, bytes })
    }

    /// Runs the program to list its applets.
    pub(super) fn applets(&self) -> Result<Vec<Applet>, Error> {
        let output = Command::new(&self.path)
            .arg("--list-full")
            .env_clear()
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .output()
            .map_err(|source| Error::ToolUnusable {
                path: self.path.clone(),
                source,
            })?;
        let applets = parse_applets(&String::from_utf8_lossy(&output.stdout));
        // A missing applet is acceptable, a missing shell is not.
        let has_shell = applets
            .iter()
            .any(|applet| applet.path == Path::new("bin/sh"));
        if !output.status.success() || !has_shell {
            return Err(Error::BusyboxUnusable {
                path: self.path.clone(),
            });
        }
        Ok(applets)
    }
}

fn installed() -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let usual = ["/bin", "/usr/bin"].map(PathBuf::from);
    let folders: Vec<PathBuf> = usual.into_iter().chain(env::split_paths(&path)).collect();
    find_program(&folders, "busybox")
}

/// Parses lines such as `usr/bin/env`. Ignores applets outside the known folders, such as
/// `linuxrc`, which a guest whose init is not busybox does not need.
fn parse_applets(list: &str) -> Vec<Applet> {
    let parse = |line: &str| {
        let (folder, name) = line.trim().rsplit_once('/')?;
        let (folder, target) = FOLDERS.into_iter().find(|(known, _)| *known == folder)?;
        let path = Path::new(folder).join(name);
        (!name.is_empty() && path != Path::new("bin/busybox")).then_some(Applet { path, target })
    };
    list.lines().filter_map(parse).collect()
}

/// Returns whether this is a 64-bit little-endian ELF executable without a dynamic linker
/// (elf(5): no program header of type `PT_INTERP`).
fn is_static_program(bytes: &[u8]) -> bool {
    program_header_types(bytes)
        .is_some_and(|types| types.contains(&PT_LOAD) && !types.contains(&PT_INTERP))
}

const PT_LOAD: u32 = 1;
const PT_INTERP: u32 = 3;

fn program_header_types(bytes: &[u8]) -> Option<Vec<u32>> {
    const CLASS_64_LITTLE_ENDIAN: [u8; 2] = [2, 1];
    const EXECUTABLE_OR_POSITION_INDEPENDENT: [u16; 2] = [2, 3];
    let u16_at = |at: usize| {
        Some(u16::from_le_bytes(
            bytes.get(at..)?.get(..2)?.try_into().ok()?,
        ))
    };
    let u32_at = |at: usize| {
        Some(u32::from_le_bytes(
            bytes.get(at..)?.get(..4)?.try_into().ok()?,
        ))
    };
    let u64_at = |at: usize| {
        Some(u64::from_le_bytes(
            bytes.get(at..)?.get(..8)?.try_into().ok()?,
        ))
    };
    if !bytes.starts_with(b"\x7fELF") || bytes.get(4..6)? != CLASS_64_LITTLE_ENDIAN {
        return None;
    }
    if !EXECUTABLE_OR_POSITION_INDEPENDENT.contains(&u16_at(0x10)?) {
        return None;
    }
    let table = usize::try_from(u64_at(0x20)?).ok()?;
    let (length, count) = (usize::from(u16_at(0x36)?), usize::from(u16_at(0x38)?));
    (0..count)
        .map(|index| u32_at(table.checked_add(length.checked_mul(index)?)?))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn program(header_types: &[u32]) -> Vec<u8> {
        let mut bytes = vec![0; 64];
        bytes[..6].copy_from_slice(b"\x7fELF\x02\x01");
        bytes[0x10] = 2;
        bytes[0x20] = 64;
        bytes[0x36] = 56;
        bytes[0x38] = header_types.len() as u8;
        for header_type in header_types {
            bytes.extend(header_type.to_le_bytes());
            bytes.extend([0; 52]);
        }
        bytes
    }

    #[test]
    fn a_program_with_an_interpreter_is_not_static() {
        assert!(is_static_program(&program(&[PT_LOAD, 2])));
        assert!(!is_static_program(&program(&[PT_INTERP, PT_LOAD])));
        assert!(!is_static_program(&program(&[])));
        assert!(!is_static_program(b"#!/bin/sh\n"));
        assert!(!is_static_program(b""));
    }

    #[test]
    fn applets_lie_where_they_are_expected() {
        let applets = parse_applets("bin/busybox\nbin/sh\nlinuxrc\nusr/sbin/chroot\nopt/odd\n");
        let expected = [
            ("bin/sh", "busybox"),
            ("usr/sbin/chroot", "../../bin/busybox"),
        ];
        assert_eq!(
            applets,
            expected.map(|(path, target)| Applet {
                path: path.into(),
                target
            })
        );
    }

    proptest! {
        #[test]
        fn no_file_makes_the_check_panic(mut bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            is_static_program(&bytes);
            let head = b"\x7fELF\x02\x01";
            if bytes.len() > 0x12 {
                bytes[..6].copy_from_slice(head);
                bytes[0x10..0x12].copy_from_slice(&[2, 0]);
                is_static_program(&bytes);
            }
        }
    }
}
