//! Trees that are sent, split into pieces, received and compared.

mod chance;
mod destinations;
mod full;
mod hostile;
mod race;
mod round_trip;
mod snapshot;
mod unchanged;

#[cfg(feature = "archive")]
mod archive_formats;
#[cfg(feature = "archive")]
mod archives;
#[cfg(feature = "archive")]
mod hostile_archives;

use std::path::Path;

use bytes::Bytes;
use vmcell_wire::files::{Content, Metadata, Time, TreeRecord, Xattrs, record};

use super::{
    Destination, ReceiveOptions, Received, Receiver, SendOptions, Sent, Source, TopSymlink,
    TreeError, send,
};

const PLAIN: Metadata<'static> = Metadata {
    mode: 0o644,
    uid: 0,
    gid: 0,
    modified: Time {
        seconds: 1_700_000_000,
        nanoseconds: 123_456_789,
    },
    xattrs: Xattrs::NONE,
};

/// Sends a tree into memory.
fn sent_with(source: Source, options: SendOptions<'_>) -> Result<(Vec<Bytes>, Sent), TreeError> {
    let mut pieces = Vec::new();
    let sent = send(source, options, &mut |piece: Bytes| {
        assert!((1..=256 * 1024).contains(&piece.len()));
        pieces.push(piece);
        Ok(())
    })?;
    Ok((pieces, sent))
}

fn sent(path: &Path) -> (Vec<Bytes>, Sent) {
    sent_with(Source::Path(path.to_owned()), SendOptions::default()).unwrap()
}

fn received_with<'p>(
    pieces: impl IntoIterator<Item = &'p [u8]>,
    destination: Destination,
    options: ReceiveOptions<'_>,
) -> Result<Received, TreeError> {
    let mut receiver = Receiver::new(destination, options)?;
    for piece in pieces {
        receiver.push(piece)?;
    }
    receiver.finish()
}

fn received<'p>(
    pieces: impl IntoIterator<Item = &'p [u8]>,
    path: &Path,
) -> Result<Received, TreeError> {
    let destination = Destination::Path(path.to_owned());
    let options = ReceiveOptions {
        top_symlink: TopSymlink::Allow,
        ..ReceiveOptions::default()
    };
    received_with(pieces, destination, options)
}

fn slices(pieces: &[Bytes]) -> impl Iterator<Item = &[u8]> {
    pieces.iter().map(|piece| &piece[..])
}

/// A stream that a test builds, valid or not.
#[derive(Default)]
struct Stream(Vec<u8>);

impl Stream {
    fn record(mut self, record: &TreeRecord<'_>) -> Self {
        record::encode(&mut self.0, record).unwrap();
        self
    }

    fn raw(mut self, bytes: &[u8]) -> Self {
        self.0
            .extend_from_slice(&record::raw_header(bytes.len()).unwrap());
        self.0.extend_from_slice(bytes);
        self
    }

    fn enter(self, name: &[u8]) -> Self {
        let meta = Some(Metadata {
            mode: 0o755,
            ..PLAIN
        });
        self.record(&TreeRecord::Enter { name, meta })
    }

    fn leave(self) -> Self {
        self.record(&TreeRecord::Leave)
    }

    fn file(self, name: &[u8], content: &[u8]) -> Self {
        self.record(&TreeRecord::File {
            name,
            meta: PLAIN,
            content: Content::Inline(content),
        })
    }

    fn parts(self, name: &[u8], size: u64) -> Self {
        self.record(&TreeRecord::File {
            name,
            meta: PLAIN,
            content: Content::Chunked { size },
        })
    }

    fn hole(self, bytes: u64) -> Self {
        self.record(&TreeRecord::Hole { bytes })
    }

    fn end_of_file(self) -> Self {
        self.record(&TreeRecord::EndOfFile)
    }

    fn symlink(self, name: &[u8], target: &[u8]) -> Self {
        self.record(&TreeRecord::Symlink {
            name,
            meta: PLAIN,
            target,
        })
    }

    fn hard_link(self, name: &[u8], to: &[u8]) -> Self {
        self.record(&TreeRecord::HardLink { name, to })
    }

    fn received(&self, path: &Path) -> Result<Received, TreeError> {
        received([&self.0[..]], path)
    }
}
