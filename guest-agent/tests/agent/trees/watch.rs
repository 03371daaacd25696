//! What a watch reports. These tests wait for reports, never for a time to pass.

use std::{
    fs::{self, File},
    io::Write,
    os::unix::fs::PermissionsExt,
};

use vmcell_wire::{
    Channel, FailureKind, StreamId,
    files::{ChangeKind, FileOperation, record::Reader},
};

use super::test_env::{OwnedAnswer, TestEnv, answers, more_answers};
use crate::client::Reply;

struct Watch {
    env: TestEnv,
    stream: StreamId,
    /// How many bytes of answers were decoded.
    seen: usize,
    reader: Reader,
}

impl Watch {
    fn new(env: TestEnv, path: &str, recursive: bool, debounce_ms: u32) -> Self {
        let mut env = env;
        let root = env.root();
        let operation = FileOperation::Watch {
            path: path.as_bytes(),
            recursive,
            debounce_ms,
        };
        let stream = env.host.begin(&root, operation);
        let mut watch = Self {
            env,
            stream,
            seen: 0,
            reader: Reader::new(),
        };
        let first = watch.more();
        assert!(matches!(first[..], [OwnedAnswer::Entry(_)]), "{first:?}");
        watch
    }

    /// Calls `something` while the workers are stopped.
    fn with_workers_stopped(&mut self, something: impl FnOnce(&TestEnv)) {
        let workers = self.env.workers();
        assert!(!workers.is_empty());
        let signal_all = |signal| {
            for worker in &workers {
                rustix::process::kill_process(*worker, signal).unwrap();
            }
        };
        signal_all(rustix::process::Signal::STOP);
        something(&self.env);
        signal_all(rustix::process::Signal::CONT);
    }

    /// Returns the next answers.
    fn more(&mut self) -> Vec<OwnedAnswer> {
        let stream = self.stream;
        loop {
            let all = self.env.host.output(stream, Channel::Stdout);
            let new = all[self.seen..].to_vec();
            if !new.is_empty() {
                self.seen += new.len();
                return more_answers(&mut self.reader, &new);
            }
            let more = |reply: &Reply| match reply {
                Reply::Data(id, ..) | Reply::Failed(id, ..) | Reply::Done(id) => *id == stream,
                _ => false,
            };
            let reply = self.env.host.until(more);
            let is_over = |reply: &Reply| matches!(reply, Reply::Failed(..) | Reply::Done(_));
            let data = |reply: &Reply| matches!(reply, Reply::Data(..));
            assert!(
                reply.iter().any(data) || !reply.iter().any(is_over),
                "{reply:?}"
            );
        }
    }

    /// Reads until this change is reported, and returns all changes up to then.
    fn until(&mut self, kind: ChangeKind, path: &str) -> Vec<(ChangeKind, String)> {
        let mut all = Vec::new();
        let wanted = (kind, path.to_owned());
        while !all.contains(&wanted) {
            for answer in self.more() {
                match answer {
                    OwnedAnswer::Change(kind, path) => {
                        all.push((kind, String::from_utf8(path).unwrap()));
                    }
                    other => panic!("unexpected {other:?}"),
                }
            }
        }
        all
    }
}

#[test]
fn what_happens_to_files_is_told() {
    let env = TestEnv::new();
    let mut watch = Watch::new(env, "", false, 0);
    fs::write(watch.env.at("a"), "").unwrap();
    watch.until(ChangeKind::Created, "a");
    // One change of the contents: a second one could be reported together with the
    // new permissions, and would hide them.
    let mut file = File::options()
        .append(true)
        .open(watch.env.at("a"))
        .unwrap();
    file.write_all(b"more").unwrap();
    watch.until(ChangeKind::Modified, "a");
    fs::set_permissions(watch.env.at("a"), fs::Permissions::from_mode(0o600)).unwrap();
    watch.until(ChangeKind::Metadata, "a");
    fs::rename(watch.env.at("a"), watch.env.at("b")).unwrap();
    watch.until(ChangeKind::Created, "b");
    fs::remove_file(watch.env.at("b")).unwrap();
    watch.until(ChangeKind::Removed, "b");
}

#[test]
fn changes_of_one_path_within_a_while_are_told_once() {
    let env = TestEnv::new();
    fs::write(env.at("old"), "").unwrap();
    let mut watch = Watch::new(env, "", false, 1000);
    // The worker sees all of this at once, however slow it is.
    watch.with_workers_stopped(|env| {
        for number in 0..100 {
            fs::write(env.at("a"), vec![1; number]).unwrap();
            fs::write(env.at("short-lived"), "").unwrap();
            fs::remove_file(env.at("short-lived")).unwrap();
        }
        fs::rename(env.at("old"), env.at("new")).unwrap();
    });
    let changes = watch.until(ChangeKind::Created, "new");
    let expected = [
        (ChangeKind::Created, "a"),
        (ChangeKind::Removed, "old"),
        (ChangeKind::Created, "new"),
    ];
    assert_eq!(
        changes,
        expected.map(|(kind, path)| (kind, path.to_owned()))
    );
}

#[test]
fn nothing_is_missed_in_directories_that_are_new() {
    let env = TestEnv::new();
    fs::create_dir_all(env.at("x/y")).unwrap();
    let mut watch = Watch::new(env, "", true, 0);
    fs::write(watch.env.at("x/y/known"), "").unwrap();
    watch.until(ChangeKind::Created, "x/y/known");
    for number in 0..200 {
        let directory = format!("x/d{number}/e/f");
        fs::create_dir_all(watch.env.at(&directory)).unwrap();
        fs::write(watch.env.at(&format!("{directory}/file")), "").unwrap();
        watch.until(ChangeKind::Created, &format!("{directory}/file"));
    }
}

#[test]
fn a_directory_that_is_moved_has_other_paths_from_then_on() {
    let env = TestEnv::new();
    fs::create_dir_all(env.at("t/a/b")).unwrap();
    fs::create_dir(env.at("outside")).unwrap();
    let mut watch = Watch::new(env, "t", true, 0);
    fs::rename(watch.env.at("t/a"), watch.env.at("t/c")).unwrap();
    let changes = watch.until(ChangeKind::Created, "c/b");
    assert!(
        changes.contains(&(ChangeKind::Removed, "a".into())),
        "{changes:?}"
    );
    fs::write(watch.env.at("t/c/b/file"), "").unwrap();
    watch.until(ChangeKind::Created, "c/b/file");
    fs::rename(watch.env.at("t/c"), watch.env.at("outside/c")).unwrap();
    fs::write(watch.env.at("outside/c/b/unseen"), "").unwrap();
    fs::write(watch.env.at("t/last"), "").unwrap();
    let changes = watch.until(ChangeKind::Created, "last");
    assert!(
        !changes.iter().any(|(_, path)| path.contains("unseen")),
        "{changes:?}"
    );
}

#[test]
fn a_watch_ends_with_what_is_watched() {
    for is_file in [false, true] {
        let env = TestEnv::new();
        if is_file {
            fs::write(env.at("t"), "").unwrap();
        } else {
            fs::create_dir(env.at("t")).unwrap();
        }
        let mut watch = Watch::new(env, "t", true, 0);
        if is_file {
            fs::write(watch.env.at("t"), "x").unwrap();
            watch.until(ChangeKind::Modified, "");
            fs::write(watch.env.at("u"), "y").unwrap();
            fs::rename(watch.env.at("u"), watch.env.at("t")).unwrap();
        } else {
            fs::remove_dir(watch.env.at("t")).unwrap();
        }
        watch.until(ChangeKind::Removed, "");
        let result = watch.env.host.finish_job(watch.stream);
        assert_eq!(result.failure, None);
    }
}

#[test]
fn the_root_itself_can_be_watched_to_its_end() {
    let outer = TestEnv::new();
    let root = outer.at("r");
    fs::create_dir(&root).unwrap();
    let mut outer = outer;
    let operation = FileOperation::Watch {
        path: b"",
        recursive: true,
        debounce_ms: 0,
    };
    let stream = outer.host.begin(&root, operation);
    outer
        .host
        .until(|reply| matches!(reply, Reply::Data(id, ..) if *id == stream));
    fs::remove_dir(&root).unwrap();
    let result = outer.host.finish_job(stream);
    assert_eq!(result.failure, None, "{}", result.text);
    let changes = answers(&result.output);
    assert_eq!(
        changes.last(),
        Some(&OwnedAnswer::Change(ChangeKind::Removed, Vec::new()))
    );
}

#[test]
fn more_than_the_kernel_can_hold_is_an_overflow_and_the_watch_goes_on() {
    let mut watch = Watch::new(TestEnv::new(), "", true, 0);
    let limit = fs::read_to_string("/proc/sys/fs/inotify/max_queued_events").unwrap();
    let limit: usize = limit.trim().parse().unwrap();
    watch.with_workers_stopped(|env| {
        for _ in 0..limit {
            fs::write(env.at("file"), "").unwrap();
            fs::remove_file(env.at("file")).unwrap();
        }
        // This event is lost, but the directory is watched nevertheless.
        fs::create_dir(env.at("d")).unwrap();
    });
    watch.until(ChangeKind::Overflow, "");
    fs::write(watch.env.at("d/last"), "").unwrap();
    watch.until(ChangeKind::Created, "d/last");
}

#[test]
fn a_watch_that_nobody_wants_any_more_ends() {
    let mut watch = Watch::new(TestEnv::new(), "", true, 1000);
    watch.env.host.cancel(watch.stream);
    watch.env.host.outcome(watch.stream);
    let missing = FileOperation::Watch {
        path: b"missing",
        recursive: false,
        debounce_ms: 0,
    };
    let result = watch.env.perform(missing);
    assert_eq!(result.failure, Some(FailureKind::NotFound));
}
