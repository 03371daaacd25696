use std::{fs, path::PathBuf};

use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use tempfile::TempDir;
use vmcell_wire::files::{FileOperation, Owner, Precondition, Write, WriteMode};

use super::{
    edit::{Edits, put},
    test_env::{LIMIT, TestEnv, is_root},
};

const ENOSPC: u16 = 28;

/// A file system of 1 MiB that is unmounted when this is dropped.
struct TinyDisk(PathBuf);

impl TinyDisk {
    fn mount(path: PathBuf) -> Self {
        fs::create_dir(&path).unwrap();
        let options = Some(c"size=1m");
        mount("tmpfs", &path, "tmpfs", MountFlags::empty(), options).unwrap();
        Self(path)
    }
}

impl Drop for TinyDisk {
    fn drop(&mut self) {
        unmount(&self.0, UnmountFlags::DETACH).unwrap();
    }
}

#[test]
fn a_full_disk_leaves_the_old_file_and_nothing_else() {
    if !is_root() {
        return;
    }
    let directory = TempDir::new().unwrap();
    let mut env = TestEnv::within(directory);
    let _disk = TinyDisk::mount(env.at("disk"));
    env.write("disk/file", "old").unwrap();
    let much = vec![1; 3_000_000];
    let places = [WriteMode::Replace, WriteMode::Append, WriteMode::At(0)];
    for write_mode in places {
        for size in [None, Some(3_000_000)] {
            for path in ["disk/file", "disk/new"] {
                if write_mode == WriteMode::At(0) && size.is_none() && path == "disk/file" {
                    // It is overwritten before the disk is full.
                    continue;
                }
                let change = |write: &mut Write<'_>| {
                    write.write_mode = write_mode;
                    write.size = size;
                };
                let failed = env.write_with(path, &much, change).unwrap_err();
                assert_eq!((failed.kind, failed.errno), (LIMIT, ENOSPC));
                assert_eq!(
                    env.listing(),
                    ["disk", "disk/file"],
                    "{write_mode:?} {size:?}"
                );
                assert_eq!(fs::read(env.at("disk/file")).unwrap(), b"old");
            }
        }
    }
}

#[test]
fn a_copy_that_does_not_fit_leaves_nothing() {
    if !is_root() {
        return;
    }
    let mut env = TestEnv::new();
    let _disk = TinyDisk::mount(env.at("disk"));
    fs::create_dir(env.at("tree")).unwrap();
    for number in 0..30 {
        fs::write(env.at(format!("tree/{number}")), vec![7; 100_000]).unwrap();
    }
    let failed = env.entry(FileOperation::Copy {
        from: b"tree",
        to: b"disk/copy",
        owner: Owner::OfDirectory,
    });
    assert_eq!(failed.unwrap_err().errno, ENOSPC);
    assert_eq!(fs::read_dir(env.at("disk")).unwrap().count(), 0);
}

#[test]
fn changes_that_do_not_fit_are_not_made() {
    if !is_root() {
        return;
    }
    let mut env = TestEnv::new();
    let _disk = TinyDisk::mount(env.at("disk"));
    env.write("disk/file", "old").unwrap();
    let mut edits = Edits::default();
    put(&mut edits, "file", Precondition::Anything, "new");
    put(
        &mut edits,
        "large",
        Precondition::Anything,
        vec![1; 3_000_000],
    );
    let failed = edits.perform_in(&mut env, "disk").unwrap_err();
    assert_eq!((failed.kind, failed.errno), (LIMIT, ENOSPC));
    assert_eq!(env.listing(), ["disk", "disk/file"]);
    assert_eq!(fs::read(env.at("disk/file")).unwrap(), b"old");
}
