//! A tree of the host as a stream of records.

mod content;
mod known;
mod outgoing;
mod packer;
mod source;
mod walk;

use vmcell_wire::pattern::Filter;

pub use known::{Known, Lookup};
pub(super) use outgoing::Outgoing;
pub use packer::{Gone, Sink};
pub use source::Source;

use super::{LeftOut, TreeError, TreeLimits, TreeProgress};

/// How a tree is sent.
#[derive(Default)]
pub struct SendOptions<'a> {
    /// What to take of it.
    pub filter: Filter,
    /// How large it may be.
    pub limits: TreeLimits,
    /// What the receiver has at a path already. What is the same is not sent.
    pub known: Option<Lookup<'a>>,
    /// Is told of each entry and each piece of a file.
    pub progress: Option<&'a mut dyn FnMut(TreeProgress<'_>)>,
}

/// What was sent.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Sent {
    /// How many entries.
    pub entries: u64,
    /// How many bytes their files have.
    pub bytes: u64,
    /// How many entries the receiver had already.
    pub unchanged: u64,
    /// How many were left out: neither file nor directory nor link, or not to
    /// be read.
    pub left_out: u64,
    /// The first hundred of those.
    pub first_left_out: Vec<LeftOut>,
    /// How many extended attributes could not be read or did not fit.
    pub lost_xattrs: u64,
}

/// Sends a tree: the sink gets the stream of records in pieces of 256 KiB at
/// most.
///
/// With [`SendOptions::known`] the stream holds only what differs, and the
/// directories on the way to it; if the tree is one file that does not differ,
/// nothing at all.
///
/// # Errors
/// As [`TreeError`] says. The stream is then cut off within the tree, so its
/// receiver notices too.
pub fn send(
    source: Source,
    mut options: SendOptions<'_>,
    sink: Sink<'_>,
) -> Result<Sent, TreeError> {
    let mut tell = |progress: TreeProgress<'_>| {
        if let Some(tell) = &mut options.progress {
            tell(progress);
        }
    };
    let mut outgoing = Outgoing::new(options.limits, &mut tell, sink);
    match source {
        Source::Path(path) => {
            walk::send_path(&path, &options.filter, options.known, &mut outgoing)?;
        }
        #[cfg(feature = "archive")]
        Source::Archive { reader, name } => {
            super::archive::send(reader, &name, &options.filter, &mut outgoing)?;
        }
    }
    outgoing.finish()
}
