//! What is taken of a tree on its way into a VM or out of it, and how.

use clap::Args;
use vmcell::{
    Error,
    files::{FileOwner, Pull, Push},
    tree::TreeLimits,
};
use vmcell_cli::options::{Selection, size};

#[derive(Debug, Args)]
pub(crate) struct TransferOptions {
    #[command(flatten)]
    selection: Selection,
    /// Whose the copies are in the VM, names or numbers. Without it, they
    /// belong to whoever has the directory that they are in.
    #[arg(long, value_name = "USER[:GROUP]", conflicts_with = "keep_owners")]
    owner: Option<String>,
    /// Copies keep the numbers of their owners and groups. Out of a VM, that
    /// takes privileges.
    #[arg(long)]
    keep_owners: bool,
    /// Compare the bytes of files with those that the VM has, not size and
    /// time.
    #[arg(long, conflicts_with = "all")]
    checksum: bool,
    /// Copy also what the VM has already.
    #[arg(long)]
    all: bool,
    /// Out of a VM: if SRC is a symbolic link, make it one here. It leads
    /// wherever the VM says.
    #[arg(long)]
    allow_symlink: bool,
    /// How much may be copied at most, in bytes or as in 64m (k, m, g). Without
    /// it, 16g.
    #[arg(long, value_name = "SIZE", value_parser = size::parse)]
    limit_bytes: Option<u64>,
    /// How many entries may be copied at most. Without it, a million.
    #[arg(long, value_name = "N")]
    limit_entries: Option<u64>,
}

impl TransferOptions {
    /// The options for a tree that goes into a VM.
    pub(super) fn push(self, push: Push) -> Result<Push, Error> {
        if self.allow_symlink {
            return Err(Error::Invalid(
                "--allow-symlink is for copies out of a VM".to_owned(),
            ));
        }
        let mut push = push.limits(self.limits());
        for line in self.selection.included() {
            push = push.include(line);
        }
        for line in self.selection.excluded()? {
            push = push.exclude(line);
        }
        if let Some(owner) = self.owner {
            push = push.owner(FileOwner::user(owner));
        }
        if self.keep_owners {
            push = push.owner(FileOwner::OfSource);
        }
        if self.checksum {
            push = push.compare_digests();
        }
        if self.all {
            push = push.everything();
        }
        Ok(push)
    }

    /// The options for a tree that comes out of a VM.
    pub(super) fn pull(self, pull: Pull) -> Result<Pull, Error> {
        if self.owner.is_some() || self.checksum || self.all {
            return Err(Error::Invalid(
                "--owner, --checksum and --all are for copies into a VM".to_owned(),
            ));
        }
        let mut pull = pull.limits(self.limits());
        for line in self.selection.included() {
            pull = pull.include(line);
        }
        for line in self.selection.excluded()? {
            pull = pull.exclude(line);
        }
        if self.keep_owners {
            pull = pull.keep_owners();
        }
        if self.allow_symlink {
            pull = pull.allow_symlink();
        }
        Ok(pull)
    }

    fn limits(&self) -> TreeLimits {
        let mut limits = TreeLimits::default();
        if let Some(bytes) = self.limit_bytes {
            limits.bytes = bytes;
            limits.length = limits.length.max(bytes);
        }
        if let Some(entries) = self.limit_entries {
            limits.entries = entries;
        }
        limits
    }
}
