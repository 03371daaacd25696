//! Errors are specific, and failed builds leave no files behind.

use std::fs;
use std::path::Path;

use tempfile::TempDir;
use vmcell_rootfs::{Content, Error, ImageBuilder, Size, Timestamps, Tools, Tree, recipe};

use crate::inspect::{files_in, install_program};

/// Builds into a new folder and expects an error and no files.
fn failure(builder: &ImageBuilder, tree: &Tree) -> Error {
    let folder = TempDir::new().unwrap();
    let error = builder
        .build(tree, folder.path().join("image"))
        .unwrap_err();
    assert_eq!(
        files_in(folder.path()),
        Vec::<std::path::PathBuf>::new(),
        "after {error}"
    );
    error
}

#[test]
fn a_tree_must_be_a_directory() {
    let folder = TempDir::new().unwrap();
    let missing = folder.path().join("missing");
    assert!(
        matches!(Tree::from_dir(&missing), Err(Error::TreeMissing { path }) if path == missing)
    );
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    assert!(matches!(Tree::from_dir(&file), Err(Error::TreeNotDirectory { path }) if path == file));
}

#[test]
fn missing_tools_are_named_with_their_package() {
    let empty = TempDir::new().unwrap();
    let builder = ImageBuilder::new().tools(Tools::in_folders([empty.path()]));
    let message = failure(&builder, &Tree::new()).to_string();
    assert!(
        message.contains("mke2fs") && message.contains("apt-get install e2fsprogs"),
        "{message}"
    );
}

#[test]
fn tools_that_are_too_old_are_refused() {
    let folder = TempDir::new().unwrap();
    install_program(
        &folder.path().join("mke2fs"),
        b"#!/bin/sh\necho 'mke2fs 1.45.5 (07-Jan-2020)' >&2\n",
    );
    let builder = ImageBuilder::new().tools(Tools::in_folders([folder.path()]));
    let error = failure(&builder, &Tree::new());
    assert!(
        matches!(error, Error::ToolTooOld { ref found } if found.contains("1.45.5")),
        "{error}"
    );
}

#[test]
fn a_tree_that_does_not_fit_is_refused_with_a_size_that_does() {
    let mut tree = Tree::new();
    let noise: Vec<u8> = (0..24_u32 << 20).map(|index| (index % 251) as u8).collect();
    tree.file("/large", 0o644, noise).unwrap();
    let error = failure(&ImageBuilder::new().size(Size::Exact(20 << 20)), &tree);
    let Error::TooSmall { size, needed } = error else {
        panic!("{error}")
    };
    assert_eq!(size, 20 << 20);
    let folder = TempDir::new().unwrap();
    ImageBuilder::new()
        .size(Size::Exact(needed))
        .build(&tree, folder.path().join("image"))
        .unwrap();

    let error = failure(&ImageBuilder::new().size(Size::Exact(4096)), &Tree::new());
    assert!(
        matches!(error, Error::TooSmall { size: 4096, .. }),
        "{error}"
    );
}

#[test]
fn a_failed_build_keeps_the_image_that_was_there() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("image");
    fs::write(&path, "precious").unwrap();
    let mut tree = Tree::new();
    tree.file("/large", 0o644, vec![1; 24 << 20]).unwrap();
    ImageBuilder::new()
        .size(Size::Exact(20 << 20))
        .build(&tree, &path)
        .unwrap_err();
    assert_eq!(fs::read(&path).unwrap(), b"precious");
    assert_eq!(files_in(folder.path()).len(), 1);
}

#[test]
fn content_that_is_gone_is_named() {
    let mut tree = Tree::new();
    tree.file("/file", 0o644, Content::HostFile("/no/such/file".into()))
        .unwrap();
    let error = failure(&ImageBuilder::new(), &tree);
    assert!(matches!(error, Error::Read { ref path, .. } if path == Path::new("/no/such/file")));
}

#[test]
fn a_destination_without_a_folder_is_an_error() {
    let error = ImageBuilder::new()
        .build(&Tree::new(), "/no/such/folder/image")
        .unwrap_err();
    assert!(matches!(error, Error::Write { .. }), "{error}");
}

#[test]
fn bad_labels_and_epochs_are_refused() {
    for label in ["seventeen letters", "line\nbreak"] {
        let error = failure(&ImageBuilder::new().label(label), &Tree::new());
        assert!(matches!(error, Error::Label { .. }), "{error}");
    }
    let error = failure(
        &ImageBuilder::new().timestamps(Timestamps::AllAt(0)),
        &Tree::new(),
    );
    assert!(matches!(error, Error::Epoch { epoch: 0 }), "{error}");
}

#[test]
fn errors_of_debugfs_are_not_overlooked() {
    // debugfs always exits with 0, and so does this fake.
    let folder = TempDir::new().unwrap();
    install_program(
        &folder.path().join("debugfs"),
        b"#!/bin/sh\necho 'debugfs 1.47.0 (5-Feb-2023)' >&2\necho 'write: something broke' >&2\n",
    );
    let folders = [folder.path(), Path::new("/usr/sbin"), Path::new("/sbin")];
    let error = failure(
        &ImageBuilder::new().tools(Tools::in_folders(folders)),
        &Tree::new(),
    );
    assert!(
        matches!(error, Error::ToolFailed { tool: "debugfs", ref output } if output == "write: something broke"),
        "{error}"
    );
}

#[test]
fn a_busybox_that_would_not_run_in_a_guest_is_refused() {
    let cache = TempDir::new().unwrap();
    let refuse = |path: &Path| {
        let cache = vmcell_rootfs::Cache::at(cache.path());
        cache.image(&recipe::base().busybox(path)).unwrap_err()
    };
    // On these targets, the test program itself is linked dynamically.
    if cfg!(all(target_env = "gnu", not(target_feature = "crt-static"))) {
        let error = refuse(&std::env::current_exe().unwrap());
        assert!(matches!(error, Error::BusyboxNotStatic { .. }), "{error}");
        assert!(error.to_string().contains("apt-get install busybox-static"));
    }
    let folder = TempDir::new().unwrap();
    install_program(&folder.path().join("busybox"), b"#!/bin/sh\n");
    assert!(matches!(
        refuse(&folder.path().join("busybox")),
        Error::BusyboxNotStatic { .. }
    ));
    assert!(matches!(
        refuse(&folder.path().join("missing")),
        Error::BusyboxMissing
    ));
    assert_eq!(files_in(cache.path()).len(), 0);
}
