//! What a watch tells. Nothing here waits for a time to pass: it waits for
//! what must be told.

use std::{
    fs::{self, File},
    io::Write,
    os::unix::fs::PermissionsExt,
};

use vmcell_wire::{
    Channel, FailureKind, StreamId,
    files::{ChangeKind, Work, record::Reader},
};

use super::job::{Field, Told, answers, more_answers};
use crate::client::Reply;

struct Watch {
    field: Field,
    stream: StreamId,
    /// How many bytes of answers were looked at.
    seen: usize,
    reader: Reader,
}

impl Watch {
    fn new(field: Field, path: &str, recursive: bool, debounce_ms: u32) -> Self {
        let mut field = field;
        let root = field.root();
        let work = Work::Watch {
            path: path.as_bytes(),
            recursive,
            debounce_ms,
        };
        let stream = field.host.begin(&root, work);
        let mut watch = Self {
            field,
            stream,
            seen: 0,
            reader: Reader::new(),
        };
        let first = watch.more();
        assert!(matches!(first[..], [Told::Entry(_)]), "{first:?}");
        watch
    }

    /// Does something while the workers stand still.
    fn behind_its_back(&mut self, something: impl FnOnce(&Field)) {
        let workers = self.field.workers();
        assert!(!workers.is_empty());
        let signal_all = |signal| {
            for worker in &workers {
                rustix::process::kill_process(*worker, signal).unwrap();
            }
        };
        signal_all(rustix::process::Signal::STOP);
        something(&self.field);
        signal_all(rustix::process::Signal::CONT);
    }

    /// What comes next.
    fn more(&mut self) -> Vec<Told> {
        let stream = self.stream;
        loop {
            let all = self.field.host.output(stream, Channel::Stdout);
            let new = all[self.seen..].to_vec();
            if !new.is_empty() {
                self.seen += new.len();
                return more_answers(&mut self.reader, &new);
            }
            let more = |reply: &Reply| match reply {
                Reply::Data(id, ..) | Reply::Failed(id, ..) | Reply::Done(id) => *id == stream,
                _ => false,
            };
            let reply = self.field.host.until(more);
            let is_over = |reply: &Reply| matches!(reply, Reply::Failed(..) | Reply::Done(_));
            let data = |reply: &Reply| matches!(reply, Reply::Data(..));
            assert!(
                reply.iter().any(data) || !reply.iter().any(is_over),
                "{reply:?}"
            );
        }
    }

    /// Reads until this is told, and answers all that was told up to then.
    fn until(&mut self, kind: ChangeKind, path: &str) -> Vec<(ChangeKind, String)> {
        let mut all = Vec::new();
        let wanted = (kind, path.to_owned());
        while !all.contains(&wanted) {
            for told in self.more() {
                match told {
                    Told::Change(kind, path) => {
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
    let field = Field::new();
    let mut watch = Watch::new(field, "", false, 0);
    fs::write(watch.field.at("a"), "").unwrap();
    watch.until(ChangeKind::Created, "a");
    // One change of the contents: a second one could be told together with the
    // new permissions, and would hide them.
    let mut file = File::options()
        .append(true)
        .open(watch.field.at("a"))
        .unwrap();
    file.write_all(b"more").unwrap();
    watch.until(ChangeKind::Modified, "a");
    fs::set_permissions(watch.field.at("a"), fs::Permissions::from_mode(0o600)).unwrap();
    watch.until(ChangeKind::Metadata, "a");
    fs::rename(watch.field.at("a"), watch.field.at("b")).unwrap();
    watch.until(ChangeKind::Created, "b");
    fs::remove_file(watch.field.at("b")).unwrap();
    watch.until(ChangeKind::Removed, "b");
}

#[test]
fn changes_of_one_path_within_a_while_are_told_once() {
    let field = Field::new();
    fs::write(field.at("old"), "").unwrap();
    let mut watch = Watch::new(field, "", false, 1000);
    // However slow this is, it is all one moment to the worker.
    watch.behind_its_back(|field| {
        for number in 0..100 {
            fs::write(field.at("a"), vec![1; number]).unwrap();
            fs::write(field.at("short-lived"), "").unwrap();
            fs::remove_file(field.at("short-lived")).unwrap();
        }
        fs::rename(field.at("old"), field.at("new")).unwrap();
    });
    let told = watch.until(ChangeKind::Created, "new");
    let expected = [
        (ChangeKind::Created, "a"),
        (ChangeKind::Removed, "old"),
        (ChangeKind::Created, "new"),
    ];
    assert_eq!(told, expected.map(|(kind, path)| (kind, path.to_owned())));
}

#[test]
fn nothing_is_missed_in_directories_that_are_new() {
    let field = Field::new();
    fs::create_dir_all(field.at("x/y")).unwrap();
    let mut watch = Watch::new(field, "", true, 0);
    fs::write(watch.field.at("x/y/known"), "").unwrap();
    watch.until(ChangeKind::Created, "x/y/known");
    for number in 0..200 {
        let directory = format!("x/d{number}/e/f");
        fs::create_dir_all(watch.field.at(&directory)).unwrap();
        fs::write(watch.field.at(&format!("{directory}/file")), "").unwrap();
        watch.until(ChangeKind::Created, &format!("{directory}/file"));
    }
}

#[test]
fn a_directory_that_is_moved_has_other_paths_from_then_on() {
    let field = Field::new();
    fs::create_dir_all(field.at("t/a/b")).unwrap();
    fs::create_dir(field.at("outside")).unwrap();
    let mut watch = Watch::new(field, "t", true, 0);
    fs::rename(watch.field.at("t/a"), watch.field.at("t/c")).unwrap();
    let told = watch.until(ChangeKind::Created, "c/b");
    assert!(
        told.contains(&(ChangeKind::Removed, "a".into())),
        "{told:?}"
    );
    fs::write(watch.field.at("t/c/b/file"), "").unwrap();
    watch.until(ChangeKind::Created, "c/b/file");
    fs::rename(watch.field.at("t/c"), watch.field.at("outside/c")).unwrap();
    fs::write(watch.field.at("outside/c/b/unseen"), "").unwrap();
    fs::write(watch.field.at("t/last"), "").unwrap();
    let told = watch.until(ChangeKind::Created, "last");
    assert!(
        !told.iter().any(|(_, path)| path.contains("unseen")),
        "{told:?}"
    );
}

#[test]
fn a_watch_ends_with_what_is_watched() {
    for is_file in [false, true] {
        let field = Field::new();
        if is_file {
            fs::write(field.at("t"), "").unwrap();
        } else {
            fs::create_dir(field.at("t")).unwrap();
        }
        let mut watch = Watch::new(field, "t", true, 0);
        if is_file {
            fs::write(watch.field.at("t"), "x").unwrap();
            watch.until(ChangeKind::Modified, "");
            fs::write(watch.field.at("u"), "y").unwrap();
            fs::rename(watch.field.at("u"), watch.field.at("t")).unwrap();
        } else {
            fs::remove_dir(watch.field.at("t")).unwrap();
        }
        watch.until(ChangeKind::Removed, "");
        let worked = watch.field.host.worked(watch.stream);
        assert_eq!(worked.failure, None);
    }
}

#[test]
fn the_root_itself_can_be_watched_to_its_end() {
    let outer = Field::new();
    let root = outer.at("r");
    fs::create_dir(&root).unwrap();
    let mut outer = outer;
    let work = Work::Watch {
        path: b"",
        recursive: true,
        debounce_ms: 0,
    };
    let stream = outer.host.begin(&root, work);
    outer
        .host
        .until(|reply| matches!(reply, Reply::Data(id, ..) if *id == stream));
    fs::remove_dir(&root).unwrap();
    let worked = outer.host.worked(stream);
    assert_eq!(worked.failure, None, "{}", worked.text);
    let told = answers(&worked.output);
    assert_eq!(
        told.last(),
        Some(&Told::Change(ChangeKind::Removed, Vec::new()))
    );
}

#[test]
fn more_than_the_kernel_can_hold_is_an_overflow_and_the_watch_goes_on() {
    let mut watch = Watch::new(Field::new(), "", true, 0);
    let limit = fs::read_to_string("/proc/sys/fs/inotify/max_queued_events").unwrap();
    let limit: usize = limit.trim().parse().unwrap();
    watch.behind_its_back(|field| {
        for _ in 0..limit {
            fs::write(field.at("file"), "").unwrap();
            fs::remove_file(field.at("file")).unwrap();
        }
        // This is not seen, and watched nevertheless.
        fs::create_dir(field.at("d")).unwrap();
    });
    watch.until(ChangeKind::Overflow, "");
    fs::write(watch.field.at("d/last"), "").unwrap();
    watch.until(ChangeKind::Created, "d/last");
}

#[test]
fn a_watch_that_nobody_wants_any_more_ends() {
    let mut watch = Watch::new(Field::new(), "", true, 1000);
    watch.field.host.cancel(watch.stream);
    watch.field.host.outcome(watch.stream);
    let missing = Work::Watch {
        path: b"missing",
        recursive: false,
        debounce_ms: 0,
    };
    let worked = watch.field.work(missing);
    assert_eq!(worked.failure, Some(FailureKind::NotFound));
}
