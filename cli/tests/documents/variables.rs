//! Environment variables.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use crate::{page::Page, root};

const PAGE: &str = "docs/environment-variables.md";
const PREFIX: &str = "VMCELL_";

#[test]
fn the_page_of_variables_has_those_of_the_source_and_no_others() {
    let page = variables(&Page::read(PAGE).text);
    let mut source = BTreeSet::new();
    for path in source_files(&root()) {
        source.extend(variables(&fs::read_to_string(path).unwrap()));
    }
    assert!(source.len() > 10, "{source:?}");
    let missing: Vec<_> = source.difference(&page).collect();
    assert!(missing.is_empty(), "not in {PAGE}: {missing:?}");
    let unknown: Vec<_> = page.difference(&source).collect();
    assert!(
        unknown.is_empty(),
        "in {PAGE}, but not in the source: {unknown:?}"
    );
}

#[test]
fn the_page_of_variables_has_those_that_code_reads_by_a_literal_name() {
    let page = Page::read(PAGE).text;
    let mut count = 0;
    for crate_folder in ["host", "disk", "tree", "rootfs", "cli"] {
        for path in source_files(&root().join(crate_folder).join("src")) {
            let text = fs::read_to_string(&path).unwrap();
            let calls = ["env::var(\"", "env::var_os(\""];
            let reads = calls.iter().flat_map(|call| text.split(call).skip(1));
            for name in reads.filter_map(|rest| Some(rest.split_once('"')?.0)) {
                assert!(
                    page.contains(&format!("`{name}`")),
                    "{name} of {} is not in {PAGE}",
                    path.display()
                );
                count += 1;
            }
        }
    }
    assert!(count > 5, "only {count} reads were found");
}

/// Returns the variables of this project that a text mentions.
fn variables(text: &str) -> BTreeSet<String> {
    let mut variables = BTreeSet::new();
    for rest in text.split(PREFIX).skip(1) {
        let end = rest.find(|c: char| !c.is_ascii_uppercase() && !c.is_ascii_digit() && c != '_');
        let name = &rest[..end.unwrap_or(rest.len())];
        if !name.is_empty() {
            variables.insert(format!("{PREFIX}{name}"));
        }
    }
    variables
}

/// Returns the source files, scripts and configuration below a folder.
fn source_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let (path, name) = (entry.path(), entry.file_name().into_string().unwrap());
        if entry.file_type().unwrap().is_dir() {
            if !["target", ".git", "docs", "corpus"].contains(&name.as_str()) {
                files.extend(source_files(&path));
            }
            continue;
        }
        let extension = path.extension().and_then(|extension| extension.to_str());
        let is_source = matches!(extension, Some("rs" | "sh" | "toml"));
        if is_source || name == "Makefile" || folder == root().join(".ci") {
            files.push(path);
        }
    }
    files
}
