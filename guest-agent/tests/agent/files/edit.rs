use std::{
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt, symlink},
};

use vmcell_wire::{
    FailureKind,
    files::{EditRecord, Expect, Owner, Work, record},
};

use super::site::{CONFLICT, INVALID, LIMIT, NOT_FOUND, Refused, Site, digest, is_root, refused};
use crate::concurrent::with_concurrent;

/// Changes on their way.
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

    fn perform(&self, site: &mut Site) -> Result<(), Refused> {
        self.perform_in(site, "")
    }

    pub(crate) fn perform_in(&self, site: &mut Site, path: &str) -> Result<(), Refused> {
        let work = Work::Edit {
            path: path.as_bytes(),
            owner: Owner::OfDirectory,
        };
        site.work_with(work, &self.0).map(|output| {
            assert!(output.is_empty());
        })
    }
}

pub(crate) fn put(edits: &mut Edits, path: &str, expect: Expect, bytes: impl AsRef<[u8]>) {
    put_with(edits, path, expect, None, bytes);
}

fn put_with(
    edits: &mut Edits,
    path: &str,
    expect: Expect,
    mode: Option<u16>,
    bytes: impl AsRef<[u8]>,
) {
    let bytes = bytes.as_ref();
    edits.record(&EditRecord::Put {
        path: path.as_bytes(),
        expect,
        mode,
        length: bytes.len() as u64,
    });
    // In two pieces, as it may come.
    let (first, second) = bytes.split_at(bytes.len() / 2);
    edits.raw(first);
    edits.raw(second);
}

fn remove(edits: &mut Edits, path: &str, expect: Expect) {
    let path = path.as_bytes();
    edits.record(&EditRecord::Remove { path, expect });
}

fn link(edits: &mut Edits, path: &str, expect: Expect, target: &str) {
    edits.record(&EditRecord::PutLink {
        path: path.as_bytes(),
        expect,
        target: target.as_bytes(),
    });
}

fn set_mode(edits: &mut Edits, path: &str, mode: u16) {
    edits.record(&EditRecord::SetMode {
        path: path.as_bytes(),
        expect: Expect::Anything,
        mode,
    });
}

fn is(text: &str) -> Expect {
    Expect::Digest(digest(text))
}

/// Adds a change.
type Add = fn(&mut Edits);

/// Everything in the root: paths, permissions, and bytes or targets.
fn snapshot(site: &Site) -> Vec<(String, u32, Vec<u8>)> {
    let describe = |path: String| {
        let place = site.at(&path);
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
    site.listing().into_iter().map(describe).collect()
}

fn site_with_files() -> Site {
    let site = Site::new();
    fs::create_dir_all(site.at("d/e")).unwrap();
    fs::create_dir(site.at("locked")).unwrap();
    for path in ["one", "two", "d/three", "d/e/four", "locked/five"] {
        fs::write(site.at(path), path).unwrap();
    }
    fs::set_permissions(site.at("one"), fs::Permissions::from_mode(0o750)).unwrap();
    symlink("one", site.at("link")).unwrap();
    site
}

/// One of each sort.
fn changes() -> Edits {
    let mut edits = Edits::default();
    put(&mut edits, "one", is("one"), "the new one");
    put_with(
        &mut edits,
        "new/dir/file",
        Expect::Absent,
        Some(0o755),
        "new",
    );
    put(&mut edits, "empty", Expect::Absent, "");
    link(&mut edits, "link", is("one"), "two");
    link(&mut edits, "new/link", Expect::Absent, "../one");
    set_mode(&mut edits, "two", 0o400);
    remove(&mut edits, "d/e/four", is("d/e/four"));
    remove(&mut edits, "d/three", Expect::Anything);
    edits
}

#[test]
fn all_changes_are_made() {
    let mut site = site_with_files();
    changes().perform(&mut site).unwrap();
    let all = snapshot(&site);
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
    let mut site = site_with_files();
    let before = snapshot(&site);
    let bad: [(Add, FailureKind); 13] = [
        (|edits| put(edits, "d", Expect::Anything, "x"), CONFLICT),
        (|edits| put(edits, "locked/five", is("4"), "x"), CONFLICT),
        (
            |edits| put(edits, "locked/five", Expect::Absent, "x"),
            CONFLICT,
        ),
        (|edits| put(edits, "locked/six", is(""), "x"), CONFLICT),
        (|edits| remove(edits, "nothing", Expect::Anything), CONFLICT),
        (|edits| remove(edits, "locked", Expect::Anything), CONFLICT),
        (|edits| set_mode(edits, "locked", 0o700), CONFLICT),
        (
            |edits| put(edits, "locked/five/x", Expect::Absent, "x"),
            NOT_FOUND,
        ),
        (|edits| put(edits, "link/x", Expect::Absent, "x"), INVALID),
        (
            |edits| put(edits, "../outside/x", Expect::Absent, "x"),
            INVALID,
        ),
        (|edits| put(edits, "/x", Expect::Absent, "x"), INVALID),
        (|edits| put(edits, "one", Expect::Anything, "x"), INVALID),
        (|edits| put(edits, "a\0b", Expect::Anything, "x"), INVALID),
    ];
    for (number, (add, kind)) in bad.into_iter().enumerate() {
        let mut edits = changes();
        add(&mut edits);
        assert_eq!(refused(edits.perform(&mut site)), kind, "{number}");
        assert_eq!(snapshot(&site), before, "{number}");
        let mut first = Edits::default();
        add(&mut first);
        first.0.extend(changes().0);
        assert_eq!(refused(first.perform(&mut site)), kind, "{number}");
        assert_eq!(snapshot(&site), before, "{number}");
    }
    site.assert_outside_untouched();
}

#[test]
fn bytes_that_are_too_many_or_too_few_prevent_all() {
    let mut site = site_with_files();
    let before = snapshot(&site);
    let announce = |edits: &mut Edits, length| {
        edits.record(&EditRecord::Put {
            path: b"short",
            expect: Expect::Anything,
            mode: None,
            length,
        });
        edits.raw(b"12345");
    };
    for length in [0, 4, 6, u64::MAX] {
        let mut edits = changes();
        announce(&mut edits, length);
        assert_eq!(refused(edits.perform(&mut site)), INVALID);
        set_mode(&mut edits, "one", 0);
        assert_eq!(refused(edits.perform(&mut site)), INVALID);
    }
    let mut cut = changes();
    announce(&mut cut, 5);
    cut.0.pop();
    assert_eq!(refused(cut.perform(&mut site)), INVALID);
    let mut stray = Edits::default();
    stray.raw(b"for nobody");
    assert_eq!(refused(stray.perform(&mut site)), INVALID);
    assert_eq!(snapshot(&site), before);
}

#[test]
fn a_failure_in_the_middle_of_the_commit_is_undone() {
    if !is_root() {
        return;
    }
    let mut site = site_with_files();
    let locked = fs::File::open(site.at("locked")).unwrap();
    let flags = rustix::fs::ioctl_getflags(&locked).unwrap();
    let immutable = flags | rustix::fs::IFlags::IMMUTABLE;
    if rustix::fs::ioctl_setflags(&locked, immutable).is_err() {
        eprintln!("skipped: the file system has no immutable directories");
        return;
    }
    let before = snapshot(&site);
    let inode = fs::metadata(site.at("one")).unwrap().ino();
    let late: [Add; 4] = [
        |edits| put(edits, "locked/five", Expect::Anything, "x"),
        |edits| put(edits, "locked/six", Expect::Anything, "x"),
        |edits| put(edits, "locked/a/b", Expect::Anything, "x"),
        |edits| remove(edits, "locked/five", Expect::Anything),
    ];
    for add in late {
        let mut edits = changes();
        add(&mut edits);
        let outcome = edits.perform(&mut site);
        let after = snapshot(&site);
        assert_eq!(refused(outcome), FailureKind::Denied);
        assert_eq!(after, before);
        assert_eq!(fs::metadata(site.at("one")).unwrap().ino(), inode);
    }
    rustix::fs::ioctl_setflags(&locked, flags).unwrap();
}

#[test]
fn a_file_becomes_a_directory_and_a_directory_a_file() {
    let mut site = site_with_files();
    let mut edits = Edits::default();
    put(&mut edits, "d", Expect::Absent, "a file now");
    put(&mut edits, "one/below", Expect::Absent, "x");
    remove(&mut edits, "one", is("one"));
    remove(&mut edits, "d/three", Expect::Anything);
    let before = snapshot(&site);
    // There is more in it than is removed.
    assert_eq!(refused(edits.perform(&mut site)), CONFLICT);
    assert_eq!(snapshot(&site), before);
    fs::remove_dir_all(site.at("d/e")).unwrap();
    edits.perform(&mut site).unwrap();
    assert_eq!(fs::read(site.at("d")).unwrap(), b"a file now");
    assert_eq!(fs::read(site.at("one/below")).unwrap(), b"x");
    assert_eq!(
        site.listing(),
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
    let mut site = Site::new();
    fs::create_dir_all(site.at("top/a/b/c")).unwrap();
    fs::write(site.at("top/a/b/c/file"), "").unwrap();
    let mut edits = Edits::default();
    remove(&mut edits, "a/b/c/file", Expect::Anything);
    edits.perform_in(&mut site, "top").unwrap();
    assert_eq!(site.listing(), ["top"]);
}

#[test]
fn there_is_an_end_to_the_number_of_changes() {
    let mut site = Site::new();
    let mut edits = Edits::default();
    for number in 0..10_001 {
        link(&mut edits, &format!("{number}"), Expect::Absent, "x");
    }
    assert_eq!(refused(edits.perform(&mut site)), LIMIT);
    assert!(site.listing().is_empty());
}

#[test]
fn thousands_of_changes_are_made() {
    let mut site = Site::new();
    let mut edits = Edits::default();
    for number in 0..1000 {
        put(
            &mut edits,
            &format!("{}/{number}", number % 20),
            Expect::Absent,
            "x",
        );
    }
    edits.perform(&mut site).unwrap();
    assert_eq!(site.listing().len(), 1020);
    Edits::default().perform(&mut site).unwrap();
}

#[test]
fn a_file_that_changes_all_the_time_is_changed_whole_or_not_at_all() {
    let mut site = site_with_files();
    let path = site.at("two");
    let replace = || {
        fs::write(path.with_extension("new"), "racing").unwrap();
        fs::rename(path.with_extension("new"), &path).unwrap();
    };
    with_concurrent(replace, || {
        for round in 0..500 {
            let mut edits = Edits::default();
            put(&mut edits, "one", Expect::Anything, format!("{round}"));
            put(&mut edits, "two", is("racing"), "racing");
            let before = fs::read(site.at("one")).unwrap();
            let outcome = edits.perform(&mut site);
            let after = fs::read(site.at("one")).unwrap();
            match outcome {
                Ok(()) => assert_eq!(after, format!("{round}").as_bytes()),
                Err(_) => assert_eq!(after, before),
            }
        }
    });
    assert!(!site.listing().iter().any(|path| path.contains(".vmcell-")));
}
