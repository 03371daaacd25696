//! How the agent handles valid and invalid records of a tree.

use std::{
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt, symlink},
};

use vmcell_wire::{
    Channel, FailureKind,
    files::{Content, FileOperation, Owner, Receive, TreeRecord},
};

use super::{
    records::{Records, meta},
    test_env::{OwnedAnswer, TestEnv, leftovers},
};
use crate::{client::Reply, race::race_against};

fn tree() -> Records {
    Records::default().enter("")
}

#[test]
fn a_link_is_replaced_and_never_followed() {
    let mut env = TestEnv::new();
    fs::write(env.at("outside"), "mine").unwrap();
    fs::create_dir(env.at("t")).unwrap();
    for name in ["whole", "parts", "link", "hard"] {
        symlink("../outside", env.at("t").join(name)).unwrap();
    }
    let records = tree()
        .file("whole", b"whole")
        .parts("parts")
        .raw(b"parts")
        .end_of_file()
        .symlink("link", "elsewhere")
        .hard_link("hard", "whole")
        .leave();
    env.push("t", &records.0).output();
    assert_eq!(fs::read(env.at("outside")).unwrap(), b"mine");
    for (name, content) in [("whole", "whole"), ("parts", "parts"), ("hard", "whole")] {
        let path = env.at("t").join(name);
        assert!(path.symlink_metadata().unwrap().is_file());
        assert_eq!(fs::read_to_string(path).unwrap(), content);
    }
    let target = fs::read_link(env.at("t/link")).unwrap();
    assert_eq!(target.to_str(), Some("elsewhere"));
    assert!(leftovers(&env.root()).is_empty());
}

#[test]
fn a_file_is_replaced_by_another_one_and_not_written_to() {
    let mut env = TestEnv::new();
    fs::write(env.at("file"), "old").unwrap();
    fs::hard_link(env.at("file"), env.at("witness")).unwrap();
    env.push("file", &Records::default().file("", b"new").0)
        .output();
    assert_eq!(fs::read(env.at("file")).unwrap(), b"new");
    assert_eq!(fs::read(env.at("witness")).unwrap(), b"old");
}

#[test]
fn directories_merge_and_what_else_is_in_them_stays() {
    let mut env = TestEnv::new();
    fs::create_dir_all(env.at("t/d")).unwrap();
    fs::write(env.at("t/d/old"), "old").unwrap();
    let records = tree().enter("d").file("new", b"new").leave().leave();
    let answer = env.push("t", &records.0).answers();
    assert_eq!(answer, [OwnedAnswer::Received(1, 3)]);
    assert_eq!(fs::read(env.at("t/d/old")).unwrap(), b"old");
    assert_eq!(fs::read(env.at("t/d/new")).unwrap(), b"new");
}

#[test]
fn a_directory_whose_record_says_nothing_stays_as_it_is() {
    let mut env = TestEnv::new();
    fs::create_dir(env.at("t")).unwrap();
    fs::set_permissions(env.at("t"), fs::Permissions::from_mode(0o711)).unwrap();
    let plain = |name| TreeRecord::Enter { name, meta: None };
    let records = Records::default()
        .record(&plain(b""))
        .record(&plain(b"new"))
        .leave()
        .leave();
    env.push("t", &records.0).output();
    let mode = |path| fs::metadata(env.at(path)).unwrap().mode() & 0o7777;
    assert_eq!((mode("t"), mode("t/new")), (0o711, 0o755));
}

#[test]
fn what_cannot_be_replaced_is_a_conflict_that_names_the_path() {
    let mut env = TestEnv::new();
    fs::create_dir_all(env.at("t/directory/below")).unwrap();
    fs::write(env.at("t/file"), "file").unwrap();
    symlink("directory", env.at("t/link")).unwrap();
    fs::write(env.at("t/source"), "source").unwrap();
    let cases = [
        ("directory", tree().file("directory", b"x")),
        (
            "directory",
            tree().parts("directory").raw(b"x").end_of_file(),
        ),
        ("directory", tree().symlink("directory", "x")),
        ("directory", tree().hard_link("directory", "source")),
        ("file", tree().enter("file").leave()),
        ("link", tree().enter("link").leave()),
    ];
    for (name, records) in cases {
        let result = env.push("t", &records.leave().0);
        assert_eq!(result.failure, Some(FailureKind::Conflict), "{name}");
        assert!(
            result.text.contains(&format!("t/{name}: ")),
            "{}",
            result.text
        );
    }
    assert!(env.at("t/directory/below").is_dir());
    assert_eq!(fs::read(env.at("t/file")).unwrap(), b"file");
    assert!(leftovers(&env.root()).is_empty());
    let result = env.push("", &Records::default().file("", b"x").0);
    assert_eq!(result.failure, Some(FailureKind::Conflict));
}

#[test]
fn records_that_make_up_no_tree_are_refused_and_leave_nothing() {
    let mut env = TestEnv::new();
    fs::write(env.at("outside"), "mine").unwrap();
    let none = Records::default;
    let cases = [
        none(),
        none().leave(),
        none().raw(b"x"),
        none().end_of_file(),
        none().file("name", b"x"),
        none().enter("name").leave(),
        none().hard_link("", "x"),
        none().parts(""),
        none().parts("").raw(b"x"),
        none().parts("").file("x", b"x").end_of_file(),
        none().parts("").leave(),
        none().file("", b"x").file("y", b"y"),
        none().record(&TreeRecord::Hole { bytes: 1 }),
        tree(),
        tree().enter("").leave().leave(),
        tree().file("", b"x").leave(),
        tree().leave().leave(),
        tree().leave().enter(""),
        tree().leave().file("x", b"x"),
        tree().raw(b"x").leave(),
        tree().file("..", b"x").leave(),
        tree().file(".", b"x").leave(),
        tree().file("a/b", b"x").leave(),
        tree().file("/etc/x", b"x").leave(),
        tree().file("a\0b", b"x").leave(),
        tree().enter("..").file("x", b"x").leave().leave(),
        tree().symlink("x", "").leave(),
        tree().hard_link("x", "../outside").leave(),
        tree().hard_link("x", "/outside").leave(),
        tree().hard_link("x", "").leave(),
        tree().enter("d").leave().hard_link("x", "d").leave(),
        tree().file("x", &[0; 32 * 1024 + 1]).leave(),
        tree()
            .parts("x")
            .record(&TreeRecord::Hole { bytes: 1 })
            .leave(),
        Records(b"\x03\0\0\0\xff\xff\xff".to_vec()),
        Records(vec![0xff, 0xff, 0xff, 0x7f]),
    ];
    for (number, case) in cases.iter().enumerate() {
        let result = env.push("t", &case.0);
        assert_eq!(result.failure, Some(FailureKind::Invalid), "case {number}");
        let is_empty = |path| match fs::symlink_metadata(path) {
            Ok(status) if status.is_dir() => true,
            Ok(_) => number == 11,
            Err(_) => true,
        };
        assert!(is_empty(env.at("t")), "case {number}");
        for name in ["t/x", "t/d/x", "x", "etc"] {
            assert!(!env.at(name).exists(), "case {number}: {name}");
        }
        assert!(leftovers(&env.root()).is_empty(), "case {number}");
        let _ = fs::remove_dir_all(env.at("t"));
        let _ = fs::remove_file(env.at("t"));
    }
    assert_eq!(fs::read(env.at("outside")).unwrap(), b"mine");
}

#[test]
fn a_file_cannot_be_longer_than_a_file_can_be() {
    let mut env = TestEnv::new();
    let hole = |bytes| TreeRecord::Hole { bytes };
    for holes in [&[u64::MAX][..], &[1 << 62, 1 << 62], &[u64::MAX, 1]] {
        let mut records = tree().parts("x");
        for bytes in holes {
            records = records.record(&hole(*bytes));
        }
        let result = env.push("t", &records.end_of_file().leave().0);
        assert_eq!(result.failure, Some(FailureKind::Other));
        assert!(result.text.starts_with("t/x: "), "{}", result.text);
        assert_eq!(fs::read_dir(env.at("t")).unwrap().count(), 0);
    }
}

#[test]
fn a_hard_link_leads_to_a_file_of_the_tree_and_through_no_link() {
    let mut env = TestEnv::new();
    fs::create_dir_all(env.at("outside")).unwrap();
    fs::write(env.at("outside/secret"), "secret").unwrap();
    fs::create_dir_all(env.at("t")).unwrap();
    symlink("../outside", env.at("t/planted")).unwrap();
    symlink("../outside/secret", env.at("t/file")).unwrap();
    for to in ["planted/secret", "file", "missing"] {
        let result = env.push("t", &tree().hard_link("x", to).leave().0);
        assert!(result.failure.is_some(), "{to}");
        assert!(result.text.contains(to), "{}", result.text);
        assert!(!env.at("t/x").exists());
    }
    assert_eq!(fs::metadata(env.at("outside/secret")).unwrap().nlink(), 1);
}

#[test]
fn whoever_swaps_a_directory_for_a_link_meanwhile_leads_nothing_out_of_the_tree() {
    let mut env = TestEnv::new();
    fs::create_dir(env.at("outside")).unwrap();
    fs::write(env.at("outside/secret"), "secret").unwrap();
    fs::create_dir_all(env.at("t/d")).unwrap();
    fs::write(env.at("t/d/secret"), "public").unwrap();
    symlink("../outside", env.at("t/l")).unwrap();
    let records = tree()
        .enter("d")
        .file("new", b"x")
        .parts("large")
        .raw(b"x")
        .end_of_file()
        .symlink("link", "x")
        .leave()
        .hard_link("hard", "d/secret")
        .leave();
    let (directory, link) = (env.at("t/d"), env.at("t/l"));
    let swap = || {
        let (here, swap) = (rustix::fs::CWD, rustix::fs::RenameFlags::EXCHANGE);
        rustix::fs::renameat_with(here, &directory, here, &link, swap).unwrap();
    };
    race_against(swap, || {
        for _ in 0..2000 {
            // It may be rejected.
            let _ = env.push("t", &records.0);
        }
    });
    assert_eq!(fs::read_dir(env.at("outside")).unwrap().count(), 1);
    assert_eq!(fs::metadata(env.at("outside/secret")).unwrap().nlink(), 1);
    assert_eq!(fs::read(env.at("outside/secret")).unwrap(), b"secret");
}

#[test]
fn a_tree_that_is_too_deep_is_a_limit() {
    let mut env = TestEnv::new();
    let mut records = tree();
    for _ in 0..256 {
        records = records.enter("d");
    }
    let result = env.push("t", &records.0);
    assert_eq!(result.failure, Some(FailureKind::Limit));
}

#[test]
fn who_hangs_up_in_the_middle_of_a_file_leaves_the_old_one() {
    let mut env = TestEnv::new();
    fs::create_dir(env.at("t")).unwrap();
    fs::write(env.at("t/x"), "old").unwrap();
    let receive = Receive {
        path: b"t",
        owner: Owner::OfDirectory,
        sync: false,
    };
    let root = env.root();
    let stream = env.host.begin(&root, FileOperation::Receive(receive));
    let records = tree().file("done", b"done").parts("x").raw(&[1; 100_000]);
    env.host.write_stdin(stream, &records.0);
    // Credit comes with the start, and again when half a window was taken.
    let more = Records::default().raw(&[1; 100_000]).0;
    let credit = |reply: &&Reply| matches!(reply, Reply::Credit(id, _) if *id == stream);
    let mut credits = env.host.until(|reply| credit(&reply));
    for _ in 0..6 {
        env.host.write_stdin(stream, &more);
    }
    while credits.iter().filter(credit).count() < 2 {
        credits.extend(env.host.until(|reply| credit(&reply)));
    }
    env.host.cancel(stream);
    env.host.outcome(stream);
    assert!(env.host.output(stream, Channel::Stdout).is_empty());
    assert_eq!(fs::read(env.at("t/x")).unwrap(), b"old");
    assert_eq!(fs::read(env.at("t/done")).unwrap(), b"done");
    assert!(leftovers(&env.root()).is_empty());
    // The worker can do the next job.
    env.push("u", &tree().leave().0).output();
}

/// Only root can give files away.
#[test]
fn whose_entries_are_is_a_matter_of_choice() {
    if !rustix::process::geteuid().is_root() {
        println!("skipped: only root can give files away");
        return;
    }
    let mut env = TestEnv::new();
    let records = tree()
        .record(&TreeRecord::File {
            name: b"file",
            meta: vmcell_wire::files::Metadata {
                uid: 7,
                gid: 8,
                ..meta(0o6755)
            },
            content: Content::Inline(b"x"),
        })
        .enter("d")
        .symlink("link", "x")
        .leave()
        .leave();
    let ids = |env: &TestEnv, path: &str| {
        let status = fs::symlink_metadata(env.at(path)).unwrap();
        (status.uid(), status.gid())
    };
    let cases = [
        (Owner::OfRecord, [(0, 0), (7, 8), (0, 0)]),
        (Owner::User("11:12"), [(11, 12); 3]),
        (Owner::OfDirectory, [(3, 4); 3]),
    ];
    for (number, (owner, expected)) in cases.into_iter().enumerate() {
        let above = format!("above{number}");
        fs::create_dir(env.at(&above)).unwrap();
        std::os::unix::fs::chown(env.at(&above), Some(3), Some(4)).unwrap();
        let path = format!("{above}/t");
        let receive = Receive {
            path: path.as_bytes(),
            owner,
            sync: true,
        };
        let root = env.root();
        env.host
            .perform(&root, FileOperation::Receive(receive), &records.0)
            .output();
        for (name, expected) in ["t/d", "t/file", "t/d/link"].into_iter().zip(expected) {
            let path = format!("{above}/{name}");
            assert_eq!(ids(&env, &path), expected, "{path} {owner:?}");
        }
        let mode = fs::metadata(env.at(&format!("{path}/file")))
            .unwrap()
            .mode();
        assert_eq!(mode & 0o7777, 0o6755);
    }
    // A file that is replaced keeps its owner.
    std::os::unix::fs::chown(env.at("above2/t/file"), Some(21), Some(22)).unwrap();
    env.push("above2/t", &records.0).output();
    assert_eq!(ids(&env, "above2/t/file"), (21, 22));
}

/// A small file system that is unmounted when this is dropped.
struct Mounted(std::path::PathBuf);

impl Mounted {
    fn new(path: std::path::PathBuf) -> Option<Self> {
        fs::create_dir(&path).unwrap();
        let flags = rustix::mount::MountFlags::empty();
        rustix::mount::mount("tmpfs", &path, "tmpfs", flags, Some(c"size=1m")).ok()?;
        Some(Self(path))
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = rustix::mount::unmount(&self.0, rustix::mount::UnmountFlags::DETACH);
    }
}

#[test]
fn a_full_disk_is_a_limit_and_the_old_file_is_intact() {
    let mut env = TestEnv::new();
    let Some(_mounted) = Mounted::new(env.at("small")) else {
        println!("skipped: only root can mount a small disk");
        return;
    };
    fs::write(env.at("small/x"), "old").unwrap();
    let parts = tree()
        .parts("x")
        .raw(&vec![1; 2 * 1024 * 1024])
        .end_of_file();
    let mut many = tree();
    for number in 0..100 {
        many = many.file(&format!("y{number}"), &[1; 32 * 1024]);
    }
    for (records, name) in [(parts, "small/x: "), (many, "small/y")] {
        let result = env.push("small", &records.leave().0);
        assert_eq!(result.failure, Some(FailureKind::Limit));
        assert!(result.text.starts_with(name), "{}", result.text);
    }
    assert_eq!(fs::read(env.at("small/x")).unwrap(), b"old");
    for entry in fs::read_dir(env.at("small")).unwrap() {
        let entry = entry.unwrap();
        let expected = if entry.file_name() == "x" {
            3
        } else {
            32 * 1024
        };
        assert_eq!(entry.metadata().unwrap().len(), expected);
    }
}
