//! The listing of a tree, and its disk usage.

use std::{
    fs,
    os::unix::fs::{MetadataExt, symlink},
    path::Path,
};

use sha2::{Digest, Sha256};
use vmcell_wire::{
    FailureKind,
    files::{FileKind, FileOperation, Walk},
};

use super::test_env::{Entry, OwnedAnswer, TestEnv, walk};

fn env_with_files() -> TestEnv {
    let env = TestEnv::new();
    for directory in ["a/b/c", "z", "m/b"] {
        fs::create_dir_all(env.at(directory)).unwrap();
    }
    for file in [
        "a/1.rs",
        "a/b/2.rs",
        "a/b/c/3.rs",
        "a/b/c/4.o",
        "m/b/5.rs",
        "0",
    ] {
        fs::write(env.at(file), file).unwrap();
    }
    symlink("a/b", env.at("l")).unwrap();
    env
}

fn entries(env: &mut TestEnv, walk: Walk<'_>) -> Vec<Entry> {
    let answers = env.perform(FileOperation::Walk(walk)).answers();
    answers
        .into_iter()
        .map(|answer| match answer {
            OwnedAnswer::Entry(entry) => entry,
            other => panic!("unexpected {other:?}"),
        })
        .collect()
}

fn paths(env: &mut TestEnv, walk: Walk<'_>) -> Vec<String> {
    let text = |entry: Entry| String::from_utf8(entry.path).unwrap();
    entries(env, walk).into_iter().map(text).collect()
}

#[test]
fn everything_is_told_in_order() {
    let mut env = env_with_files();
    let all = [
        "0",
        "a",
        "a/1.rs",
        "a/b",
        "a/b/2.rs",
        "a/b/c",
        "a/b/c/3.rs",
        "a/b/c/4.o",
        "l",
        "m",
        "m/b",
        "m/b/5.rs",
        "z",
    ];
    assert_eq!(paths(&mut env, walk()), all);
    let mut unsorted = paths(
        &mut env,
        Walk {
            sorted: false,
            ..walk()
        },
    );
    unsorted.sort();
    assert_eq!(unsorted, all);
}

#[test]
fn a_walk_goes_as_deep_as_it_is_told_to() {
    let mut env = env_with_files();
    let mut with = |depth, top| {
        let walk = Walk {
            depth,
            top,
            ..walk()
        };
        paths(&mut env, walk)
    };
    assert_eq!(with(0, true), [""]);
    assert_eq!(with(0, false), [""; 0]);
    assert_eq!(with(1, true), ["", "0", "a", "l", "m", "z"]);
    assert_eq!(
        with(2, false),
        ["0", "a", "a/1.rs", "a/b", "l", "m", "m/b", "z"]
    );
}

#[test]
fn a_top_that_is_no_directory_is_all_there_is_and_links_lead_to_the_top() {
    let mut env = env_with_files();
    let mut with = |path| {
        let walk = Walk {
            path,
            depth: 1,
            ..walk()
        };
        paths(&mut env, walk)
    };
    assert_eq!(with(b"0"), [""]);
    assert_eq!(with(b"l"), ["2.rs", "c"]);
    assert_eq!(with(b"/a/b/"), ["2.rs", "c"]);
    for (path, kind) in [
        ("missing", FailureKind::NotFound),
        ("..", FailureKind::Denied),
    ] {
        let path = path.as_bytes();
        let result = env.perform(FileOperation::Walk(Walk { path, ..walk() }));
        assert_eq!(result.failure, Some(kind));
    }
}

#[test]
fn only_what_patterns_mean_is_told() {
    let mut env = env_with_files();
    let mut with = |glob: &str, include: &str, exclude: &str| {
        let walk = Walk {
            glob: glob.as_bytes(),
            include: include.as_bytes(),
            exclude: exclude.as_bytes(),
            ..walk()
        };
        paths(&mut env, walk)
    };
    assert_eq!(
        with("**/*.rs", "", ""),
        ["a/1.rs", "a/b/2.rs", "a/b/c/3.rs", "m/b/5.rs"]
    );
    assert_eq!(with("*/b", "", ""), ["a/b", "m/b"]);
    assert_eq!(with("", "", "b/"), ["0", "a", "a/1.rs", "l", "m", "z"]);
    assert_eq!(with("", "*.o\n/z", ""), ["a/b/c/4.o", "z"]);
    assert_eq!(with("a/**", "*.rs", "c"), ["a/1.rs", "a/b/2.rs"]);
    let bad = Walk {
        glob: b"a//b",
        ..walk()
    };
    let result = env.perform(FileOperation::Walk(bad));
    assert_eq!(result.failure, Some(FailureKind::Invalid));
}

#[test]
fn files_come_with_their_digests_and_links_with_their_targets() {
    let mut env = env_with_files();
    let large = vec![9; 300_000];
    fs::write(env.at("a/large"), &large).unwrap();
    let mode = rustix::fs::Mode::RWXU;
    rustix::fs::mkfifoat(rustix::fs::CWD, env.at("pipe"), mode).unwrap();
    let walk = Walk {
        digest: true,
        names: true,
        ..walk()
    };
    for entry in entries(&mut env, walk) {
        let path = env.at(std::str::from_utf8(&entry.path).unwrap());
        let status = fs::symlink_metadata(&path).unwrap();
        assert_eq!(entry.size, status.len());
        let expected = status
            .is_file()
            .then(|| Sha256::digest(fs::read(&path).unwrap()).into());
        assert_eq!(entry.digest, expected, "{path:?}");
        let is_link = entry.kind == FileKind::Symlink;
        assert_eq!(entry.target, if is_link { &b"a/b"[..] } else { b"" });
        if status.uid() == 0 {
            assert_eq!(entry.owner, "root");
        }
    }
    let lone = Walk {
        path: b"a/large",
        ..walk
    };
    let [entry] = &entries(&mut env, lone)[..] else {
        panic!("not one entry");
    };
    assert_eq!(entry.digest, Some(Sha256::digest(&large).into()));
}

#[test]
fn what_is_too_deep_is_a_problem_and_the_rest_is_told() {
    let mut env = TestEnv::new();
    let mut path = env.root();
    for _ in 0..300 {
        path.push("d");
        fs::create_dir(&path).unwrap();
    }
    fs::write(env.at("e"), "e").unwrap();
    let answers = env.perform(FileOperation::Walk(walk())).answers();
    let problems = answers
        .iter()
        .filter(|answer| matches!(answer, OwnedAnswer::Problem(_, FailureKind::Limit)));
    assert_eq!(problems.count(), 1);
    assert_eq!(answers.len(), 258);
    assert!(matches!(answers.last(), Some(OwnedAnswer::Entry(entry)) if entry.path == b"e"));
}

#[test]
fn a_path_that_is_too_long_is_a_problem_and_the_rest_is_told() {
    let mut env = TestEnv::new();
    let name = "n".repeat(250);
    // Longer than the kernel's limit for one path.
    let mut directory = fs::File::open(env.root()).unwrap();
    for _ in 0..18 {
        let mode = rustix::fs::Mode::RWXU;
        rustix::fs::mkdirat(&directory, name.as_str(), mode).unwrap();
        let flags = rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::DIRECTORY;
        directory = rustix::fs::openat(&directory, name.as_str(), flags, mode)
            .unwrap()
            .into();
    }
    fs::write(env.at("z"), "z").unwrap();
    let answers = env.perform(FileOperation::Walk(walk())).answers();
    assert!(
        answers
            .iter()
            .any(|answer| matches!(answer, OwnedAnswer::Problem(_, FailureKind::Limit)))
    );
    assert!(matches!(answers.last(), Some(OwnedAnswer::Entry(entry)) if entry.path == b"z"));
}

#[test]
fn a_walk_that_nobody_wants_any_more_ends() {
    let mut env = env_with_files();
    env.host.credit_automatically = false;
    let stream = env.host.begin(Path::new("/"), FileOperation::Walk(walk()));
    env.host.cancel(stream);
    env.host.outcome(stream);
    env.host.credit_automatically = true;
    assert_eq!(paths(&mut env, walk()).len(), 13);
}

#[test]
fn what_a_tree_takes_up_counts_a_file_of_many_names_once() {
    let mut env = env_with_files();
    fs::write(env.at("a/large"), vec![1; 100_000]).unwrap();
    for number in 0..10 {
        fs::hard_link(env.at("a/large"), env.at(&format!("a/large{number}"))).unwrap();
    }
    let answers = env.perform(FileOperation::Usage { path: b"a" }).answers();
    let [OwnedAnswer::Usage(usage)] = answers[..] else {
        panic!("unexpected {answers:?}");
    };
    assert_eq!(
        (usage.entries, usage.directories, usage.problems),
        (18, 3, 0)
    );
    let small: usize = ["a/1.rs", "a/b/2.rs", "a/b/c/3.rs", "a/b/c/4.o"]
        .map(str::len)
        .iter()
        .sum();
    assert_eq!(usage.bytes, 100_000 + small as u64);
    let allocated: u64 = [
        "a",
        "a/b",
        "a/b/c",
        "a/1.rs",
        "a/b/2.rs",
        "a/b/c/3.rs",
        "a/b/c/4.o",
        "a/large",
    ]
    .map(|path| fs::metadata(env.at(path)).unwrap().blocks() * 512)
    .iter()
    .sum();
    assert_eq!(usage.allocated, allocated);
    let answers = env
        .perform(FileOperation::Usage { path: b"a/1.rs" })
        .answers();
    assert!(
        matches!(answers[..], [OwnedAnswer::Usage(usage)] if usage.entries == 1 && usage.bytes == 6)
    );
}
