use std::{ffi::OsString, path::PathBuf};

use clap::{Args, value_parser};
use vmcell_cli::options::size;

use super::{path::PathArgument, transfer::TransferOptions};

#[derive(Debug, Args)]
pub(crate) struct CpArguments {
    /// Source: a path on this machine, or ID:PATH in a VM. A relative PATH
    /// starts at /workspace. Write a local name that contains a colon as
    /// ./NAME.
    #[arg(value_name = "SRC", value_parser = PathArgument::parser())]
    pub(super) source: PathArgument,
    /// Destination. If it is an existing directory or ends with `/`, the copy
    /// is placed in it under SRC's name. Out of a VM, no component of DST may
    /// be a symbolic link.
    #[arg(value_name = "DST", value_parser = PathArgument::parser())]
    pub(super) destination: PathArgument,
    /// The local path is a .tar, .tar.gz, .tgz or .tar.zst archive: unpack it
    /// into the VM's directory, or create it from that directory.
    #[arg(long)]
    pub(super) archive: bool,
    #[command(flatten)]
    pub(super) options: TransferOptions,
    /// Print what was copied as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct LsArguments {
    /// ID of the VM, as listed by `vmcell ps`.
    #[arg(value_name = "ID")]
    pub(super) id: String,
    /// Directory. A relative path starts at /workspace.
    #[arg(value_name = "PATH", default_value = "/workspace")]
    pub(super) path: OsString,
    /// Also print permissions, owners, sizes and times.
    #[arg(long, short)]
    pub(super) long: bool,
    /// List subdirectories recursively.
    #[arg(long, short = 'R')]
    pub(super) recursive: bool,
    /// Descend at most N levels below the directory.
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..))]
    pub(super) depth: Option<u32>,
    /// Only list paths below the directory that match PATTERN: `*` and `?`
    /// match within a name, `**` matches any number of directories.
    #[arg(long, value_name = "PATTERN")]
    pub(super) glob: Option<OsString>,
    /// Print the entries as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CatArguments {
    /// ID of the VM, as listed by `vmcell ps`.
    #[arg(value_name = "ID")]
    pub(super) id: String,
    /// File. A relative path starts at /workspace.
    #[arg(value_name = "PATH")]
    pub(super) path: OsString,
    /// Offset to start at, in bytes or with a suffix (k, m, g).
    #[arg(long, value_name = "SIZE", default_value = "0", value_parser = size::parse)]
    pub(super) offset: u64,
    /// Print at most this much.
    #[arg(long, value_name = "SIZE", value_parser = size::parse)]
    pub(super) max_bytes: Option<u64>,
}

#[derive(Debug, Args)]
pub(crate) struct StatArguments {
    /// ID of the VM, as listed by `vmcell ps`.
    #[arg(value_name = "ID")]
    pub(super) id: String,
    /// File, directory or link. A relative path starts at /workspace.
    #[arg(value_name = "PATH")]
    pub(super) path: OsString,
    /// Also print the SHA-256 of a file.
    #[arg(long)]
    pub(super) sha256: bool,
    /// Do not follow a symbolic link.
    #[arg(long)]
    pub(super) no_follow: bool,
    /// Print the metadata as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct PatchArguments {
    /// ID of the VM, as listed by `vmcell ps`.
    #[arg(value_name = "ID")]
    pub(super) id: String,
    /// Patch, as written by `git diff`, `diff -u` or `diff -c`. Default:
    /// standard input.
    #[arg(value_name = "FILE")]
    pub(super) file: Option<PathBuf>,
    /// Directory to apply the patch in. A relative path starts at /workspace.
    #[arg(long, short, value_name = "DIR", default_value = "/workspace")]
    pub(super) directory: OsString,
    /// Number of lines that may differ at the start and end of a hunk's
    /// context.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(super) fuzz: u32,
    /// Strip N leading components from the names in the patch. Default: derived
    /// from the patch.
    #[arg(long, short = 'p', value_name = "N")]
    pub(super) strip: Option<usize>,
    /// Print the patched files as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct DiffArguments {
    /// ID of the VM, as listed by `vmcell ps`.
    #[arg(value_name = "ID")]
    pub(super) id: String,
    /// Directory to compare. A relative path starts at /workspace. The patch
    /// shows at most 64 MiB of lines; files beyond that are only named.
    #[arg(value_name = "PATH", default_value = "/workspace")]
    pub(super) path: OsString,
    /// Compare with the manifest in FILE. Default: the workspace as it was when
    /// the VM's work began.
    #[arg(long, value_name = "FILE")]
    pub(super) against: Option<PathBuf>,
    /// Write a manifest of the current contents to FILE instead of comparing.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["against", "name_status", "exit_code", "json"])]
    pub(super) save: Option<PathBuf>,
    /// Only list what changed, including directories and special files: A
    /// (added), D (deleted), M (modified) or T (type changed).
    #[arg(long, conflicts_with = "json")]
    pub(super) name_status: bool,
    /// Exit with 1 if anything changed.
    #[arg(long)]
    pub(super) exit_code: bool,
    /// Print the changes as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}
