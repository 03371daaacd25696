use std::{
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt, symlink},
};

use vmcell_wire::{
    FailureKind,
    files::{EditRecord, FileOperation, Owner, Precondition, record},
};

use super::test_env::{
    CONFLICT, INVALID, LIMIT, NOT_FOUND, Refusal, TestEnv, digest, is_root, refused,
};
use crate::race::race_against;

/// The encoded records of changes.
#[derive(Clone, Default)]
pub(crate) struct Edits(Vec<u8>);

impl Edits {
    fn record(&mut self, record: &EditRecord<'_>) {
        record::encode(&mut self.0, record).unwrap();
    }

    fn raw(&mut self, bytes: &[u8]) {
        self.0.extend(record::raw_header(bytes.len()).unwrap());
        self.0.extend(bytes);
    }

    fn perform(&self, env: &mut TestEnv) -> Result<(), Refusal> {
        self.perform_in(env, "")
    }

    pub(crate) fn perform_in(&self, env: &mut TestEnv, path: &str) -> Result<(), Refusal> {
        let operation = FileOperation::Edit {
            path: path.as_bytes(),
            owner: Owner::OfDirectory,
        };
        env.perform_with(operation, &self.0).map(|output| {
            assert!(output.is_empty());
        })
    }
}

pub(crate) fn put(
    edits: &mut Edits,
    path: &str,
    precondition: Precondition,
    bytes: impl AsRef<[u8]>,
) {
    put_with(edits, path, precondition, None, bytes);
}

fn put_with(
    edits: &mut Edits,
    path: &str,
    precondition: Precondition,
    mode: Option<u16>,
    bytes: impl AsRef<[u8]>,
) {
    let bytes = bytes.as_ref();
    edits.record(&EditRecord::Put {
        path: path.as_bytes(),
        precondition,
        mode,
        length: bytes.len() as u64,
    });
    // The bytes may come in several pieces.
    let (first, second) = bytes.split_at(bytes.len() / 2);
    edits.raw(first);
    edits.raw(second);
}

fn remove(edits: &mut Edits, path: &str, precondition: Precondition) {
    let path = path.as_bytes();
    edits.record(&EditRecord::Remove { path, precondition });
}

fn link(edits: &mut Edits, path: &str, precondition: Precondition, target: &str) {
    edits.record(&EditRecord::PutLink {
        path: path.as_bytes(),
        precondition,
        target: target.as_bytes(),
    });
}

fn set_mode(edits: &mut Edits, path: &str, mode: u16) {
    edits.record(&EditRecord::SetMode {
        path: path.as_bytes(),
        precondition: Precondition::Anything,
        mode,
    });
}

fn is(text: &str) -> Precondition {
    Precondition::Digest(digest(text))
}

/// Adds a change.
type Add = fn(&mut Edits);

/// Returns everything in the root: paths, permissions, and bytes or targets.
fn snapshot(env: &TestEnv) -> Vec<(String, u32, Vec<u8>)> {
    let describe = |path: String| {
        let place = env.at(&path);
        let status = fs::symlink_metadata(&place).unwrap();
        let bytes = if status.is_symlink() {
            fs::read_link(&place)
                .unwrap()
                .into_os_string()
                .into_encoded_bytes()
        } else if status.is_dir() {
            Vec::new()
        } else {
            fs::read(&place).unwrap()
        };
        (path, status.mode(), bytes)
    };
    env.listing().into_iter().map(describe).collect()
}

fn env_with_files() -> TestEnv {
    let env = TestEnv::new();
    fs::create_dir_all(env.at("d/e")).unwrap();
    fs::create_dir(env.at("locked")).unwrap();
    for path in ["one", "two", "d/three", "d/e/four", "locked/five"] {
        fs::write(env.at(path), path).unwrap();
    }
    fs::set_permissions(env.at("one"), fs::Permissions::from_mode(0o750)).unwrap();
    symlink("one", env.at("link")).unwrap();
    env
}

/// One change of each kind.
fn changes() -> Edits {
    let mut edits = Edits::default();
    put(&mut edits, "one", is("one"), "the new one");
    put_with(
        &mut edits,
        "new/dir/file",
        Precondition::Absent,
        Some(0o755),
        "new",
    );
    put(&mut edits, "empty", Precondition::Absent, "");
    link(&mut edits, "link", is("one"), "two");
    link(&mut edits, "new/link", Precondition::Absent, "../one");
    set_mode(&mut edits, "two", 0o400);
    remove(&mut edits, "d/e/four", is("d/e/four"));
    remove(&mut edits, "d/three", Precondition::Anything);
    edits
}

#[test]
fn all_changes_are_made() {
    let mut env = env_with_files();
    changes().perform(&mut env).unwrap();
    let all = snapshot(&env);
    let names: Vec<_> = all.iter().map(|(path, ..)| &**path).collect();
    assert_eq!(
        names,
        [
            "empty",
            "link",
            "locked",
            "locked/five",
            "new",
            "new/dir",
            "new/dir/file",
            "new/link",
            "one",
            "two"
        ]
    );
    let of = |wanted: &str| all.iter().find(|(path, ..)| path == wanted).unwrap();
    assert_eq!(
        (of("one").1 & 0o7777, &*of("one").2),
        (0o750, &b"the new one"[..])
    );
    assert_eq!(of("new/dir/file").1 & 0o7777, 0o755);
    assert_eq!(of("empty").1 & 0o7777, 0o644);
    assert_eq!(of("two").1 & 0o7777, 0o400);
    assert_eq!(of("link").2, b"two");
}

#[test]
fn one_change_that_cannot_be_made_prevents_all() {
    let mut env = env_with_files();
    let before = snapshot(&env);
    let bad: [(Add, FailureKind); 13] = [
        (
            |edits| put(edits, "d", Precondition::Anything, "x"),
            CONFLICT,
        ),
        (|edits| put(edits, "locked/five", is("4"), "x"), CONFLICT),
        (
            |edits| put(edits, "locked/five", Precondition::Absent, "x"),
            CONFLICT,
        ),
        (|edits| put(edits, "locked/six", is(""), "x"), CONFLICT),
        (
            |edits| remove(edits, "nothing", Precondition::Anything),
            CONFLICT,
        ),
        (
            |edits| remove(edits, "locked", Precondition::Anything),
            CONFLICT,
        ),
        (|edits| set_mode(edits, "locked", 0o700), CONFLICT),
        (
            |edits| put(edits, "locked/five/x", Precondition::Absent, "x"),
            NOT_FOUND,
        ),
        (
            |edits| put(edits, "link/x", Precondition::Absent, "x"),
            NOT_FOUND,
        ),
        (
            |edits| put(edits, "../outside/x", Precondition::Absent, "x"),
            INVALID,
        ),
        (|edits| put(edits, "/x", Precondition::Absent, "x"), INVALID),
        (
            |edits| put(edits, "one", Precondition::Anything, "x"),
            INVALID,
        ),
        (
            |edits| put(edits, "a\0b", Precondition::Anything, "x"),
            INVALID,
        ),
    ];
    for (number, (add, kind)) in bad.into_iter().enumerate() {
        let mut edits = changes();
        add(&mut edits);
        assert_eq!(refused(edits.perform(&mut env)), kind, "{number}");
        assert_eq!(snapshot(&env), before, "{number}");
        let mut first = Edits::default();
        add(&mut first);
        first.0.extend(changes().0);
        assert_eq!(refused(first.perform(&mut env)), kind, "{number}");
        assert_eq!(snapshot(&env), before, "{number}");
    }
    env.assert_outside_untouched();
}

#[test]
fn links_to_directories_in_the_tree_are_followed() {
    let mut env = env_with_files();
    symlink("d", env.at("to-d")).unwrap();
    symlink("../to-d/e", env.at("locked/to-e")).unwrap();
    let mut edits = Edits::default();
    put(&mut edits, "to-d/three", is("d/three"), "new");
    put(&mut edits, "to-d/f/six", Precondition::Absent, "six");
    set_mode(&mut edits, "locked/five", 0o600);
    remove(&mut edits, "locked/to-e/four", is("d/e/four"));
    edits.perform(&mut env).unwrap();
    assert_eq!(fs::read(env.at("d/three")).unwrap(), b"new");
    assert_eq!(fs::read(env.at("d/f/six")).unwrap(), b"six");
    assert!(!env.at("d/e/four").exists());
    for link in ["to-d", "locked/to-e"] {
        assert!(env.at(link).is_symlink(), "{link}");
    }
}

#[test]
fn links_out_of_the_tree_and_loops_prevent_all() {
    let mut env = env_with_files();
    fs::create_dir(env.at("tree")).unwrap();
    fs::write(env.at("tree/file"), "file").unwrap();
    for (name, target) in [
        ("up", "../d"),
        ("step", "up"),
        ("absolute", "/"),
        ("loop", "loop"),
        ("down", "../tree/../d"),
    ] {
        symlink(target, env.at(format!("tree/{name}"))).unwrap();
    }
    let before = snapshot(&env);
    for path in ["up", "step", "absolute", "loop", "down"] {
        let adds: [&dyn Fn(&mut Edits); 3] = [
            &|edits| put(edits, &format!("{path}/new"), Precondition::Absent, "x"),
            &|edits| put(edits, &format!("{path}/three"), Precondition::Anything, "x"),
            &|edits| remove(edits, &format!("{path}/three"), Precondition::Anything),
        ];
        for add in adds {
            let mut edits = Edits::default();
            put(&mut edits, "file", is("file"), "changed");
            add(&mut edits);
            refused(edits.perform_in(&mut env, "tree"));
            assert_eq!(snapshot(&env), before, "{path}");
        }
    }
    env.assert_outside_untouched();
}

#[test]
fn a_file_with_two_paths_is_not_changed_by_both() {
    let mut env = env_with_files();
    symlink("d", env.at("to-d")).unwrap();
    let before = snapshot(&env);
    let pairs: [[Add; 2]; 3] = [
        [
            |edits| put(edits, "d/three", is("d/three"), "1"),
            |edits| put(edits, "to-d/three", is("d/three"), "2"),
        ],
        [
            |edits| put(edits, "d/new", Precondition::Absent, "1"),
            |edits| put(edits, "to-d/new", Precondition::Absent, "2"),
        ],
        [
            |edits| remove(edits, "d/three", is("d/three")),
            |edits| put(edits, "to-d/three", is("d/three"), "2"),
        ],
    ];
    for [first, second] in pairs {
        let mut edits = Edits::default();
        first(&mut edits);
        second(&mut edits);
        refused(edits.perform(&mut env));
        assert_eq!(snapshot(&env), before);
    }
}

#[test]
fn bytes_that_are_too_many_or_too_few_prevent_all() {
    let mut env = env_with_files();
    let before = snapshot(&env);
    let announce = |edits: &mut Edits, length| {
        edits.record(&EditRecord::Put {
            path: b"short",
            precondition: Precondition::Anything,
            mode: None,
            length,
        });
        edits.raw(b"12345");
    };
    for length in [0, 4, 6, u64::MAX] {
        let mut edits = changes();
        announce(&mut edits, length);
        assert_eq!(refused(edits.perform(&mut env)), INVALID);
        set_mode(&mut edits, "one", 0);
        assert_eq!(refused(edits.perform(&mut env)), INVALID);
    }
    let mut cut = changes();
    announce(&mut cut, 5);
    cut.0.pop();
    assert_eq!(refused(cut.perform(&mut env)), INVALID);
    let mut stray = Edits::default();
    stray.raw(b"for nobody");
    assert_eq!(refused(stray.perform(&mut env)), INVALID);
    assert_eq!(snapshot(&env), before);
}

#[test]
fn a_failure_in_the_middle_of_the_commit_is_undone() {
    if !is_root() {
        return;
    }
    let mut env = env_with_files();
    let locked = fs::File::open(env.at("locked")).unwrap();
    let flags = rustix::fs::ioctl_getflags(&locked).unwrap();
    let immutable = flags | rustix::fs::IFlags::IMMUTABLE;
    if rustix::fs::ioctl_setflags(&locked, immutable).is_err() {
        eprintln!("skipped: the file system has no immutable directories");
        return;
    }
    let before = snapshot(&env);
    let inode = fs::metadata(env.at("one")).unwrap().ino();
    let late: [Add; 4] = [
        |edits| put(edits, "locked/five", Precondition::Anything, "x"),
        |edits| put(edits, "locked/six", Precondition::Anything, "x"),
        |edits| put(edits, "locked/a/b", Precondition::Anything, "x"),
        |edits| remove(edits, "locked/five", Precondition::Anything),
    ];
    for add in late {
        let mut edits = changes();
        add(&mut edits);
        let outcome = edits.perform(&mut env);
        let after = snapshot(&env);
        assert_eq!(refused(outcome), FailureKind::Denied);
        assert_eq!(after, before);
        assert_eq!(fs::metadata(env.at("one")).unwrap().ino(), inode);
    }
    rustix::fs::ioctl_setflags(&locked, flags).unwrap();
}

#[test]
fn a_file_becomes_a_directory_and_a_directory_a_file() {
    let mut env = env_with_files();
    let mut edits = Edits::default();
    put(&mut edits, "d", Precondition::Absent, "a file now");
    put(&mut edits, "one/below", Precondition::Absent, "x");
    remove(&mut edits, "one", is("one"));
    remove(&mut edits, "d/three", Precondition::Anything);
    let before = snapshot(&env);
    // There is more in it than is removed.
    assert_eq!(refused(edits.perform(&mut env)), CONFLICT);
    assert_eq!(snapshot(&env), before);
    fs::remove_dir_all(env.at("d/e")).unwrap();
    edits.perform(&mut env).unwrap();
    assert_eq!(fs::read(env.at("d")).unwrap(), b"a file now");
    assert_eq!(fs::read(env.at("one/below")).unwrap(), b"x");
    assert_eq!(
        env.listing(),
        [
            "d",
            "link",
            "locked",
            "locked/five",
            "one",
            "one/below",
            "two"
        ]
    );
}

#[test]
fn directories_that_become_empty_go_but_not_the_top() {
    let mut env = TestEnv::new();
    fs::create_dir_all(env.at("top/a/b/c")).unwrap();
    fs::write(env.at("top/a/b/c/file"), "").unwrap();
    let mut edits = Edits::default();
    remove(&mut edits, "a/b/c/file", Precondition::Anything);
    edits.perform_in(&mut env, "top").unwrap();
    assert_eq!(env.listing(), ["top"]);
}

#[test]
fn there_is_an_end_to_the_number_of_changes() {
    let mut env = TestEnv::new();
    let mut edits = Edits::default();
    for number in 0..10_001 {
        link(&mut edits, &format!("{number}"), Precondition::Absent, "x");
    }
    assert_eq!(refused(edits.perform(&mut env)), LIMIT);
    assert!(env.listing().is_empty());
}

#[test]
fn thousands_of_changes_are_made() {
    let mut env = TestEnv::new();
    let mut edits = Edits::default();
    for number in 0..1000 {
        put(
            &mut edits,
            &format!("{}/{number}", number % 20),
            Precondition::Absent,
            "x",
        );
    }
    edits.perform(&mut env).unwrap();
    assert_eq!(env.listing().len(), 1020);
    Edits::default().perform(&mut env).unwrap();
}

#[test]
fn a_file_that_changes_all_the_time_is_changed_whole_or_not_at_all() {
    let mut env = env_with_files();
    let path = env.at("two");
    let replace = || {
        fs::write(path.with_extension("new"), "racing").unwrap();
        fs::rename(path.with_extension("new"), &path).unwrap();
    };
    race_against(replace, || {
        for round in 0..500 {
            let mut edits = Edits::default();
            put(
                &mut edits,
                "one",
                Precondition::Anything,
                format!("{round}"),
            );
            put(&mut edits, "two", is("racing"), "racing");
            let before = fs::read(env.at("one")).unwrap();
            let outcome = edits.perform(&mut env);
            let after = fs::read(env.at("one")).unwrap();
            match outcome {
                Ok(()) => assert_eq!(after, format!("{round}").as_bytes()),
                Err(_) => assert_eq!(after, before),
            }
        }
    });
    assert!(!env.listing().iter().any(|path| path.contains(".vmcell-")));
}
