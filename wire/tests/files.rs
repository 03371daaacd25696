//! File operations: the exact bytes of their messages, and the record reader with
//! arbitrary input.
#![allow(clippy::unwrap_used)]

use proptest::{prelude::*, sample::Index};
use vmcell_wire::{
    Failure, FailureKind, Request, Stage, StreamId, WireError, encode,
    files::{
        Change, ChangeKind, Content, EditRecord, FileEntry, FileKind, FileOperation, FileReply,
        FileRequest, Metadata, Owner, Precondition, Receive, Send, Time, TreeRecord, Usage, Walk,
        Write, WriteMode, Xattrs, XattrsBuf,
        record::{self, Piece, Reader},
    },
    limits::{MAX_INLINE, MAX_PATH, MAX_RECORD, MAX_XATTRS},
};

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn message(value: &impl serde::Serialize) -> String {
    let mut bytes = Vec::new();
    record::encode(&mut bytes, value).unwrap();
    hex(&bytes)
}

/// Returns the bytes of a request after its header, the kind of request and the
/// root.
fn operation(operation: FileOperation<'_>) -> String {
    let mut bytes = Vec::new();
    let request = Request::Files(FileRequest {
        root: b"/w",
        operation,
    });
    encode::open(&mut bytes, StreamId::new(1).unwrap(), &request).unwrap();
    let text = hex(&bytes);
    text.split_once("010000020a022f77").unwrap().1.to_owned()
}

#[test]
fn golden_bytes_of_requests() {
    let owner = Owner::OfDirectory;
    let table = [
        (
            FileOperation::Read {
                path: b"p",
                offset: 300,
                length: u64::MAX,
            },
            "000170ac02ffffffffffffffffff01",
        ),
        (
            FileOperation::Write(Write {
                path: b"p",
                write_mode: WriteMode::At(5),
                precondition: Precondition::Absent,
                mode: Some(0o755),
                owner: Owner::User("u"),
                size: None,
                sync: true,
            }),
            "01017002050101ed030101750001",
        ),
        (
            FileOperation::Stat {
                path: b"p",
                follow: true,
                digest: false,
            },
            "0201700100",
        ),
        (
            FileOperation::Walk(Walk {
                path: b"p",
                depth: 1,
                top: true,
                glob: b"*",
                include: b"a",
                exclude: b"b",
                sorted: true,
                digest: false,
                names: true,
            }),
            "0301700101012a01610162010001",
        ),
        (
            FileOperation::MakeDirectory {
                path: b"p",
                mode: None,
                owner: Owner::OfRecord,
            },
            "0401700002",
        ),
        (
            FileOperation::Remove {
                path: b"p",
                tree: true,
            },
            "05017001",
        ),
        (
            FileOperation::Rename {
                from: b"p",
                to: b"q",
                replace: true,
            },
            "060170017101",
        ),
        (
            FileOperation::Copy {
                from: b"p",
                to: b"q",
                owner,
            },
            "070170017100",
        ),
        (
            FileOperation::SetMode {
                path: b"p",
                mode: 7,
                tree: false,
            },
            "0801700700",
        ),
        (
            FileOperation::SetOwner {
                path: b"p",
                owner,
                tree: true,
            },
            "0901700001",
        ),
        (
            FileOperation::Symlink {
                path: b"p",
                target: b"t",
                owner,
            },
            "0a0170017400",
        ),
        (
            FileOperation::Touch {
                path: b"p",
                modified: Some(Time {
                    seconds: -1,
                    nanoseconds: 2,
                }),
                owner,
            },
            "0b017001010200",
        ),
        (FileOperation::Usage { path: b"p" }, "0c0170"),
        (FileOperation::Sync { path: b"p" }, "0d0170"),
        (
            FileOperation::Watch {
                path: b"p",
                recursive: true,
                debounce_ms: 100,
            },
            "0e01700164",
        ),
        (
            FileOperation::Receive(Receive {
                path: b"p",
                owner,
                sync: false,
            }),
            "0f01700000",
        ),
        (
            FileOperation::Send(Send {
                path: b"p",
                include: b"",
                exclude: b"b",
            }),
            "100170000162",
        ),
        (FileOperation::Edit { path: b"p", owner }, "11017000"),
    ];
    for (value, bytes) in table {
        assert_eq!(operation(value), bytes, "{value:?}");
    }
}

#[test]
fn golden_bytes_of_answers() {
    let entry = FileEntry {
        path: b"p",
        kind: FileKind::Symlink,
        mode: 0o777,
        size: 1,
        allocated: 2,
        uid: 3,
        gid: 4,
        owner: "u",
        group: "g",
        modified: Time {
            seconds: 5,
            nanoseconds: 6,
        },
        links: 7,
        inode: 8,
        target: b"t",
        digest: None,
    };
    assert_eq!(
        message(&FileReply::Entry(entry)),
        concat!(
            "15000000", "00", "0170", "02", "ff03", "01020304", "01750167", "0a06", "0708", "0174",
            "00"
        )
    );
    let failure = Failure::from_errno(2, Stage::File, "x");
    let problem = FileReply::Problem {
        path: b"p",
        failure,
    };
    assert_eq!(
        message(&problem),
        "08000000010170 01020a0178".replace(' ', "")
    );
    let usage = Usage {
        entries: 1,
        directories: 2,
        bytes: 3,
        allocated: 4,
        problems: 5,
    };
    assert_eq!(message(&FileReply::Usage(usage)), "06000000020102030405");
    let change = Change {
        kind: ChangeKind::Overflow,
        path: b"",
    };
    assert_eq!(message(&FileReply::Change(change)), "03000000030400");
    let received = FileReply::Received {
        entries: 1,
        bytes: 2,
    };
    assert_eq!(message(&received), "03000000040102");
}

#[test]
fn golden_bytes_of_trees_and_edits() {
    let mut xattrs = XattrsBuf::new();
    assert!(xattrs.push(b"user.a", b"v"));
    let meta = Metadata {
        mode: 0o644,
        uid: 1,
        gid: 2,
        modified: Time {
            seconds: 3,
            nanoseconds: 4,
        },
        xattrs: xattrs.as_xattrs(),
    };
    let meta_bytes = "a40301020604 0a 06 757365722e61 0100 76".replace(' ', "");
    let plain = Metadata {
        xattrs: Xattrs::NONE,
        ..meta
    };
    let table = [
        (
            TreeRecord::Enter {
                name: b"n",
                meta: Some(meta),
            },
            format!("00016e01{meta_bytes}"),
        ),
        (TreeRecord::Leave, "01".to_owned()),
        (
            TreeRecord::File {
                name: b"n",
                meta: plain,
                content: Content::Inline(b"xy"),
            },
            "02016ea4030102060400000278 79".replace(' ', ""),
        ),
        (
            TreeRecord::File {
                name: b"n",
                meta: plain,
                content: Content::Chunked { size: 300 },
            },
            "02016ea403010206040001ac02".to_owned(),
        ),
        (TreeRecord::Hole { bytes: 5 }, "0305".to_owned()),
        (TreeRecord::EndOfFile, "04".to_owned()),
        (
            TreeRecord::Symlink {
                name: b"n",
                meta: plain,
                target: b"t",
            },
            "05016ea4030102060400 0174".replace(' ', ""),
        ),
        (
            TreeRecord::HardLink {
                name: b"n",
                to: b"a/b",
            },
            "06016e03612f62".to_owned(),
        ),
        (
            TreeRecord::Skipped {
                name: b"n",
                kind: Some(FileKind::Socket),
                failure: None,
            },
            "07016e010400".to_owned(),
        ),
    ];
    for (value, bytes) in table {
        let text = message(&value);
        assert_eq!(text.split_at(8).1, bytes, "{value:?}");
    }
    let precondition = Precondition::Digest([9; 32]);
    let digest = format!("02{}", "09".repeat(32));
    let table = [
        (
            EditRecord::Put {
                path: b"p",
                precondition,
                mode: None,
                length: 300,
            },
            format!("000170{digest}00ac02"),
        ),
        (
            EditRecord::PutLink {
                path: b"p",
                precondition: Precondition::Anything,
                target: b"t",
            },
            "010170000174".to_owned(),
        ),
        (
            EditRecord::SetMode {
                path: b"p",
                precondition: Precondition::Absent,
                mode: 5,
            },
            "0201700105".to_owned(),
        ),
        (
            EditRecord::Remove {
                path: b"p",
                precondition,
            },
            format!("030170{digest}"),
        ),
    ];
    for (value, bytes) in table {
        assert_eq!(message(&value).split_at(8).1, bytes, "{value:?}");
    }
    assert_eq!(hex(&record::raw_header(0x1234).unwrap()), "34120080");
}

#[test]
fn a_name_in_a_tree_is_one_name() {
    let meta = Metadata {
        mode: 0,
        uid: 0,
        gid: 0,
        modified: Time::default(),
        xattrs: Xattrs::NONE,
    };
    let long = [b'x'; 256];
    let bad: [&[u8]; 6] = [b".", b"..", b"a/b", b"/", b"a\0", &long];
    for name in bad {
        let records = [
            TreeRecord::Enter { name, meta: None },
            TreeRecord::File {
                name,
                meta,
                content: Content::Inline(b""),
            },
            TreeRecord::Symlink {
                name,
                meta,
                target: b"t",
            },
            TreeRecord::HardLink { name, to: b"a" },
            TreeRecord::HardLink {
                name: b"n",
                to: &[b"a/", name].concat(),
            },
            TreeRecord::Skipped {
                name,
                kind: None,
                failure: None,
            },
        ];
        for record in records {
            // A hard link's target may be a path of two names.
            let is_path = matches!(record, TreeRecord::HardLink { name: b"n", .. });
            let valid = is_path && name == b"a/b";
            assert_eq!(record.is_valid(), valid, "{record:?}");
        }
    }
    for to in [&b"/a"[..], b"", b"a/", b"a//b", b"../a"] {
        assert!(
            !TreeRecord::HardLink { name: b"n", to }.is_valid(),
            "{to:?}"
        );
    }
    let too_long = vec![b'x'; MAX_PATH];
    let linked = |target| TreeRecord::Symlink {
        name: b"n",
        meta,
        target,
    };
    assert!(!linked(&too_long).is_valid() && !linked(b"").is_valid() && !linked(b"a\0").is_valid());
    assert!(linked(b"../../anywhere").is_valid());
    let large = vec![0; MAX_INLINE + 1];
    let whole = |bytes| TreeRecord::File {
        name: b"n",
        meta,
        content: Content::Inline(bytes),
    };
    assert!(!whole(&large).is_valid() && whole(&large[1..]).is_valid());
    let mode = Metadata {
        mode: 0o10000,
        ..meta
    };
    assert!(
        !TreeRecord::Enter {
            name: b"n",
            meta: Some(mode)
        }
        .is_valid()
    );
}

#[test]
fn attributes_that_do_not_fit_are_left_out() {
    let mut xattrs = XattrsBuf::new();
    assert!(!xattrs.push(b"user.large", &vec![0; 1 << 16]));
    assert!(!xattrs.push(&[b'x'; 256], b""));
    assert!(!xattrs.push(b"zero\0byte", b""));
    assert!(xattrs.push(b"user.fits", &vec![1; MAX_XATTRS - 12]));
    assert!(!xattrs.push(b"user.more", b""));
    assert_eq!(xattrs.as_xattrs().iter().count(), 1);
}

/// What a reader returned for a channel, with adjacent raw bytes joined.
#[derive(Debug, Default, PartialEq, Eq)]
struct Read {
    messages: Vec<Vec<u8>>,
    raw: Vec<u8>,
    error: Option<WireError>,
    complete: bool,
}

fn read<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Read {
    let mut reader = Reader::new();
    let mut read = Read::default();
    for mut input in pieces {
        loop {
            match reader.next(&mut input) {
                Ok(None) => break,
                Ok(Some(Piece::Message(message))) => read.messages.push(message.to_vec()),
                Ok(Some(Piece::Raw(bytes))) => read.raw.extend_from_slice(bytes),
                Err(error) => {
                    read.error = Some(error);
                    return read;
                }
            }
        }
        assert!(input.is_empty());
    }
    read.complete = reader.is_between_records();
    read
}

proptest! {
    /// Records are read as they were written, for any split of the channel.
    #[test]
    fn records_survive_any_cuts(
        records in prop::collection::vec((any::<bool>(), prop::collection::vec(any::<u8>(), 0..200)), 0..8),
        cuts in prop::collection::vec(any::<Index>(), 0..20),
        end in any::<Index>(),
    ) {
        let mut bytes = Vec::new();
        let mut expected = Read { complete: true, ..Read::default() };
        for (is_raw, content) in &records {
            if *is_raw {
                bytes.extend(record::raw_header(content.len()).unwrap());
                bytes.extend(content);
                expected.raw.extend(content);
            } else {
                let before = bytes.len();
                record::encode(&mut bytes, &TreeRecord::HardLink { name: content, to: b"" }).unwrap();
                expected.messages.push(bytes[before + record::HEADER..].to_vec());
            }
        }
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
        cuts.extend([0, bytes.len()]);
        cuts.sort_unstable();
        let pieces = cuts.windows(2).map(|cut| &bytes[cut[0]..cut[1]]);
        prop_assert_eq!(&read(pieces), &expected);
        prop_assert_eq!(&read(bytes.chunks(1)), &expected);
        for (message, (_, content)) in expected.messages.iter().zip(records.iter().filter(|(is_raw, _)| !is_raw)) {
            let record: TreeRecord<'_> = record::decode(message).unwrap();
            prop_assert_eq!(record, TreeRecord::HardLink { name: content, to: b"" });
        }
        // A channel that ends within a record is never reported as complete.
        let cut = end.index(bytes.len() + 1);
        let part = read([&bytes[..cut]]);
        let whole = part.messages.len() == expected.messages.len() && part.raw == expected.raw;
        prop_assert!(!(part.complete && cut < bytes.len() && whole && expected.messages.len() == records.len()));
    }

    /// Arbitrary bytes: no panic, the same result for any split, and no message
    /// that is too large.
    #[test]
    fn any_bytes_are_read_alike(bytes in prop::collection::vec(any::<u8>(), 0..600), size in 1..50usize) {
        let whole = read([&bytes[..]]);
        prop_assert_eq!(&whole, &read(bytes.chunks(size)));
        for message in &whole.messages {
            prop_assert!(message.len() <= MAX_RECORD);
            let _ = record::decode::<FileReply<'_>>(message).map(|answer| answer.is_valid());
            let _ = record::decode::<TreeRecord<'_>>(message).map(|record| record.is_valid());
            let _ = record::decode::<EditRecord<'_>>(message).map(|record| record.is_valid());
        }
    }
}

#[test]
fn a_message_that_claims_too_much_is_refused_before_it_comes() {
    let claim = u32::try_from(MAX_RECORD + 1).unwrap().to_le_bytes();
    let read = read([&claim[..]]);
    assert_eq!(read.error, Some(WireError::TooLarge));
    let mut bytes = vec![1];
    let large = vec![0; MAX_RECORD];
    let record = TreeRecord::HardLink {
        name: &large,
        to: b"",
    };
    assert_eq!(
        record::encode(&mut bytes, &record),
        Err(WireError::TooLarge)
    );
    assert_eq!(bytes, [1]);
    assert_eq!(record::raw_header(1 << 31), Err(WireError::TooLarge));
}

#[test]
fn answers_keep_their_limits() {
    let long = vec![b'x'; MAX_PATH + 1];
    let text = "x".repeat(1000);
    let failure = Failure::new(FailureKind::Other, Stage::File, &text);
    for answer in [
        FileReply::Problem { path: b"", failure },
        FileReply::Problem {
            path: &long,
            failure: Failure::new(FailureKind::Other, Stage::File, ""),
        },
        FileReply::Change(Change {
            kind: ChangeKind::Created,
            path: &long,
        }),
    ] {
        assert!(!answer.is_valid(), "{answer:?}");
    }
}
