use clap::{Parser, Subcommand};
use vmcell_cli::options::manual::{CompletionsArguments, ManArguments};

use crate::{
    cat::CatArguments, child::ChildArguments, diff::DiffArguments, du::DuArguments,
    export::ExportArguments, find::FindArguments, flatten::FlattenArguments, grep::GrepArguments,
    info::InfoArguments, ls::LsArguments, seal::SealArguments, sha256::Sha256Arguments,
    stat::StatArguments, tree::TreeArguments,
};

const MORE: &str = "\
With --json, each line of output is a JSON object: an entry, or {\"problem\": ...} for an entry that
could not be read. If the command fails, the last line is {\"error\": ...}.

Exit codes: 0 success; 1 some entries could not be read (listed on standard error); 125 failure.
`grep` and `diff` exit like those programs: 1 if nothing matched or something differs, 2 if some
entries could not be read.

Examples:
  vmcell-disk ls stopped.qcow2 /workspace -l
  vmcell-disk diff base.ext4 stopped.qcow2 /workspace > work.patch
  vmcell-disk export stopped.qcow2 /workspace/results ./results";

/// Inspect the disk of a stopped VM without booting or mounting it.
#[derive(Debug, Parser)]
#[command(name = "vmcell-disk", version, max_term_width = 100, after_help = MORE)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: CliCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum CliCommand {
    /// List a directory.
    Ls(LsArguments),
    /// Print a directory tree.
    Tree(TreeArguments),
    /// Print files.
    Cat(CatArguments),
    /// Show the metadata of files, directories or links.
    Stat(StatArguments),
    /// Find entries by name, type, size or time.
    Find(FindArguments),
    /// Search file contents.
    Grep(GrepArguments),
    /// Show the disk usage of directories.
    Du(DuArguments),
    /// Print SHA-256 checksums of files, like `sha256sum`.
    Sha256(Sha256Arguments),
    /// Copy a file or a tree to this machine.
    Export(ExportArguments),
    /// Print the differences between two disks as a patch.
    Diff(DiffArguments),
    /// Show the layers, partitions and file system of a disk.
    Info(InfoArguments),
    /// Merge a disk and its layers into one sparse raw file.
    Flatten(FlattenArguments),
    /// Create a disk that stores only its differences from another one.
    Child(ChildArguments),
    /// Make a disk read-only, so that it can be a base for other disks.
    Seal(SealArguments),
    /// Print a shell completion script.
    Completions(CompletionsArguments),
    /// Print the manual page, or write the pages of all commands.
    Man(ManArguments),
}

impl CliCommand {
    /// Returns whether errors are printed as JSON.
    pub(crate) fn json(&self) -> bool {
        match self {
            Self::Ls(arguments) => arguments.json,
            Self::Tree(arguments) => arguments.json,
            Self::Stat(arguments) => arguments.json,
            Self::Find(arguments) => arguments.json,
            Self::Grep(arguments) => arguments.json,
            Self::Du(arguments) => arguments.json,
            Self::Sha256(arguments) => arguments.json,
            Self::Export(arguments) => arguments.json,
            Self::Diff(arguments) => arguments.json,
            Self::Info(arguments) => arguments.json,
            Self::Flatten(arguments) => arguments.json,
            Self::Child(arguments) => arguments.json,
            Self::Seal(arguments) => arguments.json,
            Self::Cat(_) | Self::Completions(_) | Self::Man(_) => false,
        }
    }
}
