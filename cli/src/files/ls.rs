//! `vmcell ls`: lists a directory of a VM.

use std::{
    io::{self, Write as _},
    path::PathBuf,
};

use serde_json::{Value, json};
use vmcell::{
    Vm,
    files::{Entries, WalkOptions, WalkProblem},
};
use vmcell_cli::show::{SafeStdout, entry, json as safe_json, name};

use super::{LsArguments, path::guest_path};
use crate::{
    exit_code::{INCOMPLETE, TOOL_FAILED},
    failure::{error_as_json, report},
    runtime::block_on,
};

pub(crate) fn ls(arguments: LsArguments) -> anyhow::Result<u8> {
    block_on(async move {
        let vm = Vm::attach(&arguments.id).await?;
        let path = guest_path(&arguments.path);
        let mut listing = Listing {
            entries: vm.files().walk(&path, walk(&arguments)).await?,
            path,
        };
        let code = if arguments.json {
            print_as_json(vm.id(), &mut listing).await?
        } else if arguments.long {
            print_long(&mut listing).await?
        } else {
            print_names(&mut listing).await?
        };
        Ok(match listing.entries.problem_count() {
            1.. if code == 0 => INCOMPLETE,
            _ => code,
        })
    })
}

fn walk(arguments: &LsArguments) -> WalkOptions {
    let deep = arguments.recursive || arguments.glob.is_some();
    let depth = arguments.depth.unwrap_or(if deep { u32::MAX } else { 1 });
    let walk = WalkOptions::new().depth(depth);
    match &arguments.glob {
        Some(pattern) => walk.glob(pattern),
        None => walk,
    }
}

/// The entries of a directory, received one by one.
struct Listing {
    entries: Entries,
    path: PathBuf,
}

/// Prints names as they arrive, so that memory does not grow with their number.
async fn print_names(listing: &mut Listing) -> anyhow::Result<u8> {
    let mut out = SafeStdout::new();
    let written = loop {
        let Some(entry) = listing.entries.next().await? else {
            break Ok(());
        };
        let path = entry::listed(&entry, &listing.path);
        let written = out.path_line("", &path, entry::colour(&entry), "");
        if written.is_err() {
            break written;
        }
    };
    let code = out.finish(written)?;
    print_problems(&listing.entries);
    Ok(code)
}

/// Prints rows as they arrive, in chunks.
async fn print_long(listing: &mut Listing) -> anyhow::Result<u8> {
    let mut table = entry::table();
    let mut out = SafeStdout::new();
    let mut written = Ok(());
    while let (Ok(()), Some(entry)) = (&written, listing.entries.next().await?) {
        let path = entry::listed(&entry, &listing.path);
        let label = entry::label(&entry, &path, out.is_coloured());
        table.add_with_raw_column(entry::row(&entry), label);
        if table.has_chunk() {
            written = table.print(&mut out);
        }
    }
    let written = written.and_then(|()| table.print(&mut out));
    let code = out.finish(written)?;
    print_problems(&listing.entries);
    Ok(code)
}

/// Prints one object with all entries, as they arrive, so that memory does not
/// grow with their number. A failure after the first entry becomes the member
/// `error` of the object.
async fn print_as_json(vm: &str, listing: &mut Listing) -> anyhow::Result<u8> {
    // Most failures happen here, and are reported as for other commands.
    let mut next = listing.entries.next().await?;
    let mut out = SafeStdout::new();
    let mut head = json!({ "sandbox_id": vm });
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
        next = match listing.entries.next().await {
            Ok(next) => next,
            Err(error) => break Some(anyhow::Error::from(error)),
        };
    };
    let problems: Vec<_> = listing.entries.problems().iter().map(describe).collect();
    let mut tail = json!({
        "problems": problems,
        "problem_count": listing.entries.problem_count(),
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

fn describe(problem: &WalkProblem) -> String {
    problem.failure.to_string()
}

/// How many problems are printed one by one.
const MAX_PRINTED: usize = 20;

fn print_problems(entries: &Entries) {
    let printed = entries.problems().iter().take(MAX_PRINTED);
    printed.for_each(|problem| report(&describe(problem)));
    match entries.problem_count().saturating_sub(MAX_PRINTED as u64) {
        0 => {}
        more => report(&format!("{more} more entries could not be read")),
    }
}
