//! Links between pages.

use std::path::Path;

use crate::{docs, page::Page, pages, root};

#[test]
fn every_link_leads_to_a_file_and_a_heading_that_exist() {
    for page in pages() {
        for link in page.links() {
            if link.starts_with("https://") {
                continue;
            }
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            let folder = Path::new(&page.path).parent().unwrap();
            let target = match file {
                "" => page.path.clone(),
                _ => folder.join(file).to_str().unwrap().to_owned(),
            };
            assert!(root().join(&target).exists(), "{}: {link}", page.path);
            let is_there =
                anchor.is_empty() || Page::read(&target).anchors().contains(&anchor.to_owned());
            assert!(is_there, "{}: {link}: no such heading", page.path);
        }
    }
}

#[test]
fn the_readme_links_every_page() {
    let readme = Page::read("README.md");
    for page in docs() {
        assert!(
            readme.links().contains(&page.path.as_str()),
            "{} is not linked",
            page.path
        );
    }
}
