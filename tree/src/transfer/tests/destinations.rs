use std::{
    env, fs,
    os::unix::fs::{MetadataExt as _, symlink},
    path::{Path, PathBuf},
};

use super::{Stream, received_with, sent, slices};
use crate::transfer::{Destination, ReceiveOptions, TopSymlink, TreeError, host_entry::HostEntry};

#[path = "../../../tests/pairs/mod.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod pairs;

use pairs::{Pairs, Way};

fn check_all(way: Way, destination: impl Fn(PathBuf) -> Destination) {
    let pairs = Pairs::new(way);
    let grown = pairs.grow();
    let top_symlink = match way {
        Way::AllowSymlink => TopSymlink::Make,
        _ => TopSymlink::Refuse,
    };
    for pair in pairs.all() {
        let (pieces, _) = sent(&grown.join(pair.coming.name()));
        let options = ReceiveOptions {
            top_symlink,
            ..ReceiveOptions::default()
        };
        let destination = destination(pair.destination.clone());
        let received = received_with(slices(&pieces), destination, options);
        let result = received.map(drop).map_err(|error| error.to_string());
        pairs.check(&pair, result);
    }
}

#[test]
fn whatever_comes_wherever_nothing_outside_of_the_destination_changes() {
    check_all(Way::Exact, Destination::Path);
    check_all(Way::AllowSymlink, Destination::Path);
}

#[cfg(feature = "archive")]
#[test]
fn an_archive_goes_where_a_file_would_and_nowhere_else() {
    check_all(Way::Archive, |path| Destination::ArchiveAt {
        path,
        format: crate::transfer::ArchiveFormat::Tar,
        name: b"name".to_vec(),
    });
}

/// Only links in the path that is named count: what leads to the working
/// directory, and what a test or a user has resolved, does not.
#[test]
fn paths_without_links_work_however_they_are_written() {
    let folder = tempfile::tempdir().unwrap();
    let top = folder.path();
    let tree = Stream::default().enter(b"").file(b"a", b"x").leave();
    fs::create_dir(top.join("there")).unwrap();
    for (path, made) in [
        ("new", "new"),
        ("there/", "there"),
        ("there/../up", "up"),
        ("there/.", "there"),
        ("./dot/./deep//er/", "dot/deep/er"),
        ("there/deep/..", "there"),
    ] {
        tree.received(&top.join(path)).unwrap();
        assert_eq!(fs::read(top.join(made).join("a")).unwrap(), b"x", "{path}");
        fs::remove_file(top.join(made).join("a")).unwrap();
    }
    // From the working directory on, up to the root and down again.
    let depth = env::current_dir().unwrap().components().count();
    let up: PathBuf = std::iter::repeat_n("..", depth).collect();
    let relative = up.join(top.strip_prefix("/").unwrap()).join("relative");
    tree.received(&relative).unwrap();
    assert!(top.join("relative/a").is_file());

    // A file needs a name; a directory can go into one that has none.
    let file = Stream::default().file(b"", b"x");
    for path in [top.join("there/.."), PathBuf::from("/"), PathBuf::from(".")] {
        let error = file.received(&path).unwrap_err();
        assert!(matches!(error, TreeError::InTheWay { .. }), "{error:?}");
    }
    let error = file.received(Path::new("")).unwrap_err();
    assert!(matches!(error, TreeError::Write { .. }), "{error:?}");

    symlink(top.join("there"), top.join("mine")).unwrap();
    let error = tree.received(&top.join("mine/..")).unwrap_err();
    assert!(
        matches!(error, TreeError::ThroughSymlink { .. }),
        "{error:?}"
    );
    let resolved = top.join("mine").canonicalize().unwrap().join("new");
    tree.received(&resolved).unwrap();
    assert!(top.join("there/new/a").is_file());
}

/// A link in the root directory is the system's own, as `/bin` is on most
/// systems. The directory is only opened: nothing is written there.
#[test]
fn links_in_the_root_directory_are_followed() {
    let (directory, name) = HostEntry::open(Path::new("/bin/file"))
        .unwrap()
        .into_parts();
    let (opened, there) = (
        rustix::fs::fstat(&directory).unwrap(),
        fs::metadata("/bin").unwrap(),
    );
    assert_eq!((opened.st_dev, opened.st_ino), (there.dev(), there.ino()));
    assert_eq!(name, b"file");
}
