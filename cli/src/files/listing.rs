//! Prints the entries of a directory, of a VM or of a stopped disk.

use std::{
    io::{self, Write as _},
    path::PathBuf,
};

use serde_json::{Value, json};
use vmcell::{
    Error,
    disk::{Disk, DiskEntries},
    files::{Entries, Entry, Files, WalkOptions},
};
use vmcell_cli::show::{SafeStdout, entry, json as safe_json, name};

use crate::{
    exit_code::{INCOMPLETE, TOOL_FAILED},
    failure::{error_as_json, report},
};

/// How entries are printed.
pub(crate) enum ListingStyle {
    Names,
    Long,
    /// As one object, which begins with the members of this one.
    Json(Value),
}

/// The entries of a directory, received one by one.
pub(crate) struct Listing<'d> {
    source: Source<'d>,
    path: PathBuf,
}

/// Where entries come from.
enum Source<'d> {
    Guest {
        entries: Box<Entries>,
        /// The directory that their paths are relative to.
        root: PathBuf,
    },
    Disk {
        entries: Box<DiskEntries<'d>>,
        problems: Vec<String>,
        problem_count: u64,
    },
}

impl<'d> Listing<'d> {
    /// Lists a path of a VM.
    pub(crate) async fn of_guest(
        files: &Files,
        path: PathBuf,
        walk: WalkOptions,
    ) -> Result<Self, Error> {
        let source = Source::Guest {
            entries: Box::new(files.walk(&path, walk).await?),
            root: files.root().to_owned(),
        };
        Ok(Self { source, path })
    }

    /// Lists a path of a disk.
    pub(crate) fn of_disk(disk: &'d Disk, path: PathBuf, walk: WalkOptions) -> Result<Self, Error> {
        let problems: Vec<_> = disk.damage().iter().map(ToString::to_string).collect();
        let source = Source::Disk {
            entries: Box::new(disk.walk(&path, walk)?),
            problem_count: problems.len() as u64,
            problems,
        };
        Ok(Self { source, path })
    }

    /// Prints all entries. The exit code says whether some could not be read.
    pub(crate) async fn print(mut self, style: ListingStyle) -> anyhow::Result<u8> {
        let code = match style {
            ListingStyle::Json(head) => print_as_json(head, &mut self).await?,
            ListingStyle::Long => print_long(&mut self).await?,
            ListingStyle::Names => print_names(&mut self).await?,
        };
        Ok(match self.problem_count() {
            1.. if code == 0 => INCOMPLETE,
            _ => code,
        })
    }

    /// Returns the next entry that can be read, with its absolute path.
    async fn next(&mut self) -> Result<Option<Entry>, Error> {
        match &mut self.source {
            Source::Guest { entries, root } => {
                let entry = entries.next().await?;
                Ok(entry.map(|mut entry| {
                    entry.path = root.join(&entry.path);
                    entry
                }))
            }
            Source::Disk {
                entries,
                problems,
                problem_count,
            } => loop {
                match entries.next() {
                    Some(Err(problem)) => {
                        *problem_count += 1;
                        if problems.len() < MAX_KEPT {
                            problems.push(problem.error.to_string());
                        }
                    }
                    Some(Ok(entry)) => return Ok(Some(entry)),
                    None => return Ok(None),
                }
            },
        }
    }

    /// Returns why entries could not be read.
    fn problems(&self) -> Vec<String> {
        match &self.source {
            Source::Guest { entries, .. } => {
                let problems = entries.problems().iter();
                problems
                    .map(|problem| problem.failure.to_string())
                    .collect()
            }
            Source::Disk { problems, .. } => problems.clone(),
        }
    }

    fn problem_count(&self) -> u64 {
        match &self.source {
            Source::Guest { entries, .. } => entries.problem_count(),
            Source::Disk { problem_count, .. } => *problem_count,
        }
    }
}

/// How many problems of a disk are kept; further ones are only counted.
const MAX_KEPT: usize = 1000;

/// Prints names as they arrive, so that memory does not grow with their number.
async fn print_names(listing: &mut Listing<'_>) -> anyhow::Result<u8> {
    let mut out = SafeStdout::new();
    let written = loop {
        let Some(entry) = listing.next().await? else {
            break Ok(());
        };
        let path = entry::listed(&entry, &listing.path);
        let written = out.path_line("", &path, entry::colour(&entry), "");
        if written.is_err() {
            break written;
        }
    };
    let code = out.finish(written)?;
    print_problems(listing);
    Ok(code)
}

/// Prints rows as they arrive, in chunks.
async fn print_long(listing: &mut Listing<'_>) -> anyhow::Result<u8> {
    let mut table = entry::table();
    let mut out = SafeStdout::new();
    let mut written = Ok(());
    while let (Ok(()), Some(entry)) = (&written, listing.next().await?) {
        let path = entry::listed(&entry, &listing.path);
        let label = entry::label(&entry, &path, out.is_coloured());
        table.add_with_raw_column(entry::row(&entry), label);
        if table.has_chunk() {
            written = table.print(&mut out);
        }
    }
    let written = written.and_then(|()| table.print(&mut out));
    let code = out.finish(written)?;
    print_problems(listing);
    Ok(code)
}

/// Prints one object with all entries, as they arrive, so that memory does not
/// grow with their number. A failure after the first entry becomes the member
/// `error` of the object.
async fn print_as_json(mut head: Value, listing: &mut Listing<'_>) -> anyhow::Result<u8> {
    // Most failures happen here, and are reported as for other commands.
    let mut next = listing.next().await?;
    let mut out = SafeStdout::new();
    name::insert(&mut head, "path", &listing.path);
    let mut written = begin_object(&mut out, &head);
    let mut separator = "\n";
    let failed = loop {
        let (Ok(()), Some(entry)) = (&written, next) else {
            break None;
        };
        written = write!(
            out,
            "{separator}{}",
            safe_json::line(&entry::as_json(&entry))
        );
        separator = ",\n";
        next = match listing.next().await {
            Ok(next) => next,
            Err(error) => break Some(anyhow::Error::from(error)),
        };
    };
    let mut tail = json!({
        "problems": listing.problems(),
        "problem_count": listing.problem_count(),
    });
    if let Some(error) = &failed {
        tail["error"] = error_as_json(error);
    }
    let written = written.and_then(|()| end_object(&mut out, &tail));
    let code = out.finish(written)?;
    Ok(if failed.is_some() { TOOL_FAILED } else { code })
}

/// Writes an object up to the start of its list of entries.
fn begin_object(out: &mut SafeStdout, head: &Value) -> io::Result<()> {
    let head = safe_json::line(head);
    let open = head.strip_suffix('}').unwrap_or(&head);
    write!(out, "{open},\"entries\":[")
}

/// Writes the end of the list, and the other members of the object.
fn end_object(out: &mut SafeStdout, tail: &Value) -> io::Result<()> {
    let tail = safe_json::line(tail);
    writeln!(out, "\n],{}", tail.strip_prefix('{').unwrap_or(&tail))
}

/// How many problems are printed one by one.
const MAX_PRINTED: usize = 20;

fn print_problems(listing: &Listing<'_>) {
    let problems = listing.problems();
    let printed = problems.iter().take(MAX_PRINTED);
    printed.for_each(|problem| report(problem));
    match listing.problem_count().saturating_sub(MAX_PRINTED as u64) {
        0 => {}
        more => report(&format!("{more} more entries could not be read")),
    }
}
