use std::{fs, os::unix::net::UnixListener};

use rustix::fs::{FileType, Mode};
use vmcell_wire::files::{FileKind, FileOperation};

use super::test_env::{INVALID, NOT_FOUND, TestEnv, digest, refused};

#[test]
fn a_file_is_read_whole_and_in_parts() {
    let mut env = TestEnv::new();
    let bytes: Vec<u8> = (0..3_000_000u32).map(|n| (n / 7) as u8).collect();
    fs::write(env.at("file"), &bytes).unwrap();
    assert!(env.read("file").unwrap() == bytes);
    assert!(env.read("/file").unwrap() == bytes);
    for (offset, length) in [
        (0, 0),
        (0, 1),
        (5, 10),
        (2_999_999, 100),
        (3_000_000, 1),
        (u64::MAX, 1),
        (1, u64::MAX),
        (4096, 4096),
    ] {
        let path = b"file";
        let operation = FileOperation::Read {
            path,
            offset,
            length,
        };
        let start = usize::try_from(offset).unwrap().min(bytes.len());
        let end = offset.saturating_add(length).min(bytes.len() as u64) as usize;
        let expected = &bytes[start..end.max(start)];
        assert!(
            env.perform(operation).unwrap() == expected,
            "{offset} {length}"
        );
    }
}

#[test]
fn a_large_file_is_read_the_same_from_the_disk_and_from_memory() {
    let mut env = TestEnv::new();
    let bytes: Vec<u8> = (0..9_500_001u32).map(|n| (n % 251) as u8).collect();
    fs::write(env.at("file"), &bytes).unwrap();
    let file = fs::File::open(env.at("file")).unwrap();
    file.sync_all().unwrap();
    for offset in [0, 4096, 4097] {
        rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).unwrap();
        for _ in 0..2 {
            let operation = FileOperation::Read {
                path: b"file",
                offset,
                length: u64::MAX,
            };
            assert!(env.perform(operation).unwrap() == bytes[offset as usize..]);
        }
    }
}

#[test]
fn names_are_any_bytes() {
    let mut env = TestEnv::new();
    for name in [
        b"\xff\xfe".as_slice(),
        b"new\nline",
        b"\x1b[31mred",
        b" ",
        b"-rf",
        b"...",
        &[b'n'; 255],
    ] {
        env.write(name, name).unwrap();
        assert_eq!(env.read(name).unwrap(), name);
        assert_eq!(fs::read(env.at(name)).unwrap(), name);
        assert_eq!(env.stat(name).unwrap().size, name.len() as u64);
    }
}

#[test]
fn what_is_not_a_file_is_not_read_and_holds_nobody_up() {
    let mut env = TestEnv::new();
    fs::create_dir(env.at("directory")).unwrap();
    let mode = Mode::from_raw_mode(0o644);
    rustix::fs::mknodat(rustix::fs::CWD, env.at("pipe"), FileType::Fifo, mode, 0).unwrap();
    let _listener = UnixListener::bind(env.at("socket")).unwrap();
    for path in ["", "directory", "pipe", "socket"] {
        assert_eq!(refused(env.read(path)), INVALID, "{path}");
        assert_eq!(refused(env.write(path, "x")), INVALID, "{path}");
    }
    for path in ["pipe", "socket"] {
        let operation = FileOperation::Sync {
            path: path.as_bytes(),
        };
        assert_eq!(refused(env.perform(operation)), INVALID, "{path}");
    }
    let device = FileOperation::Read {
        path: b"dev/zero",
        offset: 0,
        length: 1,
    };
    let outcome = env.work_in("/".as_ref(), device, b"");
    assert_eq!(refused(outcome), INVALID);
}

#[test]
fn what_is_not_there_is_not_found() {
    let mut env = TestEnv::new();
    fs::write(env.at("file"), "").unwrap();
    for path in ["missing", "missing/file", "file/below"] {
        assert_eq!(refused(env.read(path)), NOT_FOUND, "{path}");
        assert_eq!(refused(env.stat(path)), NOT_FOUND, "{path}");
    }
}

#[test]
fn an_entry_is_told_with_all_there_is_to_it() {
    let mut env = TestEnv::new();
    fs::write(env.at("file"), "some bytes").unwrap();
    std::os::unix::fs::symlink("file", env.at("link")).unwrap();
    let file = env.stat("file").unwrap();
    assert_eq!((file.kind, file.size), (FileKind::File, 10));
    assert_eq!(file.digest, Some(digest("some bytes")));
    assert!(!file.owner.is_empty());
    let link = env.stat("link").unwrap();
    assert_eq!(
        (link.kind, &*link.target),
        (FileKind::Symlink, &b"file"[..])
    );
    assert_eq!(link.digest, None);
    let followed = env.entry(FileOperation::Stat {
        path: b"link",
        follow: true,
        digest: true,
    });
    assert_eq!(followed.unwrap(), file);
    let top = env.stat("").unwrap();
    assert_eq!(top.kind, FileKind::Directory);
}
