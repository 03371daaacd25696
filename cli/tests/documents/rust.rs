//! Rust examples.

use std::fs;

use crate::{pages, root};

#[test]
fn every_page_with_rust_examples_is_among_the_doctests() {
    let doctests = fs::read_to_string(root().join("host/src/documents.rs")).unwrap();
    for page in pages() {
        let included = doctests.contains(&format!("include_str!(\"../../{}\")", page.path));
        assert_eq!(!page.blocks("rust").is_empty(), included, "{}", page.path);
    }
}
