//! Snapshots that are not as they were written. No VM is needed for that.

use std::{
    fs::{self, Permissions},
    os::unix::fs::{FileExt as _, PermissionsExt as _, symlink},
    path::{Path, PathBuf},
};

use super::*;
use crate::{
    acceleration::Acceleration,
    backend::{PartKind, SavedPart, SavedVm, VmmRecord},
    link::LinkKind,
};

fn guest() -> GuestRecord {
    GuestRecord {
        backend: "qemu".to_owned(),
        acceleration: Acceleration::Tcg,
        vcpus: 1,
        memory_mib: 128,
        kernel: "/kernel".into(),
        link: LinkKind::Serial,
        agent: AgentRecord {
            build: "test".to_owned(),
            sha256: None,
        },
        boot_id: [1; 16],
        reset_key: [2; 16],
        template: None,
    }
}

const PARTS: [(&str, PartKind); 3] = [
    ("state", PartKind::State),
    ("memory", PartKind::Memory),
    ("layer-0", PartKind::Layer),
];

struct Case {
    folder: tempfile::TempDir,
}

impl Case {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("image"), "an image").unwrap();
        Self { folder }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("snapshot")
    }

    fn image(&self) -> PathBuf {
        self.folder.path().join("image")
    }

    fn partial(&self) -> (PartialSnapshot, SavedVm) {
        let partial = PartialSnapshot::create(&self.path()).unwrap();
        for (number, (name, _)) in PARTS.iter().enumerate() {
            let file = fs::File::create_new(partial.folder().join(name)).unwrap();
            file.set_len(1 << 20).unwrap();
            file.write_all_at(&[number as u8 + 1; 10_000], 70_000)
                .unwrap();
        }
        let part = |(name, kind): (&str, PartKind)| SavedPart {
            name: name.to_owned(),
            kind,
        };
        let saved = SavedVm {
            vmm: VmmRecord {
                version: "1.2.3".to_owned(),
                machine: "-m 128M".to_owned(),
                processor: String::new(),
                tsc_khz: None,
            },
            parts: PARTS.map(part).into(),
            image: Some(self.image()),
            disk_size: 1 << 20,
        };
        (partial, saved)
    }

    fn write(&self, compress: bool) -> u64 {
        let (partial, saved) = self.partial();
        partial.finish(guest(), saved, compress).unwrap()
    }

    fn open(&self) -> Result<LoadedSnapshot, SnapshotError> {
        LoadedSnapshot::open(&self.path(), None)
    }

    /// Asserts that it cannot be opened, with an error that contains this text.
    #[track_caller]
    fn assert_refused(&self, expected: &str) {
        let error = self.open().expect_err(expected).to_string();
        assert!(error.contains(expected), "{error}");
    }
}

fn change(path: &Path, place: usize, mask: u8) {
    let mut bytes = fs::read(path).unwrap();
    bytes[place] ^= mask;
    fs::write(path, bytes).unwrap();
}

#[test]
fn the_link_is_serial_unless_a_snapshot_says_another() {
    for (link, is_written) in [(LinkKind::Serial, false), (LinkKind::HybridVsock, true)] {
        let case = Case::new();
        let (partial, saved) = case.partial();
        let guest = GuestRecord { link, ..guest() };
        partial.finish(guest, saved, false).unwrap();
        assert_eq!(case.open().unwrap().guest.link, link);
        let manifest = fs::read_to_string(case.path().join("manifest.json")).unwrap();
        assert_eq!(manifest.contains(r#""link": "hybrid-vsock""#), is_written);
        assert_eq!(manifest.contains(r#""link""#), is_written);
    }
}

#[test]
fn a_snapshot_is_read_as_it_was_written() {
    for compress in [false, true] {
        let case = Case::new();
        let bytes = case.write(compress);
        assert!(bytes > 0 && bytes < 400_000, "{bytes}");
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&case.path()), 0o700);
        let loaded = case.open().unwrap();
        assert_eq!((loaded.guest.vcpus, loaded.guest.boot_id), (1, [1; 16]));
        for (number, (_, kind)) in PARTS.iter().enumerate() {
            let file = loaded.machine.open(*kind).unwrap().remove(0);
            assert_eq!(file.metadata().unwrap().len(), 1 << 20);
            let mut bytes = [0; 4];
            file.read_exact_at(&mut bytes, 70_000).unwrap();
            assert_eq!(bytes, [number as u8 + 1; 4]);
        }
        // Nobody can write the memory that all its VMs share.
        let memory = &loaded.machine.open(PartKind::Memory).unwrap()[0];
        let path = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(memory));
        let writable = fs::File::options().write(true).open(path).unwrap();
        writable.write_all_at(b"x", 0).unwrap_err();
    }
}

#[test]
fn every_changed_byte_of_the_manifest_is_noticed() {
    let case = Case::new();
    case.write(false);
    let path = case.path().join("manifest.json");
    let length = fs::read(&path).unwrap().len();
    // The last byte is the newline.
    for place in 0..length - 1 {
        for mask in [1, 0x20] {
            change(&path, place, mask);
            assert!(case.open().is_err(), "byte {place}");
            change(&path, place, mask);
        }
    }
    case.open().unwrap();
}

#[test]
fn a_part_that_was_changed_or_cut_short_is_refused() {
    for compress in [false, true] {
        let case = Case::new();
        case.write(compress);
        for (name, _) in PARTS {
            let path = case.path().join(name);
            let original = fs::read(&path).unwrap();
            for place in (0..original.len()).step_by((original.len() / 50).max(1)) {
                change(&path, place, 0x10);
                match case.open() {
                    Err(error) => assert!(error.to_string().contains(name), "{error}"),
                    // Some bits of a compressed file mean nothing: its contents were checked.
                    Ok(_) => assert!(compress, "byte {place} of {name}"),
                }
                fs::write(&path, &original).unwrap();
            }
            fs::write(&path, &original[..original.len() / 2]).unwrap();
            case.assert_refused(name);
            fs::write(&path, &original).unwrap();
            fs::rename(&path, case.folder.path().join("away")).unwrap();
            case.assert_refused("is missing");
            symlink(case.folder.path().join("away"), &path).unwrap();
            case.assert_refused("is missing");
            fs::rename(case.folder.path().join("away"), &path).unwrap();
        }
        case.open().unwrap();
    }
}

#[test]
fn what_is_not_a_snapshot_of_this_version_is_refused() {
    let case = Case::new();
    case.assert_refused("open its folder");
    fs::write(case.path(), "a file").unwrap();
    case.assert_refused("open its folder");
    fs::remove_file(case.path()).unwrap();
    fs::create_dir(case.path()).unwrap();
    case.assert_refused("manifest.json is missing");
    fs::write(case.path().join("manifest.json"), "{}").unwrap();
    case.assert_refused("damaged");
    fs::write(
        case.path().join("manifest.json"),
        r#"{"format": 7, "new": 1}"#,
    )
    .unwrap();
    let error = case.open().unwrap_err();
    assert!(
        matches!(error, SnapshotError::Format { format: 7, .. }),
        "{error}"
    );
}

#[test]
fn what_others_could_have_written_is_refused() {
    let case = Case::new();
    case.write(false);
    for (path, mode) in [
        (case.path(), 0o770),
        (case.path(), 0o702),
        (case.path().join("state"), 0o620),
        (case.path().join("manifest.json"), 0o602),
    ] {
        let before = fs::metadata(&path).unwrap().permissions();
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        case.assert_refused("other users may write to it");
        fs::set_permissions(&path, before).unwrap();
    }
    if rustix::process::geteuid().is_root() {
        std::os::unix::fs::chown(case.path().join("memory"), Some(1000), None).unwrap();
        case.assert_refused("it belongs to another user");
        std::os::unix::fs::chown(case.path().join("memory"), Some(0), None).unwrap();
    }
    case.open().unwrap();
}

#[test]
fn the_image_must_be_the_same() {
    let case = Case::new();
    case.write(false);
    // A copy with the same contents is the same image, wherever it is.
    let elsewhere = case.folder.path().join("elsewhere");
    fs::rename(case.image(), &elsewhere).unwrap();
    case.assert_refused("cannot be read");
    LoadedSnapshot::open(&case.path(), Some(&elsewhere)).unwrap();
    fs::copy(&elsewhere, case.image()).unwrap();
    case.open().unwrap();
    fs::write(case.image(), "other im").unwrap();
    case.assert_refused("has other contents now");
    fs::write(case.image(), "another image").unwrap();
    case.assert_refused("had 8 bytes and has 13 now");
}

#[test]
fn a_snapshot_is_whole_or_not_there() {
    let case = Case::new();
    let entries = || fs::read_dir(case.folder.path()).unwrap().count();
    let (partial, _) = case.partial();
    assert_eq!(entries(), 2);
    drop(partial);
    assert_eq!(entries(), 1);
    // One whose program was killed is removed by the next one; one that is being
    // written is not.
    let (partial, saved) = case.partial();
    let abandoned = case.folder.path().join(".other.abcdef.partial");
    fs::create_dir(&abandoned).unwrap();
    fs::write(abandoned.join("state"), "half").unwrap();
    let second = case.partial().0;
    assert!(!abandoned.exists() && partial.folder().exists());
    drop(second);
    partial.finish(guest(), saved, false).unwrap();
    assert_eq!(entries(), 2);
    // It takes nobody's place.
    let exists = PartialSnapshot::create(&case.path()).unwrap_err();
    assert!(matches!(exists, SnapshotError::Exists { .. }));
}

#[test]
fn of_two_that_are_written_to_one_path_the_second_is_refused() {
    let case = Case::new();
    let (first, saved) = case.partial();
    let (second, _) = case.partial();
    first.finish(guest(), saved.clone(), false).unwrap();
    let error = second.finish(guest(), saved, false).unwrap_err();
    assert!(matches!(error, SnapshotError::Exists { .. }), "{error}");
    case.open().unwrap();
    assert_eq!(fs::read_dir(case.folder.path()).unwrap().count(), 2);
}
