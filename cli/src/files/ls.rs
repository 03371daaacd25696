//! `vmcell ls`: what is in a directory of a VM.

use std::path::{Path, PathBuf};

use serde_json::json;
use vmcell::{
    Error, Vm,
    files::{Entries, Entry, Files, Problem, Walk},
};

use super::{LsArguments, entry, name, page::Page, place::guest_path};
use crate::{
    exit_code::INCOMPLETE,
    failure::{print_json, say},
    runtime::block_on,
    table::Table,
};

/// What is collected, for a table or for machines, has no more bytes of names
/// than this: a guest could go on forever.
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
    /// An entry's path as it is printed: from the directory on. What is no
    /// directory is its own only entry.
    fn shown_path(&self, entry: &Entry) -> PathBuf {
        let path = entry::absolute(entry);
        match path.strip_prefix(&self.path) {
            Ok(below) if !below.as_os_str().is_empty() => below.to_owned(),
            _ => path,
        }
    }

    async fn collect(&mut self) -> Result<Vec<Entry>, Error> {
        let mut entries = Vec::new();
        let mut names = 0;
        while let Some(entry) = self.entries.next().await? {
            let target = entry.target.as_deref().unwrap_or(Path::new(""));
            names += entry.path.as_os_str().len() + target.as_os_str().len();
            if entries.len() == Files::MAX_LISTED || names > MAX_NAMES {
                return Err(Error::Invalid(
                    "there are too many entries: name a directory below, or list only names"
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
        let written = page.named("", &listing.shown_path(&entry), "");
        if written.is_err() {
            break written;
        }
    };
    let code = page.finish(written)?;
    say_problems(&listing.entries);
    Ok(code)
}

async fn print_long(listing: &mut Listing) -> anyhow::Result<u8> {
    let mut table = Table::new(entry::HEADER);
    for entry in listing.collect().await? {
        table.add(entry::row(&entry, &listing.shown_path(&entry)));
    }
    let mut page = Page::new();
    let written = table.print(&mut page);
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
