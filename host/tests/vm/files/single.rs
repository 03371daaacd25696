//! One file at a time.

use std::{ffi::OsStr, os::unix::ffi::OsStrExt, time::Duration};

use vmcell::files::{EntryKind, FileFailureKind, FileOwner, ReadOptions, WriteOptions};

use super::kind;
use crate::start;

#[tokio::test]
async fn what_is_written_can_be_read_in_the_guest_and_by_the_host() {
    let vm = start().await;
    let files = vm.files().at("/workspace");
    let entry = files.write("a/b/hello.txt", "hello\n").await.unwrap();
    assert_eq!(entry.path, std::path::Path::new("a/b/hello.txt"));
    assert_eq!((entry.kind, entry.size), (EntryKind::File, 6));
    assert_eq!(entry.permissions(), "-rw-r--r--");
    let output = vm.exec(["cat", "/workspace/a/b/hello.txt"]).await.unwrap();
    assert_eq!(output.stdout, b"hello\n");
    assert_eq!(files.read("a/b/hello.txt").await.unwrap(), b"hello\n");
    // An absolute path below the root is the same.
    let path = "/workspace/a/b/hello.txt";
    assert_eq!(files.read(path).await.unwrap(), b"hello\n");

    let part = ReadOptions::new().range(1, 3);
    assert_eq!(files.read_with(path, part).await.unwrap(), b"ell");
    let limited = ReadOptions::new().limit(5);
    let error = files.read_with(path, limited).await.unwrap_err();
    assert_eq!(kind(error), FileFailureKind::Limit);

    let appended = WriteOptions::new().append();
    files.write_with(path, "more\n", appended).await.unwrap();
    let over = WriteOptions::new().at(0);
    files.write_with(path, "J", over).await.unwrap();
    assert_eq!(files.read(path).await.unwrap(), b"Jello\nmore\n");

    let new = WriteOptions::new().only_if_absent();
    let error = files.write_with(path, "x", new).await.unwrap_err();
    assert_eq!(kind(error), FileFailureKind::Conflict);
    let digest = files.sha256(path).await.unwrap();
    let same = WriteOptions::new().only_if_sha256(digest).mode(0o4750);
    let entry = files.write_with(path, "new\n", same.clone()).await.unwrap();
    assert_eq!(entry.permissions(), "-rwsr-x---");
    let error = files.write_with(path, "newer\n", same).await.unwrap_err();
    assert_eq!(kind(error), FileFailureKind::Conflict);
    assert_eq!(files.read(path).await.unwrap(), b"new\n");
}

#[tokio::test]
async fn names_that_are_no_text_survive() {
    let vm = start().await;
    let files = vm.files().at("/workspace");
    let name = OsStr::from_bytes(b"bad \xff\xfe\n\x1b[2J name");
    files.write(name, "x").await.unwrap();
    let list = files.list("").await.unwrap();
    let found: Vec<_> = list.iter().filter_map(|entry| entry.name()).collect();
    assert!(found.contains(&name), "{found:?}");
    assert_eq!(files.read(name).await.unwrap(), b"x");
    files.remove(name).await.unwrap();
    assert!(!files.exists(name).await.unwrap());
}

#[tokio::test]
async fn new_files_belong_to_whoever_has_the_directory() {
    let vm = start().await;
    let files = vm.files();
    let made = files.make_directory("/workspace/mine").await.unwrap();
    assert_eq!(made.kind, EntryKind::Directory);
    files.set_owner("/workspace/mine", "cell").await.unwrap();
    let entry = files.write("/workspace/mine/sub/file", "x").await.unwrap();
    assert_eq!(entry.owner.as_deref(), Some("cell"));
    let output = vm
        .exec_with(
            ["sh", "-c", "echo y >> /workspace/mine/sub/file"],
            |command| command.user("cell"),
        )
        .await
        .unwrap();
    assert_eq!(output.code(), Some(0), "{}", output.stderr_text());
    let given = files.clone().owned_by(FileOwner::user("1234:1235"));
    let entry = given.write("/workspace/theirs", "x").await.unwrap();
    assert_eq!((entry.uid, entry.gid), (1234, 1235));
}

#[tokio::test]
async fn a_large_file_goes_both_ways() {
    let vm = start().await;
    let files = vm.files().at("/workspace");
    let mut bytes = vec![0; 24 << 20];
    for (index, byte) in bytes.iter_mut().enumerate() {
        *byte = (index as u64)
            .wrapping_mul(0x9e37_79b9_7f4a_7c15)
            .to_be_bytes()[0];
    }
    let mut writer = files.writer("big", WriteOptions::new()).await.unwrap();
    for chunk in bytes.chunks(100_000) {
        writer.write(chunk.to_vec()).await.unwrap();
    }
    let entry = writer.finish().await.unwrap();
    assert_eq!(entry.size, bytes.len() as u64);
    vm.exec(["sh", "-c", "sync; echo 3 > /proc/sys/vm/drop_caches"])
        .await
        .unwrap();
    assert!(files.read("big").await.unwrap() == bytes);
    assert!(files.read("big").await.unwrap() == bytes);
    let part = ReadOptions::new().range(4097, 5 << 20);
    assert!(files.read_with("big", part).await.unwrap() == bytes[4097..4097 + (5 << 20)]);
}

#[tokio::test]
async fn a_path_cannot_leave_its_root() {
    let vm = start().await;
    let files = vm.files().at("/workspace");
    vm.exec(["sh", "-c", "ln -s /etc /workspace/out; ln -s ../etc/passwd /workspace/p; mkdir /workspace/d; ln -s ../d /workspace/d/in"])
        .await
        .unwrap();
    for path in [
        "../etc/passwd",
        "out/passwd",
        "p",
        "d/../../etc/passwd",
        "d/in/../../etc",
    ] {
        let error = files.read(path).await.unwrap_err();
        assert_eq!(kind(error), FileFailureKind::Denied, "{path}");
        let error = files.write(path, "x").await.unwrap_err();
        assert_eq!(kind(error), FileFailureKind::Denied, "{path}");
    }
    files.write("d/in/fine", "x").await.unwrap();
    assert_eq!(files.read("d/fine").await.unwrap(), b"x");
    let error = files.read("/etc/passwd").await.unwrap_err();
    assert_eq!(error.code(), "invalid");
    let error = vm.files().at("/workspace/out").list("").await.unwrap_err();
    assert_eq!(kind(error), FileFailureKind::Denied);
    // The symlink itself can be read and removed.
    assert_eq!(
        files.read_link("out").await.unwrap(),
        std::path::Path::new("/etc")
    );
    files.remove("out").await.unwrap();
    assert!(vm.files().exists("/etc/passwd").await.unwrap());
}

#[tokio::test]
async fn dropping_a_writer_leaves_the_old_file() {
    let vm = start().await;
    let files = vm.files().at("/workspace");
    files.write("file", "old").await.unwrap();
    let mut writer = files.writer("file", WriteOptions::new()).await.unwrap();
    writer.write(vec![b'x'; 1 << 20]).await.unwrap();
    drop(writer);
    // The next file operation may run in the same worker.
    tokio::time::timeout(Duration::from_secs(30), async {
        assert_eq!(files.read("file").await.unwrap(), b"old");
        let left = files.list("").await.unwrap();
        assert_eq!(
            left.iter()
                .filter(|entry| entry.kind == EntryKind::File)
                .count(),
            1
        );
    })
    .await
    .unwrap();
}
