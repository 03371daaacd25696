use std::{fs, os::unix::fs::symlink};

use vmcell_wire::files::FileOperation;

use super::test_env::{CONFLICT, NOT_FOUND, TestEnv, refused};
use crate::race::race_against;

fn remove(path: &str, tree: bool) -> FileOperation<'_> {
    FileOperation::Remove {
        path: path.as_bytes(),
        tree,
    }
}

#[test]
fn files_links_and_empty_directories_go() {
    let mut env = TestEnv::new();
    fs::write(env.at("file"), "").unwrap();
    fs::create_dir_all(env.at("full/of")).unwrap();
    symlink("full", env.at("link")).unwrap();
    env.perform(remove("file", false)).unwrap();
    env.perform(remove("link", false)).unwrap();
    assert_eq!(refused(env.perform(remove("full", false))), CONFLICT);
    env.perform(remove("full/of", false)).unwrap();
    env.perform(remove("full/", false)).unwrap();
    for tree in [false, true] {
        assert_eq!(refused(env.perform(remove("full", tree))), NOT_FOUND);
    }
    assert!(env.listing().is_empty());
}

#[test]
fn a_tree_goes_and_nothing_that_its_links_point_to() {
    let mut env = TestEnv::new();
    fs::create_dir_all(env.at("tree/a/b/c")).unwrap();
    fs::create_dir(env.at("kept")).unwrap();
    fs::write(env.at("kept/file"), "").unwrap();
    symlink("../../kept", env.at("tree/a/link")).unwrap();
    symlink(env.outside(), env.at("tree/out")).unwrap();
    symlink("kept", env.at("link")).unwrap();
    for number in 0..2000 {
        fs::write(env.at(format!("tree/a/b/{number}")), "").unwrap();
    }
    env.perform(remove("tree", true)).unwrap();
    env.perform(remove("link", true)).unwrap();
    assert_eq!(env.listing(), ["kept", "kept/file"]);
    env.assert_outside_untouched();
}

#[test]
fn a_tree_of_any_depth_goes() {
    let mut env = TestEnv::new();
    fs::create_dir(env.at("deep")).unwrap();
    let mut above = rustix::fs::open(
        env.at("deep"),
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
    env.perform(remove("deep", true)).unwrap();
    assert!(env.listing().is_empty());
}

#[test]
fn a_tree_goes_while_others_put_things_into_it() {
    let mut env = TestEnv::new();
    let place = env.at("tree/a/b");
    let put = || {
        // The directory may be gone.
        let _ = fs::create_dir_all(&place);
        let _ = fs::write(place.join("file"), "");
    };
    race_against(put, || {
        for _ in 0..200 {
            if let Err(refused) = env.perform(remove("tree", true)) {
                assert!(matches!(refused.kind, NOT_FOUND | CONFLICT), "{refused:?}");
            }
        }
    });
    let _ = env.perform(remove("tree", true));
    assert!(env.listing().is_empty());
}
