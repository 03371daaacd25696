//! Roots that it can boot from.

use std::{
    fs,
    os::unix::fs::{MetadataExt as _, symlink},
    path::Path,
};

use vmcell::{
    Vm, VmBuilder,
    backend::{Backend as _, HostProcess},
};

use crate::{base, builder, shell};

/// Creates a directory with busybox and a file.
fn directory() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let bin = folder.path().join("bin");
    fs::create_dir(&bin).unwrap();
    fs::copy("/bin/busybox", bin.join("busybox")).unwrap();
    symlink("busybox", bin.join("sh")).unwrap();
    fs::write(folder.path().join("file"), "before").unwrap();
    folder
}

fn in_directory(folder: &Path) -> Option<VmBuilder> {
    let builder = Vm::builder().directory(folder).memory_mib(128);
    let available = HostProcess::new().health().is_available;
    available.then(|| builder.backend("process").allow_host_compat())
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<_> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[tokio::test]
async fn a_directory_is_seen_and_never_written() {
    let folder = directory();
    let Some(builder) = in_directory(folder.path()) else {
        return;
    };
    let vm = builder.start().await.unwrap();
    let script = "busybox cat /file; echo after > /file; busybox stat -c %u /file";
    assert_eq!(shell(&vm, script).await, "before0\n");
    assert_eq!(shell(&vm, "busybox cat /file").await, "after\n");
    vm.stop().await.unwrap();
    assert_eq!(fs::read(folder.path().join("file")).unwrap(), b"before");
    assert_eq!(names(folder.path()), ["bin", "file"]);
}

#[tokio::test]
async fn links_of_a_root_lead_nowhere_else() {
    let folder = directory();
    let outside = tempfile::tempdir().unwrap();
    for name in ["dev", "proc", "run", "sys"] {
        symlink(outside.path(), folder.path().join(name)).unwrap();
    }
    let Some(builder) = in_directory(folder.path()) else {
        return;
    };
    // It cannot use such a root, and reports an error.
    let error = builder.start().await.unwrap_err();
    assert!(error.to_string().contains("attach /dev"), "{error}");
    assert_eq!(names(outside.path()), [""; 0]);
}

#[tokio::test]
async fn what_is_no_directory_or_no_image_is_named() {
    let Some(builder) = builder() else { return };
    for (root, expected) in [
        (in_directory(Path::new("/no/such/folder")), "No such file"),
        (in_directory(Path::new("/bin/busybox")), "not a directory"),
        (Some(builder.clone().image("/no/such/file")), "No such file"),
        (Some(builder.clone().image("/bin/busybox")), "/bin/busybox"),
        (Some(builder.clone().image("/")), "not a regular file"),
    ] {
        let error = root.unwrap().start().await.unwrap_err();
        assert_eq!(error.code(), "bad-file", "{error:?}");
        assert!(error.to_string().contains(expected), "{error}");
    }
    let both = builder.directory("/").start().await.unwrap_err();
    assert_eq!(both.code(), "invalid");
}

#[tokio::test]
async fn a_disk_that_would_be_written_is_refused() {
    let health = HostProcess::new().health();
    if !health.is_available {
        eprintln!("skipped: {}", health.reason);
        return;
    }
    let builder = Vm::builder().disk("work.qcow2").backend("process");
    let error = builder.allow_host_compat().start().await.unwrap_err();
    assert_eq!(error.code(), "invalid");
    assert!(error.to_string().contains("choose a backend"), "{error}");
}

#[tokio::test]
async fn an_image_that_has_changed_is_unpacked_anew_and_the_old_files_stay_while_used() {
    let Some(builder) = builder() else { return };
    let folder = tempfile::tempdir().unwrap();
    let image = folder.path().join("image.ext4");
    fs::copy(base(), &image).unwrap();
    let first = builder.clone().image(&image).start().await.unwrap();
    let inode = fs::metadata(&image).unwrap().ino();

    let other = folder.path().join("other.ext4");
    fs::copy(base(), &other).unwrap();
    fs::rename(&other, &image).unwrap();
    assert_ne!(fs::metadata(&image).unwrap().ino(), inode);
    // Several use the same image at once.
    let (second, third) = tokio::join!(
        builder.clone().image(&image).start(),
        builder.image(&image).start()
    );
    for vm in [first, second.unwrap(), third.unwrap()] {
        assert_eq!(shell(&vm, "ls /bin/busybox").await, "/bin/busybox\n");
        vm.stop().await.unwrap();
    }
}
