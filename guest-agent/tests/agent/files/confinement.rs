use std::{fs, os::unix::fs::symlink, path::Path};

use vmcell_wire::{
    FailureKind,
    files::{FileOperation, Owner},
};

use super::test_env::{DENIED, INVALID, NOT_FOUND, TestEnv, refused};
use crate::race::race_against;

const OWNER: Owner<'static> = Owner::OfDirectory;

/// Operations that take a path and follow a link at its end.
pub(super) fn everything(path: &[u8]) -> Vec<FileOperation<'_>> {
    vec![
        FileOperation::Read {
            path,
            offset: 0,
            length: 100,
        },
        FileOperation::Stat {
            path,
            follow: true,
            digest: true,
        },
        FileOperation::MakeDirectory {
            path,
            mode: None,
            owner: OWNER,
        },
        FileOperation::SetMode {
            path,
            mode: 0o777,
            tree: true,
        },
        FileOperation::Touch {
            path,
            modified: None,
            owner: OWNER,
        },
        FileOperation::Sync { path },
        FileOperation::Edit { path, owner: OWNER },
    ]
}

/// Operations on the entry itself, which do not follow a link at the end.
pub(super) fn everything_by_name(path: &[u8]) -> Vec<FileOperation<'_>> {
    vec![
        FileOperation::Remove { path, tree: true },
        FileOperation::Remove { path, tree: false },
        FileOperation::Rename {
            from: path,
            to: b"taken",
            replace: true,
        },
        FileOperation::Rename {
            from: b"file",
            to: path,
            replace: true,
        },
        FileOperation::Copy {
            from: path,
            to: b"copy",
            owner: OWNER,
        },
        FileOperation::Copy {
            from: b"file",
            to: path,
            owner: OWNER,
        },
        FileOperation::Symlink {
            path,
            target: b"x",
            owner: OWNER,
        },
        FileOperation::SetOwner {
            path,
            owner: OWNER,
            tree: true,
        },
    ]
}

fn env_with_links() -> TestEnv {
    let env = TestEnv::new();
    fs::create_dir(env.at("d")).unwrap();
    fs::write(env.at("file"), "inside").unwrap();
    symlink(env.outside(), env.at("absolute")).unwrap();
    symlink("../outside", env.at("relative")).unwrap();
    symlink("../../outside/secret", env.at("d/secret")).unwrap();
    symlink("../outside/new", env.at("dangling")).unwrap();
    symlink("/proc/self/root", env.at("magic")).unwrap();
    symlink("..", env.at("up")).unwrap();
    env
}

#[test]
fn no_path_leads_out_of_the_root() {
    let mut env = env_with_links();
    let before = env.listing();
    for path in [
        "..",
        "../outside/secret",
        "d/../../outside/secret",
        "../root/../outside/secret",
        "absolute/secret",
        "relative/secret",
        "relative",
        "d/secret",
        "dangling",
        "magic/etc/passwd",
        "up/outside/secret",
        "up/outside/a/new/one",
    ] {
        for operation in everything(path.as_bytes()) {
            assert_eq!(refused(env.perform(operation)), DENIED, "{operation:?}");
        }
        assert!(
            matches!(refused(env.write(path, "x")), DENIED | INVALID),
            "{path}"
        );
    }
    for path in [
        "../outside/secret",
        "absolute/secret",
        "relative/secret",
        "up/outside/secret",
        "up/outside/new",
    ] {
        for operation in everything_by_name(path.as_bytes()) {
            assert_eq!(refused(env.perform(operation)), DENIED, "{operation:?}");
        }
    }
    assert_eq!(env.listing(), before);
    env.assert_outside_untouched();
}

#[test]
fn an_absolute_path_is_one_within_the_root() {
    let mut env = env_with_links();
    assert_eq!(env.read("/file").unwrap(), b"inside");
    assert_eq!(env.read("///d/..//file").unwrap(), b"inside");
    let outside = env.outside().join("secret");
    let outside = outside.as_os_str().as_encoded_bytes();
    assert_eq!(refused(env.read(outside)), NOT_FOUND);
}

#[test]
fn the_root_of_everything_has_no_outside() {
    let mut env = env_with_links();
    let path = env.at("relative/secret");
    let read = FileOperation::Read {
        path: path.as_os_str().as_encoded_bytes(),
        offset: 0,
        length: 100,
    };
    let everything = Path::new("/");
    assert_eq!(env.work_in(everything, read, b"").unwrap(), b"secret");
    let path = env.at("absolute/secret");
    let read = FileOperation::Read {
        path: path.as_os_str().as_encoded_bytes(),
        offset: 0,
        length: 100,
    };
    assert_eq!(env.work_in(everything, read, b"").unwrap(), b"secret");
    let path = b"../../../etc/passwd";
    let read = FileOperation::Stat {
        path,
        follow: true,
        digest: false,
    };
    assert!(env.work_in(everything, read, b"").is_ok());
}

#[test]
fn a_root_is_a_real_directory() {
    let mut env = env_with_links();
    let read = FileOperation::Read {
        path: b"secret",
        offset: 0,
        length: 1,
    };
    for (root, kind) in [
        (env.at("absolute"), DENIED),
        (env.at("relative/."), DENIED),
        (env.at("missing"), NOT_FOUND),
        (env.at("file"), NOT_FOUND),
        ("relative".into(), INVALID),
        ("".into(), INVALID),
        ("/a\0b".into(), INVALID),
        (format!("/{}", "x".repeat(5000)).into(), INVALID),
    ] {
        assert_eq!(refused(env.work_in(&root, read, b"")), kind, "{root:?}");
    }
}

#[test]
fn paths_that_make_no_sense_are_invalid() {
    let mut env = TestEnv::new();
    fs::write(env.at("file"), "").unwrap();
    let long = "x/".repeat(2100);
    let long_name = "n".repeat(256);
    for path in ["a\0b", "\0", &long, &long_name] {
        for operation in everything(path.as_bytes()) {
            assert_eq!(refused(env.perform(operation)), INVALID, "{operation:?}");
        }
        for operation in everything_by_name(path.as_bytes()) {
            assert_eq!(refused(env.perform(operation)), INVALID, "{operation:?}");
        }
        assert_eq!(refused(env.write(path, "x")), INVALID);
    }
    for path in ["", ".", "..", "/", "d/..", "d/.", "//"] {
        for operation in everything_by_name(path.as_bytes()) {
            if matches!(operation, FileOperation::SetOwner { .. }) {
                continue;
            }
            assert_eq!(refused(env.perform(operation)), INVALID, "{operation:?}");
        }
        assert_eq!(refused(env.write(path, "x")), INVALID);
    }
    assert_eq!(env.listing(), ["file"]);
}

/// Runs `work` while a thread keeps swapping a directory for a link to the outside.
fn with_a_racing_process(env: &mut TestEnv, mut operation: impl FnMut(&mut TestEnv)) {
    let (directory, link) = (env.at("d"), env.at("other"));
    fs::create_dir(&directory).unwrap();
    symlink("../outside", &link).unwrap();
    let swap = || {
        let (here, swap) = (rustix::fs::CWD, rustix::fs::RenameFlags::EXCHANGE);
        rustix::fs::renameat_with(here, &directory, here, &link, swap).unwrap();
    };
    race_against(swap, || operation(env));
    env.assert_outside_untouched();
}

#[test]
fn a_racing_process_leads_no_write_out_of_the_root() {
    let mut env = TestEnv::new();
    with_a_racing_process(&mut env, |env| {
        let mut done = 0;
        for _ in 0..10_000 {
            match env.write("d/secret", "overwritten") {
                Ok(_) => done += 1,
                Err(refused) => assert!(is_of_a_race(refused.kind), "{refused:?}"),
            }
        }
        assert!(done > 0);
    });
}

#[test]
fn a_racing_process_leads_nothing_else_out_of_the_root() {
    let mut env = TestEnv::new();
    fs::write(env.at("file"), "inside").unwrap();
    with_a_racing_process(&mut env, |env| {
        for round in 0..1000 {
            let operation = match round % 5 {
                0 => FileOperation::Read {
                    path: b"d/secret",
                    offset: 0,
                    length: 100,
                },
                1 => FileOperation::Remove {
                    path: b"d/secret",
                    tree: true,
                },
                2 => FileOperation::MakeDirectory {
                    path: b"d/made/deep",
                    mode: None,
                    owner: OWNER,
                },
                3 => FileOperation::SetMode {
                    path: b"d",
                    mode: 0o755,
                    tree: true,
                },
                _ => FileOperation::Remove {
                    path: b"d/made",
                    tree: true,
                },
            };
            if let Ok(bytes) = env.perform(operation) {
                assert_ne!(bytes, b"secret");
            }
        }
    });
}

#[test]
fn a_racing_process_leads_the_removal_of_a_tree_nowhere() {
    let mut env = TestEnv::new();
    with_a_racing_process(&mut env, |env| {
        for _ in 0..300 {
            // Both may be gone afterwards, but never what is outside.
            let _ = env.perform(FileOperation::Copy {
                from: b"d",
                to: b"copy",
                owner: OWNER,
            });
            let _ = env.perform(FileOperation::Remove {
                path: b"copy",
                tree: true,
            });
        }
    });
}

fn is_of_a_race(kind: FailureKind) -> bool {
    matches!(
        kind,
        FailureKind::Denied | FailureKind::NotFound | FailureKind::Limit | FailureKind::Conflict
    )
}
