//! Options for copying trees into and out of a VM.

use clap::Args;
use vmcell::{
    Error,
    files::{FileOwner, Pull, Push},
    tree::TreeLimits,
};
use vmcell_cli::options::{PathFilter, size};

#[derive(Debug, Args)]
pub(crate) struct TransferOptions {
    #[command(flatten)]
    path_filter: PathFilter,
    /// Owner of the copies in the VM, by name or number. Default: the owner of
    /// the directory that they are created in.
    #[arg(long, value_name = "USER[:GROUP]", conflicts_with = "keep_owners")]
    owner: Option<String>,
    /// Keep numeric owners and groups. Out of a VM, this needs privileges.
    #[arg(long)]
    keep_owners: bool,
    /// Compare files with those in the VM by content instead of size and time.
    #[arg(long, conflicts_with = "all")]
    checksum: bool,
    /// Copy files even if the VM already has them unchanged.
    #[arg(long)]
    all: bool,
    /// Out of a VM: allow SRC to be a symbolic link. The link is created on
    /// this machine with whatever target the VM has set.
    #[arg(long)]
    allow_symlink: bool,
    /// Copy at most this much, in bytes or with a suffix (k, m, g). Default:
    /// 16g.
    #[arg(long, value_name = "SIZE", value_parser = size::parse)]
    limit_bytes: Option<u64>,
    /// Copy at most N entries. Default: 1000000.
    #[arg(long, value_name = "N")]
    limit_entries: Option<u64>,
}

impl TransferOptions {
    /// Applies the options to a copy into a VM.
    pub(super) fn apply_to_push(self, push: Push) -> Result<Push, Error> {
        if self.allow_symlink {
            return Err(Error::Invalid(
                "--allow-symlink is for copies out of a VM".to_owned(),
            ));
        }
        let mut push = push.limits(self.limits());
        for pattern in self.path_filter.include_patterns() {
            push = push.include(pattern);
        }
        for pattern in self.path_filter.exclude_patterns()? {
            push = push.exclude(pattern);
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
            push = push.send_unchanged();
        }
        Ok(push)
    }

    /// Applies the options to a copy out of a VM.
    pub(super) fn apply_to_pull(self, pull: Pull) -> Result<Pull, Error> {
        if self.owner.is_some() || self.checksum || self.all {
            return Err(Error::Invalid(
                "--owner, --checksum and --all are for copies into a VM".to_owned(),
            ));
        }
        let mut pull = pull.limits(self.limits());
        for pattern in self.path_filter.include_patterns() {
            pull = pull.include(pattern);
        }
        for pattern in self.path_filter.exclude_patterns()? {
            pull = pull.exclude(pattern);
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
