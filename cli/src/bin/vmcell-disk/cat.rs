//! `vmcell-disk cat`: prints files.

use std::{
    io::{self, Read, Seek, SeekFrom},
    path::{Path, PathBuf},
};

use clap::Args;
use vmcell::disk::{Disk, DiskError, DiskLimit};
use vmcell_cli::{options::size, show::SafeStdout};

use crate::{
    image::{ImageOptions, absolute},
    problems::Problems,
};

const EXAMPLES: &str = "\
Examples:
  vmcell-disk cat stopped.qcow2 /var/log/messages | tail
  vmcell-disk cat base.ext4 /usr/bin/env --max-bytes 4 | xxd";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CatArguments {
    /// Disk image, raw or qcow2.
    #[arg(value_name = "IMAGE")]
    image: PathBuf,
    /// Files to print.
    #[arg(value_name = "PATH", required = true)]
    paths: Vec<PathBuf>,
    /// Offset to start at in each file, in bytes or with a suffix (k, m, g).
    #[arg(long, value_name = "SIZE", default_value = "0", value_parser = size::parse)]
    offset: u64,
    /// Print at most this much of each file.
    #[arg(long, value_name = "SIZE", visible_alias = "bytes", value_parser = size::parse)]
    max_bytes: Option<u64>,
    #[command(flatten)]
    options: ImageOptions,
}

/// The size of a read.
const READ_SIZE: usize = 256 << 10;

pub(crate) fn cat(arguments: &CatArguments) -> anyhow::Result<u8> {
    let disk = arguments.options.open(&arguments.image)?;
    let mut out = SafeStdout::new();
    let mut problems = Problems::new(false);
    let mut written = problems.add_disk(&disk, &mut out);
    let mut print = |path: &PathBuf| {
        let path = absolute(path);
        match copy(&disk, &path, arguments, &mut out) {
            Ok(()) => Ok(()),
            Err(Failure::Read(error)) => problems.add_at(&path, &error, &mut out),
            Err(Failure::Write(error)) => Err(error),
        }
    };
    written = written.and_then(|()| arguments.paths.iter().try_for_each(&mut print));
    let code = out.finish(written)?;
    Ok(problems.finish(code))
}

enum Failure {
    Read(DiskError),
    Write(io::Error),
}

fn copy(
    disk: &Disk,
    path: &Path,
    arguments: &CatArguments,
    out: &mut SafeStdout,
) -> Result<(), Failure> {
    let unreadable = |error: io::Error| {
        Failure::Read(error.downcast().unwrap_or_else(|source| DiskError::Read {
            path: path.display().to_string(),
            source,
        }))
    };
    let mut reader = disk.reader(path).map_err(Failure::Read)?;
    let left = reader.size().saturating_sub(arguments.offset);
    let mut left = left.min(arguments.max_bytes.unwrap_or(u64::MAX));
    let limit = arguments.options.limits().bytes;
    if left > limit {
        return Err(Failure::Read(DiskError::Limit {
            what: DiskLimit::Bytes,
            limit,
            path: path.display().to_string(),
        }));
    }
    let start = SeekFrom::Start(arguments.offset);
    reader.seek(start).map_err(unreadable)?;
    let mut buffer = vec![0; READ_SIZE];
    while left > 0 {
        let wanted = usize::try_from(left).map_or(READ_SIZE, |left| left.min(READ_SIZE));
        let count = reader.read(&mut buffer[..wanted]).map_err(unreadable)?;
        if count == 0 {
            break;
        }
        out.file_bytes(&buffer[..count]).map_err(Failure::Write)?;
        left = left.saturating_sub(count as u64);
    }
    Ok(())
}
