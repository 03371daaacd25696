use std::{
    env, fs,
    os::unix::fs::{MetadataExt as _, symlink},
    path::{Path, PathBuf},
};

use super::{Stream, received_with, sent, slices};
use crate::transfer::{Destination, ReceiveOptions, TopSymlink, TreeError, host_entry::HostEntry};

#[path = "../../../tests/destination_cases/mod.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod destination_cases;

use destination_cases::{Cases, Method};

fn check_all(method: Method, destination: impl Fn(PathBuf) -> Destination) {
    let cases = Cases::new(method);
    let sources = cases.create_sources();
    let top_symlink = match method {
        Method::AllowSymlink => TopSymlink::Allow,
        _ => TopSymlink::Reject,
    };
    for case in cases.all() {
        let (pieces, _) = sent(&sources.join(case.incoming.name()));
        let options = ReceiveOptions {
            top_symlink,
            ..ReceiveOptions::default()
        };
        let destination = destination(case.destination.clone());
        let received = received_with(slices(&pieces), destination, options);
        let result = received.map(drop).map_err(|error| error.to_string());
        cases.check(&case, result);
    }
}

#[test]
fn whatever_comes_wherever_nothing_outside_of_the_destination_changes() {
    check_all(Method::Exact, Destination::Path);
    check_all(Method::AllowSymlink, Destination::Path);
}

#[cfg(feature = "archive")]
#[test]
fn an_archive_goes_where_a_file_would_and_nowhere_else() {
    check_all(Method::Archive, |path| Destination::ArchiveFile {
        path,
        format: crate::transfer::ArchiveFormat::Tar,
        name: b"name".to_vec(),
    });
}

/// Only symbolic links in the given path are rejected. Those in the path of the
/// working directory, and those that the caller has resolved, are not.
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

    // A file needs a name; a directory can be merged into one without a last
    // name.
    let file = Stream::default().file(b"", b"x");
    for path in [top.join("there/.."), PathBuf::from("/"), PathBuf::from(".")] {
        let error = file.received(&path).unwrap_err();
        assert!(
            matches!(error, TreeError::DirectoryInTheWay { .. }),
            "{error:?}"
        );
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

/// A symbolic link in the root directory belongs to the system, like `/bin` on
/// most systems. The test only opens the directory.
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
