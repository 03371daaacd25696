use std::{fs, os::unix::fs::symlink};

use vmcell_wire::files::Work;

use super::site::{CONFLICT, NOT_FOUND, Site, refused};
use crate::concurrent::with_concurrent;

fn remove(path: &str, tree: bool) -> Work<'_> {
    Work::Remove {
        path: path.as_bytes(),
        tree,
    }
}

#[test]
fn files_links_and_empty_directories_go() {
    let mut site = Site::new();
    fs::write(site.at("file"), "").unwrap();
    fs::create_dir_all(site.at("full/of")).unwrap();
    symlink("full", site.at("link")).unwrap();
    site.work(remove("file", false)).unwrap();
    site.work(remove("link", false)).unwrap();
    assert_eq!(refused(site.work(remove("full", false))), CONFLICT);
    site.work(remove("full/of", false)).unwrap();
    site.work(remove("full/", false)).unwrap();
    for tree in [false, true] {
        assert_eq!(refused(site.work(remove("full", tree))), NOT_FOUND);
    }
    assert!(site.listing().is_empty());
}

#[test]
fn a_tree_goes_and_nothing_that_its_links_point_to() {
    let mut site = Site::new();
    fs::create_dir_all(site.at("tree/a/b/c")).unwrap();
    fs::create_dir(site.at("kept")).unwrap();
    fs::write(site.at("kept/file"), "").unwrap();
    symlink("../../kept", site.at("tree/a/link")).unwrap();
    symlink(site.outside(), site.at("tree/out")).unwrap();
    symlink("kept", site.at("link")).unwrap();
    for number in 0..2000 {
        fs::write(site.at(format!("tree/a/b/{number}")), "").unwrap();
    }
    site.work(remove("tree", true)).unwrap();
    site.work(remove("link", true)).unwrap();
    assert_eq!(site.listing(), ["kept", "kept/file"]);
    site.assert_outside_untouched();
}

#[test]
fn a_tree_of_any_depth_goes() {
    let mut site = Site::new();
    fs::create_dir(site.at("deep")).unwrap();
    let mut above = rustix::fs::open(
        site.at("deep"),
        rustix::fs::OFlags::RDONLY,
        rustix::fs::Mode::empty(),
    )
    .unwrap();
    for _ in 0..600 {
        rustix::fs::mkdirat(&above, "below", rustix::fs::Mode::RWXU).unwrap();
        let flags = rustix::fs::OFlags::RDONLY;
        let below = rustix::fs::openat(&above, "below", flags, rustix::fs::Mode::empty());
        above = below.unwrap();
    }
    drop(above);
    site.work(remove("deep", true)).unwrap();
    assert!(site.listing().is_empty());
}

#[test]
fn a_tree_goes_while_others_put_things_into_it() {
    let mut site = Site::new();
    let place = site.at("tree/a/b");
    let put = || {
        // The directory may be gone.
        let _ = fs::create_dir_all(&place);
        let _ = fs::write(place.join("file"), "");
    };
    with_concurrent(put, || {
        for _ in 0..200 {
            if let Err(refused) = site.work(remove("tree", true)) {
                assert!(matches!(refused.kind, NOT_FOUND | CONFLICT), "{refused:?}");
            }
        }
    });
    let _ = site.work(remove("tree", true));
    assert!(site.listing().is_empty());
}
