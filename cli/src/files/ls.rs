//! `vmcell ls`: lists a directory of a VM.

use std::{
    io::{self, Write as _},
    path::PathBuf,
};

use serde_json::{Value, json};
use vmcell::{
    Vm,
    files::{Entries, Problem, Walk},
};
use vmcell_cli::show::{Page, entry, json as safe_json, name};

use super::{LsArguments, place::guest_path};
use crate::{
    exit_code::{INCOMPLETE, OUR_OWN},
    failure::{error_as_json, say},
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

fn walk(arguments: &LsArguments) -> Walk {
    let deep = arguments.recursive || arguments.glob.is_some();
    let depth = arguments.depth.unwrap_or(if deep { u32::MAX } else { 1 });
    let walk = Walk::new().depth(depth);
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
    let mut page = Page::new();
    let written = loop {
        let Some(entry) = listing.entries.next().await? else {
            break Ok(());
        };
        let path = entry::listed(&entry, &listing.path);
        let written = page.named("", &path, entry::colour(&entry), "");
        if written.is_err() {
            break written;
        }
    };
    let code = page.finish(written)?;
    say_problems(&listing.entries);
    Ok(code)
}

/// Prints rows as they arrive, in chunks.
async fn print_long(listing: &mut Listing) -> anyhow::Result<u8> {
    let mut table = entry::table();
    let mut page = Page::new();
    let mut written = Ok(());
    while let (Ok(()), Some(entry)) = (&written, listing.entries.next().await?) {
        let path = entry::listed(&entry, &listing.path);
        let label = entry::label(&entry, &path, page.is_coloured());
        table.add_with_tail(entry::row(&entry), label);
        if table.has_portion() {
            written = table.print(&mut page);
        }
    }
    let written = written.and_then(|()| table.print(&mut page));
    let code = page.finish(written)?;
    say_problems(&listing.entries);
    Ok(code)
}

/// Prints one object with all entries, as they arrive, so that memory does not
/// grow with their number. A failure after the first entry becomes the member
/// `error` of the object.
async fn print_as_json(vm: &str, listing: &mut Listing) -> anyhow::Result<u8> {
    // Most failures happen here, and are reported as for other commands.
    let mut next = listing.entries.next().await?;
    let mut page = Page::new();
    let mut head = json!({ "sandbox_id": vm });
    name::put(&mut head, "path", &listing.path);
    let mut written = begin_object(&mut page, &head);
    let mut separator = "\n";
    let failed = loop {
        let (Ok(()), Some(entry)) = (&written, next) else {
            break None;
        };
        written = write!(
            page,
            "{separator}{}",
            safe_json::line(&entry::as_json(&entry))
        );
        separator = ",\n";
        next = match listing.entries.next().await {
            Ok(next) => next,
            Err(error) => break Some(anyhow::Error::from(error)),
        };
    };
    let problems: Vec<_> = listing.entries.problems().iter().map(words).collect();
    let mut tail = json!({
        "problems": problems,
        "problem_count": listing.entries.problem_count(),
    });
    if let Some(error) = &failed {
        tail["error"] = error_as_json(error);
    }
    let written = written.and_then(|()| end_object(&mut page, &tail));
    let code = page.finish(written)?;
    Ok(if failed.is_some() { OUR_OWN } else { code })
}

/// Writes an object up to the start of its list of entries.
fn begin_object(page: &mut Page, head: &Value) -> io::Result<()> {
    let head = safe_json::line(head);
    let open = head.strip_suffix('}').unwrap_or(&head);
    write!(page, "{open},\"entries\":[")
}

/// Writes the end of the list, and the other members of the object.
fn end_object(page: &mut Page, tail: &Value) -> io::Result<()> {
    let tail = safe_json::line(tail);
    writeln!(page, "\n],{}", tail.strip_prefix('{').unwrap_or(&tail))
}

fn words(problem: &Problem) -> String {
    problem.failure.to_string()
}

/// How many problems are printed one by one.
const TOLD: usize = 20;

fn say_problems(entries: &Entries) {
    let told = entries.problems().iter().take(TOLD);
    told.for_each(|problem| say(&words(problem)));
    match entries.problem_count().saturating_sub(TOLD as u64) {
        0 => {}
        more => say(&format!("{more} more entries could not be looked at")),
    }
}
