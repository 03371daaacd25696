//! Builds and summarizes the records of a tree.

use vmcell_wire::files::{
    Content, Metadata, Time, TreeRecord, Xattrs,
    record::{self, Piece, Reader},
};

/// A stream of records under construction.
#[derive(Clone, Default)]
pub(crate) struct Records(pub(crate) Vec<u8>);

impl Records {
    pub(crate) fn record(mut self, record: &TreeRecord<'_>) -> Self {
        record::encode(&mut self.0, record).unwrap();
        self
    }

    pub(crate) fn raw(mut self, bytes: &[u8]) -> Self {
        self.0.extend(record::raw_header(bytes.len()).unwrap());
        self.0.extend(bytes);
        self
    }

    pub(crate) fn enter(self, name: &str) -> Self {
        self.record(&TreeRecord::Enter {
            name: name.as_bytes(),
            meta: Some(meta(0o755)),
        })
    }

    pub(crate) fn leave(self) -> Self {
        self.record(&TreeRecord::Leave)
    }

    pub(crate) fn file(self, name: &str, bytes: &[u8]) -> Self {
        self.record(&TreeRecord::File {
            name: name.as_bytes(),
            meta: meta(0o644),
            content: Content::Inline(bytes),
        })
    }

    pub(crate) fn parts(self, name: &str) -> Self {
        self.record(&TreeRecord::File {
            name: name.as_bytes(),
            meta: meta(0o644),
            content: Content::Chunked { size: 10 },
        })
    }

    pub(crate) fn end_of_file(self) -> Self {
        self.record(&TreeRecord::EndOfFile)
    }

    pub(crate) fn symlink(self, name: &str, target: &str) -> Self {
        self.record(&TreeRecord::Symlink {
            name: name.as_bytes(),
            meta: meta(0o777),
            target: target.as_bytes(),
        })
    }

    pub(crate) fn hard_link(self, name: &str, to: &str) -> Self {
        self.record(&TreeRecord::HardLink {
            name: name.as_bytes(),
            to: to.as_bytes(),
        })
    }
}

pub(crate) fn meta(mode: u16) -> Metadata<'static> {
    Metadata {
        mode,
        uid: 0,
        gid: 0,
        modified: Time {
            seconds: 1_000_000_000,
            nanoseconds: 123_456_789,
        },
        xattrs: Xattrs::NONE,
    }
}

/// Returns a line for each record of a stream; raw bytes by their number.
pub(crate) fn summarize(stream: &[u8]) -> Vec<String> {
    let mut reader = Reader::new();
    let mut input = stream;
    let mut lines: Vec<String> = Vec::new();
    let text = |name: &[u8]| String::from_utf8_lossy(name).into_owned();
    while let Some(piece) = reader.next(&mut input).unwrap() {
        let message = match piece {
            Piece::Message(message) => message,
            Piece::Raw(bytes) => {
                lines.push(format!("raw {}", bytes.len()));
                continue;
            }
        };
        let record: TreeRecord<'_> = record::decode(message).unwrap();
        assert!(record.is_valid(), "{record:?}");
        lines.push(match record {
            TreeRecord::Enter { name, .. } => format!("enter {}", text(name)),
            TreeRecord::Leave => "leave".into(),
            TreeRecord::File {
                name,
                content: Content::Inline(bytes),
                ..
            } => format!("whole {} {}", text(name), bytes.len()),
            TreeRecord::File { name, .. } => format!("parts {}", text(name)),
            TreeRecord::Hole { bytes } => format!("hole {bytes}"),
            TreeRecord::EndOfFile => "end".into(),
            TreeRecord::Symlink { name, target, .. } => {
                format!("symlink {} {}", text(name), text(target))
            }
            TreeRecord::HardLink { name, to } => format!("link {} {}", text(name), text(to)),
            TreeRecord::Skipped {
                name,
                kind,
                failure,
            } => format!(
                "skipped {} {kind:?} {:?}",
                text(name),
                failure.map(|f| f.kind)
            ),
            other => panic!("unexpected {other:?}"),
        });
    }
    assert!(reader.is_between_records());
    lines
}
