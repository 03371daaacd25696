use std::{fs, path::Path, process::Command};

use super::{Stream, round_trip::pattern, snapshot::snapshot};
use crate::transfer::TreeError;

/// A mounted file system of 1 MiB.
struct Tiny(tempfile::TempDir);

impl Tiny {
    fn mount() -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=1m", "tmpfs"])
            .arg(folder.path())
            .output();
        let is_mounted = mounted.is_ok_and(|output| output.status.success());
        is_mounted.then_some(Self(folder))
    }
}

impl Drop for Tiny {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0.path()).output();
    }
}

fn too_large_for(top: &Path) {
    fs::create_dir(top.join("to")).unwrap();
    fs::write(top.join("to/file"), "old").unwrap();
    let mut stream = Stream::default()
        .enter(b"")
        .file(b"before", b"complete")
        .parts(b"file", 2_000_000);
    for _ in 0..20 {
        stream = stream.raw(&pattern(100_000));
    }
    let stream = stream.end_of_file().leave();
    let error = stream.received(&top.join("to")).unwrap_err();
    assert!(matches!(error, TreeError::Full { .. }), "{error:?}");
    assert_eq!(fs::read(top.join("to/file")).unwrap(), b"old");
    assert_eq!(fs::read(top.join("to/before")).unwrap(), b"complete");
    assert_eq!(snapshot(&top.join("to")).len(), 3, "nothing is left over");
}

#[test]
fn a_full_disk_leaves_the_old_file_and_no_half_of_a_new_one() {
    match Tiny::mount() {
        Some(tiny) => too_large_for(tiny.0.path()),
        None => println!("skipped: mounting a small file system takes root"),
    }
}

#[cfg(feature = "archive")]
#[test]
fn an_archive_on_a_full_disk_gets_no_name() {
    use crate::transfer::{ArchiveFormat, Destination, ReceiveOptions};

    let Some(tiny) = Tiny::mount() else {
        println!("skipped: mounting a small file system takes root");
        return;
    };
    let path = tiny.0.path().join("a.tar");
    let destination = Destination::ArchiveFile {
        path,
        format: ArchiveFormat::Tar,
        name: b"file".to_vec(),
    };
    let mut stream = Stream::default().parts(b"", 2_000_000);
    for _ in 0..20 {
        stream = stream.raw(&pattern(100_000));
    }
    let stream = stream.end_of_file();
    let options = ReceiveOptions::default();
    let error = super::received_with([&stream.0[..]], destination, options).unwrap_err();
    assert!(matches!(error, TreeError::Full { .. }), "{error:?}");
    assert_eq!(fs::read_dir(tiny.0.path()).unwrap().count(), 0);
}
