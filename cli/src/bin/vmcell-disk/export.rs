//! `vmcell-disk export`: copies a file or a tree to this machine.

use std::{
    fs::File,
    io::{self, IsTerminal},
    os::fd::AsFd,
    path::{Path, PathBuf},
};

use clap::Args;
use vmcell::{
    disk::{Disk, DiskError, Export},
    tree::{ArchiveFormat, TreeError, TreeLimits},
};
use vmcell_cli::{
    exit::BROKEN_PIPE,
    options::{
        PathFilter,
        copy_target::{copy_target, is_real_directory},
    },
    show::{Progress, SafeStdout, Summary},
};

use crate::{
    failure::report,
    image::{ImageOptions, absolute},
    problems::Problems,
};

const EXAMPLES: &str = "\
Nothing is written outside of DEST. No symbolic link is followed, not even your own in the path of
DEST, and no device is created.

Examples:
  vmcell-disk export stopped.qcow2 /workspace ./workspace --exclude target/
  vmcell-disk export stopped.qcow2 / disk.tar.zst
  vmcell-disk export stopped.qcow2 /etc - | tar t";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ExportArguments {
    /// Disk image, raw or qcow2.
    #[arg(value_name = "IMAGE")]
    image: PathBuf,
    /// File, directory or link to copy.
    #[arg(value_name = "PATH")]
    path: PathBuf,
    /// Destination. If it is an existing directory or ends with `/`, the copy
    /// is placed in it under its own name. No component may be a symbolic link.
    /// A name that ends with .tar, .tar.gz, .tgz or .tar.zst creates an
    /// archive, and `-` writes a tar archive to standard output.
    #[arg(value_name = "DEST")]
    destination: PathBuf,
    #[command(flatten)]
    path_filter: PathFilter,
    /// Keep numeric owners and groups, which needs privileges.
    #[arg(long)]
    keep_owners: bool,
    /// Keep the setuid, setgid and sticky bits. Programs of the disk may then
    /// run as other users on this machine.
    #[arg(long)]
    keep_special_bits: bool,
    /// Allow PATH to be a symbolic link. The link is created on this machine
    /// with whatever target the disk has.
    #[arg(long)]
    allow_symlink: bool,
    /// Print what was copied as JSON.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    options: ImageOptions,
}

pub(crate) fn export(arguments: &ExportArguments) -> anyhow::Result<u8> {
    let disk = arguments.options.open(&arguments.image)?;
    let progress = Progress::new(None);
    let mut export = arguments.prepare(&disk)?;
    if let Some(callback) = progress.callback() {
        export = export.progress(callback);
    }
    let exported = export.run();
    drop(progress);
    let exported = match exported {
        Err(error) if is_broken_pipe(&error) => return Ok(BROKEN_PIPE),
        exported => exported?,
    };

    let mut out = SafeStdout::new();
    let mut problems = Problems::new(arguments.json);
    let mut written = problems.add_disk(&disk, &mut out);
    for problem in &exported.problems {
        written = written.and_then(|()| problems.add(problem, &mut out));
    }
    let more = exported.problem_count - exported.problems.len() as u64;
    written = written.and_then(|()| problems.add_more(more, &mut out));
    let summary = Summary::from(exported.received);
    if arguments.json {
        let mut object = summary.as_json();
        object["problem_count"] = exported.problem_count.into();
        written = written.and_then(|()| out.json(&object));
    } else {
        summary.lines().iter().for_each(|line| report(line));
    }
    let code = out.finish(written)?;
    Ok(problems.finish(code))
}

impl ExportArguments {
    fn prepare<'d>(&self, disk: &'d Disk) -> anyhow::Result<Export<'d>> {
        let mut export = self.with_destination(disk)?.limits(self.limits());
        for pattern in self.path_filter.include_patterns() {
            export = export.include(pattern);
        }
        for pattern in self.path_filter.exclude_patterns()? {
            export = export.exclude(pattern);
        }
        if self.keep_owners {
            export = export.keep_owners();
        }
        if self.keep_special_bits {
            export = export.keep_special_bits();
        }
        if self.allow_symlink {
            export = export.allow_symlink();
        }
        Ok(export)
    }

    fn with_destination<'d>(&self, disk: &'d Disk) -> anyhow::Result<Export<'d>> {
        let (path, to) = (absolute(&self.path), self.destination.as_path());
        if to == Path::new("-") {
            let stdout = io::stdout();
            if stdout.is_terminal() {
                return Err(DiskError::Invalid(
                    "cannot write an archive to a terminal: use a file or a pipe".to_owned(),
                )
                .into());
            }
            // Bypasses the buffer of `Stdout`, which scans for line ends.
            let stdout = File::from(stdout.as_fd().try_clone_to_owned()?);
            return Ok(disk.export_archive_to(path, stdout, ArchiveFormat::Tar));
        }
        let is_directory = is_real_directory(to);
        Ok(match ArchiveFormat::from_path(to) {
            Some(format) if !is_directory => disk.export_archive(path, to, format),
            _ => disk.export(&path, copy_target(&path, to, is_directory)),
        })
    }

    fn limits(&self) -> TreeLimits {
        let mut limits = TreeLimits::default();
        if let Some(bytes) = self.options.limit_bytes() {
            limits.bytes = bytes;
            limits.length = limits.length.max(bytes);
        }
        if let Some(entries) = self.options.limit_entries() {
            limits.entries = entries;
        }
        limits
    }
}

/// Returns whether the reader of an archive has closed the pipe.
fn is_broken_pipe(error: &DiskError) -> bool {
    match error {
        DiskError::Tree(TreeError::Write { source, .. }) => {
            source.kind() == io::ErrorKind::BrokenPipe
        }
        _ => false,
    }
}
