use std::{ffi::OsString, path::PathBuf};

use clap::{Args, value_parser};
use vmcell_cli::options::size;

use super::{place::Place, transfer::TransferOptions};

#[derive(Debug, Args)]
pub(crate) struct CpArguments {
    /// What to copy: a path of this machine, or ID:PATH for one of a VM. A path
    /// of a VM is absolute, or begins in /workspace; a name of this machine
    /// with a colon in it is written as ./NAME.
    #[arg(value_name = "SRC", value_parser = Place::parser())]
    pub(super) source: Place,
    /// Where to. If it is a directory or ends with `/`, the copy gets SRC's name
    /// in it; otherwise it becomes DST. Out of a VM, no part of DST may be a
    /// symbolic link.
    #[arg(value_name = "DST", value_parser = Place::parser())]
    pub(super) destination: Place,
    /// The path of this machine is a .tar, .tar.gz, .tgz or .tar.zst: it is
    /// unpacked into the VM's directory, or made from it.
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
    /// The VM, as `vmcell ps` lists it.
    #[arg(value_name = "ID")]
    pub(super) id: String,
    /// The directory; a relative path begins in /workspace.
    #[arg(value_name = "PATH", default_value = "/workspace")]
    pub(super) path: OsString,
    /// Permissions, owners, sizes and times too.
    #[arg(long, short)]
    pub(super) long: bool,
    /// Everything below, not only what is in it.
    #[arg(long, short = 'R')]
    pub(super) recursive: bool,
    /// So many levels below the directory.
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..))]
    pub(super) depth: Option<u32>,
    /// Only paths below the directory that match: `*` and `?` match within a
    /// name, `**` any number of directories.
    #[arg(long, value_name = "PATTERN")]
    pub(super) glob: Option<OsString>,
    /// Print the entries as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CatArguments {
    /// The VM, as `vmcell ps` lists it.
    #[arg(value_name = "ID")]
    pub(super) id: String,
    /// The file; a relative path begins in /workspace.
    #[arg(value_name = "PATH")]
    pub(super) path: OsString,
    /// Where to begin, in bytes or as in 64m (k, m, g).
    #[arg(long, value_name = "SIZE", default_value = "0", value_parser = size::parse)]
    pub(super) offset: u64,
    /// How much to print at most.
    #[arg(long, value_name = "SIZE", value_parser = size::parse)]
    pub(super) max_bytes: Option<u64>,
}

#[derive(Debug, Args)]
pub(crate) struct StatArguments {
    /// The VM, as `vmcell ps` lists it.
    #[arg(value_name = "ID")]
    pub(super) id: String,
    /// The file, directory or link; a relative path begins in /workspace.
    #[arg(value_name = "PATH")]
    pub(super) path: OsString,
    /// The SHA-256 of a file too.
    #[arg(long)]
    pub(super) sha256: bool,
    /// A link itself, not what it points to.
    #[arg(long)]
    pub(super) no_follow: bool,
    /// Print it as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct PatchArguments {
    /// The VM, as `vmcell ps` lists it.
    #[arg(value_name = "ID")]
    pub(super) id: String,
    /// The patch, as `git diff` or `diff -u` writes it. Without it, standard
    /// input.
    #[arg(value_name = "FILE")]
    pub(super) file: Option<PathBuf>,
    /// The directory that it is for; a relative path begins in /workspace.
    #[arg(long, short, value_name = "DIR", default_value = "/workspace")]
    pub(super) directory: OsString,
    /// How many lines at the beginning and the end of a hunk's context may
    /// differ.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(super) fuzz: u32,
    /// How many directories to take off the names in the patch. Without it, as
    /// many as the patch suggests.
    #[arg(long, short = 'p', value_name = "N")]
    pub(super) strip: Option<usize>,
    /// Print what was done as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct DiffArguments {
    /// The VM, as `vmcell ps` lists it.
    #[arg(value_name = "ID")]
    pub(super) id: String,
    /// The directory; a relative path begins in /workspace. The lines that are
    /// shown have 64 MiB together at most: files beyond that are only named.
    #[arg(value_name = "PATH", default_value = "/workspace")]
    pub(super) path: OsString,
    /// Compare with this manifest, not with what was there when the VM began
    /// its work.
    #[arg(long, value_name = "FILE")]
    pub(super) against: Option<PathBuf>,
    /// Compare nothing: write a manifest of what is there now.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["against", "name_status", "exit_code", "json"])]
    pub(super) save: Option<PathBuf>,
    /// Only say what changed, directories and special files included: A, D, M,
    /// or T for another type.
    #[arg(long, conflicts_with = "json")]
    pub(super) name_status: bool,
    /// Exit with 1 if anything changed.
    #[arg(long)]
    pub(super) exit_code: bool,
    /// Print the changes as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}
