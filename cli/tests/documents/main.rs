//! Keeps the README and the pages in `docs` true: their shell examples, options, environment variables and links are
//! compared with the programs and the source. Rust examples are doctests of the crate `vmcell`.

#![allow(clippy::unwrap_used)]

mod examples;
mod links;
mod options;
mod page;
mod program;
mod rust;
mod shell;
mod specification;
mod variables;

use std::path::{Path, PathBuf};

use page::Page;

/// Returns the root of the repository.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Returns the pages for users: the README, the specification, those in `docs`, and that of the benchmarks.
fn pages() -> Vec<Page> {
    let names = ["README.md", "SPECIFICATION.md", "benches/README.md"];
    let mut pages: Vec<_> = names.into_iter().map(Page::read).collect();
    pages.extend(docs());
    pages
}

/// Returns the pages in `docs`, sorted by name.
fn docs() -> Vec<Page> {
    let entries = std::fs::read_dir(root().join("docs")).unwrap();
    let mut names: Vec<_> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
        .iter()
        .map(|name| Page::read(&format!("docs/{name}")))
        .collect()
}
