use clap::{Parser, Subcommand};
use vmcell_cli::options::manual::{CompletionsArguments, ManArguments};

use crate::{
    cat::CatArguments, child::ChildArguments, diff::DiffArguments, du::DuArguments,
    export::ExportArguments, find::FindArguments, flatten::FlattenArguments, grep::GrepArguments,
    info::InfoArguments, ls::LsArguments, seal::SealArguments, sha256::Sha256Arguments,
    stat::StatArguments, tree::TreeArguments,
};

const MORE: &str = "\
With --json, each line of the output is one JSON object: an entry, or {\"problem\": ...} for what
could not be read. If the command fails, the last line is {\"error\": ...}.

Exit codes: 0 done; 1 not everything could be read, and standard error says what; 125 failed.
`grep` and `diff` have the codes of those programs: 1 nothing found, 1 different; and 2 if not
everything could be read.

Examples:
  vmcell-disk ls stopped.qcow2 /workspace -l
  vmcell-disk diff base.ext4 stopped.qcow2 /workspace > work.patch
  vmcell-disk export stopped.qcow2 /workspace/results ./results";

/// Look into the disk of a stopped VM, without booting or mounting it.
#[derive(Debug, Parser)]
#[command(name = "vmcell-disk", version, max_term_width = 100, after_help = MORE)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) task: Task,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Task {
    /// List a directory of a disk.
    Ls(LsArguments),
    /// Draw a directory with all that is below it.
    Tree(TreeArguments),
    /// Print files.
    Cat(CatArguments),
    /// Tell everything about files, directories or links.
    Stat(StatArguments),
    /// Find entries by name, type, size or time.
    Find(FindArguments),
    /// Search the contents of files.
    Grep(GrepArguments),
    /// Tell how much room directories take up.
    Du(DuArguments),
    /// Print the SHA-256 of files, as `sha256sum` does.
    Sha256(Sha256Arguments),
    /// Copy a file or a tree to this machine.
    Export(ExportArguments),
    /// Print as a patch what differs between two disks.
    Diff(DiffArguments),
    /// Tell what a disk consists of, and how its file system is.
    Info(InfoArguments),
    /// Make one raw sparse file of a disk with all its layers.
    Flatten(FlattenArguments),
    /// Make a disk that has only what differs from another one.
    Child(ChildArguments),
    /// Have nobody write a disk any more, so that it can have children.
    Seal(SealArguments),
    /// Print completions for a shell.
    Completions(CompletionsArguments),
    /// Print the manual page, or write those of all commands.
    Man(ManArguments),
}

impl Task {
    /// Whether failures are told as JSON.
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
