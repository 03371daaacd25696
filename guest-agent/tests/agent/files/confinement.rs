use std::{fs, os::unix::fs::symlink, path::Path};

use vmcell_wire::{
    FailureKind,
    files::{Owner, Work},
};

use super::site::{DENIED, INVALID, NOT_FOUND, Site, refused};
use crate::concurrent::with_concurrent;

const OWNER: Owner<'static> = Owner::OfDirectory;

/// Everything that takes a path, and would do harm if it left the root.
pub(super) fn everything(path: &[u8]) -> Vec<Work<'_>> {
    vec![
        Work::Read {
            path,
            offset: 0,
            length: 100,
        },
        Work::Stat {
            path,
            follow: true,
            digest: true,
        },
        Work::MakeDirectory {
            path,
            mode: None,
            owner: OWNER,
        },
        Work::SetMode {
            path,
            mode: 0o777,
            tree: true,
        },
        Work::Touch {
            path,
            modified: None,
            owner: OWNER,
        },
        Work::Sync { path },
        Work::Edit { path, owner: OWNER },
    ]
}

/// What works on a name, and not on what a link with that name points to.
pub(super) fn everything_by_name(path: &[u8]) -> Vec<Work<'_>> {
    vec![
        Work::Remove { path, tree: true },
        Work::Remove { path, tree: false },
        Work::Rename {
            from: path,
            to: b"taken",
            replace: true,
        },
        Work::Rename {
            from: b"file",
            to: path,
            replace: true,
        },
        Work::Copy {
            from: path,
            to: b"copy",
            owner: OWNER,
        },
        Work::Copy {
            from: b"file",
            to: path,
            owner: OWNER,
        },
        Work::Symlink {
            path,
            target: b"x",
            owner: OWNER,
        },
        Work::SetOwner {
            path,
            owner: OWNER,
            tree: true,
        },
    ]
}

fn site_with_links() -> Site {
    let site = Site::new();
    fs::create_dir(site.at("d")).unwrap();
    fs::write(site.at("file"), "inside").unwrap();
    symlink(site.outside(), site.at("absolute")).unwrap();
    symlink("../outside", site.at("relative")).unwrap();
    symlink("../../outside/secret", site.at("d/secret")).unwrap();
    symlink("../outside/new", site.at("dangling")).unwrap();
    symlink("/proc/self/root", site.at("magic")).unwrap();
    symlink("..", site.at("up")).unwrap();
    site
}

#[test]
fn no_path_leads_out_of_the_root() {
    let mut site = site_with_links();
    let before = site.listing();
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
        for work in everything(path.as_bytes()) {
            assert_eq!(refused(site.work(work)), DENIED, "{work:?}");
        }
        assert!(
            matches!(refused(site.write(path, "x")), DENIED | INVALID),
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
        for work in everything_by_name(path.as_bytes()) {
            assert_eq!(refused(site.work(work)), DENIED, "{work:?}");
        }
    }
    assert_eq!(site.listing(), before);
    site.assert_outside_untouched();
}

#[test]
fn an_absolute_path_is_one_within_the_root() {
    let mut site = site_with_links();
    assert_eq!(site.read("/file").unwrap(), b"inside");
    assert_eq!(site.read("///d/..//file").unwrap(), b"inside");
    let outside = site.outside().join("secret");
    let outside = outside.as_os_str().as_encoded_bytes();
    assert_eq!(refused(site.read(outside)), NOT_FOUND);
}

#[test]
fn the_root_of_everything_has_no_outside() {
    let mut site = site_with_links();
    let path = site.at("relative/secret");
    let read = Work::Read {
        path: path.as_os_str().as_encoded_bytes(),
        offset: 0,
        length: 100,
    };
    let everything = Path::new("/");
    assert_eq!(site.work_in(everything, read, b"").unwrap(), b"secret");
    let path = site.at("absolute/secret");
    let read = Work::Read {
        path: path.as_os_str().as_encoded_bytes(),
        offset: 0,
        length: 100,
    };
    assert_eq!(site.work_in(everything, read, b"").unwrap(), b"secret");
    let path = b"../../../etc/passwd";
    let read = Work::Stat {
        path,
        follow: true,
        digest: false,
    };
    assert!(site.work_in(everything, read, b"").is_ok());
}

#[test]
fn a_root_is_a_real_directory() {
    let mut site = site_with_links();
    let read = Work::Read {
        path: b"secret",
        offset: 0,
        length: 1,
    };
    for (root, kind) in [
        (site.at("absolute"), DENIED),
        (site.at("relative/."), DENIED),
        (site.at("missing"), NOT_FOUND),
        (site.at("file"), NOT_FOUND),
        ("relative".into(), INVALID),
        ("".into(), INVALID),
        ("/a\0b".into(), INVALID),
        (format!("/{}", "x".repeat(5000)).into(), INVALID),
    ] {
        assert_eq!(refused(site.work_in(&root, read, b"")), kind, "{root:?}");
    }
}

#[test]
fn paths_that_make_no_sense_are_invalid() {
    let mut site = Site::new();
    fs::write(site.at("file"), "").unwrap();
    let long = "x/".repeat(2100);
    let long_name = "n".repeat(256);
    for path in ["a\0b", "\0", &long, &long_name] {
        for work in everything(path.as_bytes()) {
            assert_eq!(refused(site.work(work)), INVALID, "{work:?}");
        }
        for work in everything_by_name(path.as_bytes()) {
            assert_eq!(refused(site.work(work)), INVALID, "{work:?}");
        }
        assert_eq!(refused(site.write(path, "x")), INVALID);
    }
    for path in ["", ".", "..", "/", "d/..", "d/.", "//"] {
        for work in everything_by_name(path.as_bytes()) {
            if matches!(work, Work::SetOwner { .. }) {
                continue;
            }
            assert_eq!(refused(site.work(work)), INVALID, "{work:?}");
        }
        assert_eq!(refused(site.write(path, "x")), INVALID);
    }
    assert_eq!(site.listing(), ["file"]);
}

/// A process that swaps a directory for a link to the outside all the time.
fn with_a_racing_process(site: &mut Site, mut work: impl FnMut(&mut Site)) {
    let (directory, link) = (site.at("d"), site.at("other"));
    fs::create_dir(&directory).unwrap();
    symlink("../outside", &link).unwrap();
    let swap = || {
        let (here, swap) = (rustix::fs::CWD, rustix::fs::RenameFlags::EXCHANGE);
        rustix::fs::renameat_with(here, &directory, here, &link, swap).unwrap();
    };
    with_concurrent(swap, || work(site));
    site.assert_outside_untouched();
}

#[test]
fn a_racing_process_leads_no_write_out_of_the_root() {
    let mut site = Site::new();
    with_a_racing_process(&mut site, |site| {
        let mut done = 0;
        for _ in 0..10_000 {
            match site.write("d/secret", "overwritten") {
                Ok(_) => done += 1,
                Err(refused) => assert!(is_of_a_race(refused.kind), "{refused:?}"),
            }
        }
        assert!(done > 0);
    });
}

#[test]
fn a_racing_process_leads_nothing_else_out_of_the_root() {
    let mut site = Site::new();
    fs::write(site.at("file"), "inside").unwrap();
    with_a_racing_process(&mut site, |site| {
        for round in 0..1000 {
            let work = match round % 5 {
                0 => Work::Read {
                    path: b"d/secret",
                    offset: 0,
                    length: 100,
                },
                1 => Work::Remove {
                    path: b"d/secret",
                    tree: true,
                },
                2 => Work::MakeDirectory {
                    path: b"d/made/deep",
                    mode: None,
                    owner: OWNER,
                },
                3 => Work::SetMode {
                    path: b"d",
                    mode: 0o755,
                    tree: true,
                },
                _ => Work::Remove {
                    path: b"d/made",
                    tree: true,
                },
            };
            if let Ok(bytes) = site.work(work) {
                assert_ne!(bytes, b"secret");
            }
        }
    });
}

#[test]
fn a_racing_process_leads_the_removal_of_a_tree_nowhere() {
    let mut site = Site::new();
    with_a_racing_process(&mut site, |site| {
        for _ in 0..300 {
            // Both may be gone at the end of a try, but never what is outside.
            let _ = site.work(Work::Copy {
                from: b"d",
                to: b"copy",
                owner: OWNER,
            });
            let _ = site.work(Work::Remove {
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
