use std::{fs, os::unix::fs::symlink, path::Path};

use proptest::prelude::*;
use vmcell_wire::files::{Content, FileKind, Metadata, TreeRecord, XattrsBuf};

use super::{PLAIN, Stream, received_with, snapshot::snapshot};
use crate::transfer::{Destination, ReceiveOptions, Receiver, TreeError, TreeLimit};

/// Returns the error for a stream, and the names that it left.
fn refusal(stream: &Stream) -> (TreeError, Vec<String>) {
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("to");
    let error = stream.received(&to).unwrap_err();
    let left = match fs::read_dir(&to) {
        Ok(entries) => entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect(),
        Err(_) => Vec::new(),
    };
    assert!(fs::read_dir(folder.path()).unwrap().count() <= 1);
    (error, left)
}

#[test]
fn streams_that_are_no_trees_are_refused() {
    let stream = Stream::default;
    for (what, stream) in [
        ("nothing", stream()),
        ("a name first", stream().file(b"a", b"")),
        ("a hard link first", stream().hard_link(b"", b"a")),
        ("a leave first", stream().leave()),
        ("bytes first", stream().raw(b"a")),
        ("a hole first", stream().hole(1)),
        ("an end first", stream().end_of_file()),
        ("no leave", stream().enter(b"")),
        ("too many leaves", stream().enter(b"").leave().leave()),
        (
            "an entry behind the end",
            stream().file(b"", b"").file(b"", b""),
        ),
        (
            "bytes behind the end",
            stream().enter(b"").leave().raw(b"a"),
        ),
        ("no name inside", stream().enter(b"").file(b"", b"")),
        ("no end", stream().enter(b"").parts(b"a", 1).raw(b"a")),
        (
            "leave in a file",
            stream().enter(b"").parts(b"a", 1).leave(),
        ),
        (
            "a file in a file",
            stream().enter(b"").parts(b"a", 1).file(b"b", b""),
        ),
        (
            "bytes without a file",
            stream().enter(b"").raw(b"a").leave(),
        ),
        ("a bad name", stream().enter(b"").file(b"..", b"").leave()),
        ("a slash", stream().enter(b"").file(b"a/b", b"").leave()),
        ("a zero", stream().enter(b"").symlink(b"a\0", b"x").leave()),
        ("a dot", stream().enter(b"").enter(b".").leave().leave()),
        (
            "a link to what is not there",
            stream().enter(b"").hard_link(b"a", b"b").leave(),
        ),
        (
            "a link to a link",
            stream()
                .enter(b"")
                .symlink(b"a", b"/etc/passwd")
                .hard_link(b"b", b"a")
                .leave(),
        ),
        (
            "a link through a link",
            stream()
                .enter(b"")
                .symlink(b"a", b"/etc")
                .hard_link(b"b", b"a/passwd")
                .leave(),
        ),
        ("no record", Stream(vec![3, 0, 0, 0, 255, 255, 255])),
        ("a huge record", Stream(vec![255, 255, 255, 127])),
        ("half a record", Stream(vec![3, 0, 0])),
    ] {
        let (error, left) = refusal(&stream);
        assert!(
            matches!(error, TreeError::Malformed { .. }),
            "{what}: {error:?}"
        );
        assert!(left.iter().all(|name| name == "a"), "{what}: {left:?}");
    }
}

#[test]
fn an_unfinished_file_is_gone_when_the_receiver_is() {
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("to");
    let destination = Destination::Path(to.clone());
    let mut receiver = Receiver::new(destination, ReceiveOptions::default()).unwrap();
    let stream = Stream::default().enter(b"").file(b"a", b"").parts(b"b", 9);
    receiver.push(&stream.raw(b"bytes").0).unwrap();
    drop(receiver);
    assert_eq!(snapshot(&to).len(), 2);
}

#[test]
fn hard_links_go_to_files_of_this_transfer_only() {
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("to");
    fs::create_dir_all(&to).unwrap();
    fs::write(to.join("secret"), "older").unwrap();
    let stream = Stream::default().enter(b"").hard_link(b"a", b"secret");
    let error = stream.leave().received(&to).unwrap_err();
    assert!(matches!(error, TreeError::Malformed { .. }), "{error:?}");
    assert!(!to.join("a").exists());

    // A link to itself, and one over another name of the same file.
    let stream = Stream::default()
        .enter(b"")
        .file(b"a", b"x")
        .hard_link(b"a", b"a")
        .hard_link(b"b", b"a")
        .hard_link(b"b", b"a")
        .leave();
    stream.received(&to).unwrap();
    assert_eq!(
        fs::read_dir(&to).unwrap().count(),
        3,
        "nothing is left over"
    );
}

#[test]
fn a_link_that_the_guest_sends_is_never_followed_by_what_it_sends_next() {
    let folder = tempfile::tempdir().unwrap();
    let (to, outside) = (folder.path().join("to"), folder.path().join("outside"));
    fs::create_dir_all(&outside).unwrap();
    let target = outside.to_str().unwrap().as_bytes();
    Stream::default()
        .enter(b"")
        .symlink(b"a", target)
        .enter(b"a")
        .file(b"inside", b"x")
        .leave()
        .symlink(b"b", &[target, b"/file"].concat())
        .file(b"b", b"x")
        .leave()
        .received(&to)
        .unwrap();
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);
    assert_eq!(fs::read(to.join("a/inside")).unwrap(), b"x");
    assert!(fs::symlink_metadata(to.join("b")).unwrap().is_file());
}

#[test]
fn limits_hold_before_anything_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("to");
    let stream = Stream::default;
    let mut deep = stream().enter(b"");
    for _ in 0..256 {
        deep = deep.enter(b"d");
    }
    for (what, stream) in [
        (TreeLimit::Bytes, stream().enter(b"").file(b"f", &[1; 101])),
        (
            TreeLimit::Bytes,
            stream().enter(b"").parts(b"f", 5).raw(&[1; 101]),
        ),
        (
            TreeLimit::Length,
            stream().enter(b"").parts(b"f", 5).hole(1001),
        ),
        (
            TreeLimit::Length,
            stream().enter(b"").parts(b"f", 5).hole(1).hole(u64::MAX),
        ),
        (
            TreeLimit::Entries,
            (0..500).fold(stream().enter(b""), |stream, index| {
                stream.file(index.to_string().as_bytes(), b"")
            }),
        ),
        (TreeLimit::Depth, deep),
    ] {
        let mut options = ReceiveOptions::default();
        options.limits.bytes = 100;
        options.limits.length = 1000;
        options.limits.entries = 400;
        let destination = Destination::Path(to.clone());
        match received_with([&stream.0[..]], destination, options) {
            Err(TreeError::Limit { what: found, .. }) => assert_eq!(found, what),
            other => panic!("{other:?}"),
        }
        assert!(!to.join("f").exists());
    }
}

#[test]
fn attributes_other_than_those_of_users_are_not_set() {
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("to");
    let mut xattrs = XattrsBuf::new();
    assert!(xattrs.push(b"security.capability", b"x"));
    assert!(xattrs.push(b"trusted.overlay.opaque", b"y"));
    let meta = Metadata {
        xattrs: xattrs.as_xattrs(),
        ..PLAIN
    };
    let record = TreeRecord::File {
        name: b"",
        meta,
        content: Content::Inline(b"x"),
    };
    let received = Stream::default().record(&record).received(&to).unwrap();
    assert_eq!(received.lost_xattrs, 2);
}

#[test]
fn devices_are_told_and_not_made() {
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("to");
    let skipped = |name| TreeRecord::Skipped {
        name,
        kind: Some(FileKind::BlockDevice),
        failure: None,
    };
    let stream = Stream::default().enter(b"").record(&skipped(b"sda\x1b"));
    let received = stream.leave().received(&to).unwrap();
    assert_eq!((received.entries, received.skipped), (1, 1));
    assert_eq!(received.first_skipped[0].reason, "it is a block device");
    assert_eq!(snapshot(&to).len(), 1);

    let error = Stream::default().record(&skipped(b"")).received(&to);
    assert!(
        matches!(error, Err(TreeError::NotTransferable { .. })),
        "{error:?}"
    );
}

#[derive(Clone, Debug)]
enum Step {
    Enter(u8),
    Leave,
    File(u8),
    Parts(u8),
    Raw(u8),
    Hole(u16),
    End,
    Symlink(u8, u8),
    HardLink(u8, u8),
    Garbage(Vec<u8>),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..4_u8).prop_map(Step::Enter),
        3 => Just(Step::Leave),
        3 => (0..4_u8).prop_map(Step::File),
        1 => (0..4_u8).prop_map(Step::Parts),
        1 => any::<u8>().prop_map(Step::Raw),
        1 => any::<u16>().prop_map(Step::Hole),
        2 => Just(Step::End),
        3 => (0..4_u8, 0..6_u8).prop_map(|(name, to)| Step::Symlink(name, to)),
        2 => (0..4_u8, 0..6_u8).prop_map(|(name, to)| Step::HardLink(name, to)),
        1 => prop::collection::vec(any::<u8>(), 0..20).prop_map(Step::Garbage),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    /// No stream changes anything outside of the destination or leaves a
    /// temporary file.
    #[test]
    fn no_stream_gets_out(steps in prop::collection::vec(step(), 0..40)) {
        let folder = tempfile::tempdir().unwrap();
        let (to, outside) = (folder.path().join("to"), folder.path().join("outside"));
        fs::create_dir_all(outside.join("b")).unwrap();
        fs::write(outside.join("a"), "precious").unwrap();
        fs::create_dir_all(&to).unwrap();
        symlink(&outside, to.join("c")).unwrap();
        let before = snapshot(&outside);

        let outside_name = outside.to_str().unwrap().as_bytes();
        let names: [&[u8]; 4] = [b"a", b"b", b"c", b"d"];
        let targets: [&[u8]; 6] = [b"a", b"b/a", b"c/a", b"..", b"../outside", outside_name];
        let links: [&[u8]; 6] = [b"a", b"b/a", b"c/a", b"b", b"d/d/a", b"c/b"];
        let mut stream = Stream::default().enter(b"");
        for step in steps {
            stream = match step {
                Step::Enter(name) => stream.enter(names[name as usize]),
                Step::Leave => stream.leave(),
                Step::File(name) => stream.file(names[name as usize], b"guest"),
                Step::Parts(name) => stream.parts(names[name as usize], 10),
                Step::Raw(length) => stream.raw(&vec![7; length.into()]),
                Step::Hole(length) => stream.hole(length.into()),
                Step::End => stream.end_of_file(),
                Step::Symlink(name, to) => stream.symlink(names[name as usize], targets[to as usize]),
                Step::HardLink(name, to) => stream.hard_link(names[name as usize], links[to as usize]),
                Step::Garbage(bytes) => { stream.0.extend(bytes); stream }
            };
        }
        let _ = stream.received(&to);
        prop_assert_eq!(before, snapshot(&outside));
        prop_assert!(!has_temp_file(&to));
        prop_assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    }
}

fn has_temp_file(top: &Path) -> bool {
    let names = snapshot(top);
    names
        .keys()
        .any(|path| path.to_string_lossy().contains(".vmcell-"))
}
