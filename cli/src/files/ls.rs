//! `vmcell ls`: what is in a directory of a VM.

use std::path::{Path, PathBuf};

use serde_json::json;
use vmcell::{
    Error, Vm,
    files::{Entries, Entry, Files, Problem, Walk},
};
use vmcell_cli::show::{Page, entry, name};

use super::{LsArguments, place::guest_path};
use crate::{
    exit_code::INCOMPLETE,
    failure::{print_json, say},
    runtime::block_on,
};

/// What is collected for machines has no more bytes of names than this: a guest
/// could go on forever.
const MAX_NAMES: usize = 256 << 20;

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
            0 => code,
            _ => INCOMPLETE,
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

/// The entries of a directory, as they come.
struct Listing {
    entries: Entries,
    path: PathBuf,
}

impl Listing {
    async fn collect(&mut self) -> Result<Vec<Entry>, Error> {
        let mut entries = Vec::new();
        let mut names = 0;
        while let Some(entry) = self.entries.next().await? {
            let target = entry.target.as_deref().unwrap_or(Path::new(""));
            names += entry.path.as_os_str().len() + target.as_os_str().len();
            if entries.len() == Files::MAX_LISTED || names > MAX_NAMES {
                return Err(Error::Invalid(
                    "there are too many entries: name a directory below, or list them without --json"
                        .to_owned(),
                ));
            }
            entries.push(entry);
        }
        Ok(entries)
    }
}

/// Prints names as they come: their number does not matter.
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

/// Prints rows as they come, in portions.
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

async fn print_as_json(vm: &str, listing: &mut Listing) -> anyhow::Result<u8> {
    let entries: Vec<_> = listing
        .collect()
        .await?
        .iter()
        .map(entry::as_json)
        .collect();
    let problems = listing.entries.problems();
    let problems: Vec<_> = problems.iter().map(words).collect();
    let mut told = json!({
        "sandbox_id": vm,
        "entries": entries,
        "problems": problems,
        "problem_count": listing.entries.problem_count(),
    });
    name::put(&mut told, "path", &listing.path);
    print_json(&told);
    Ok(0)
}

fn words(problem: &Problem) -> String {
    problem.failure.to_string()
}

/// How many are told one by one.
const TOLD: usize = 20;

fn say_problems(entries: &Entries) {
    let told = entries.problems().iter().take(TOLD);
    told.for_each(|problem| say(&words(problem)));
    match entries.problem_count().saturating_sub(TOLD as u64) {
        0 => {}
        more => say(&format!("{more} more entries could not be looked at")),
    }
}
