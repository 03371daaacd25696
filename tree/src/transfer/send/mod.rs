//! Sends a tree of the host as a stream of records.

mod content;
mod existing;
mod packer;
mod record_sender;
mod source;
mod walk;

use vmcell_wire::pattern::Filter;

pub use existing::{ExistingEntry, ExistingLookup};
pub use packer::{Sink, SinkClosed};
pub(super) use record_sender::RecordSender;
pub use source::Source;

use super::{SkippedEntry, TreeError, TreeLimits, TreeProgress};

/// How to send a tree.
#[derive(Default)]
pub struct SendOptions<'a> {
    /// Which entries to send.
    pub filter: Filter,
    /// How large the tree may be.
    pub limits: TreeLimits,
    /// Looks up what the receiver already has. Equal entries are not sent.
    pub existing: Option<ExistingLookup<'a>>,
    /// Called for each entry and each piece of a file.
    pub progress: Option<&'a mut dyn FnMut(TreeProgress<'_>)>,
}

/// The result of sending a tree.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Sent {
    /// The number of entries that were sent.
    pub entries: u64,
    /// The size of their files in bytes.
    pub bytes: u64,
    /// The number of entries that the receiver had already.
    pub unchanged: u64,
    /// The number of skipped entries: not a file, directory or symbolic link,
    /// or not readable.
    pub skipped: u64,
    /// The first hundred skipped entries.
    pub first_skipped: Vec<SkippedEntry>,
    /// The number of extended attributes that could not be read or did not fit.
    pub lost_xattrs: u64,
}

/// Sends a tree: passes the stream of records to `sink`, in pieces of at most
/// 256 KiB.
///
/// With [`SendOptions::existing`] the stream contains only entries that differ
/// and their parent directories. If the tree is one file that does not differ,
/// the stream is empty.
///
/// # Errors
/// See [`TreeError`]. The stream then ends in the middle of the tree, so the
/// receiver notices too.
pub fn send(
    source: Source,
    mut options: SendOptions<'_>,
    sink: Sink<'_>,
) -> Result<Sent, TreeError> {
    let mut report = |progress: TreeProgress<'_>| {
        if let Some(report) = &mut options.progress {
            report(progress);
        }
    };
    let mut sender = RecordSender::new(options.limits, &mut report, sink);
    match source {
        Source::Path(path) => {
            walk::send_path(&path, &options.filter, options.existing, &mut sender)?;
        }
        #[cfg(feature = "archive")]
        Source::Archive { reader, name } => {
            super::archive::send(reader, &name, &options.filter, &mut sender)?;
        }
    }
    sender.finish()
}
