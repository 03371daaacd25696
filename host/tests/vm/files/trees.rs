//! Pushing and pulling directory trees.

use std::{
    collections::BTreeMap,
    ffi::OsStr,
    fs,
    os::unix::{
        ffi::OsStrExt,
        fs::{FileExt, MetadataExt, PermissionsExt, symlink},
    },
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use vmcell::{
    Error, Vm,
    files::{FileOwner, Files},
    tree::{ArchiveFormat, TreeError, TreeLimits},
};

use super::kind;
use crate::start;

/// Describes a tree of the host completely.
fn description(top: &Path) -> BTreeMap<PathBuf, String> {
    let mut found = BTreeMap::new();
    let mut inodes = BTreeMap::new();
    let mut directories = vec![top.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(&directory).unwrap() {
            let path = entry.unwrap().path();
            let below = path.strip_prefix(top).unwrap().to_owned();
            let status = path.symlink_metadata().unwrap();
            let kind = status.file_type();
            let (mode, time) = (status.mode(), (status.mtime(), status.mtime_nsec()));
            let text = if kind.is_dir() {
                directories.push(path);
                format!("{mode:o} {time:?}")
            } else if kind.is_symlink() {
                format!("-> {:?} {time:?}", fs::read_link(&path).unwrap())
            } else {
                let links = inodes.entry(status.ino()).or_insert_with(Vec::new);
                links.push(below.clone());
                let content = fs::read(&path).unwrap();
                let sum: u64 = content.iter().map(|byte| u64::from(*byte)).sum();
                let size = content.len();
                format!("{mode:o} {time:?} {size} {sum} x{}", status.nlink())
            };
            found.insert(below, text);
        }
    }
    for (number, links) in inodes
        .into_values()
        .filter(|links| links.len() > 1)
        .enumerate()
    {
        let mut links = links;
        links.sort();
        found.insert(PathBuf::from(format!("//{number}")), format!("{links:?}"));
    }
    found
}

fn make_tree(top: &Path) {
    let deep = top.join("a/b/c");
    fs::create_dir_all(&deep).unwrap();
    fs::create_dir(top.join("empty")).unwrap();
    fs::write(top.join("plain"), "plain\n").unwrap();
    fs::write(deep.join("script"), "#!/bin/sh\necho ran\n").unwrap();
    fs::set_permissions(deep.join("script"), fs::Permissions::from_mode(0o750)).unwrap();
    fs::write(top.join(OsStr::from_bytes(b"odd \xff\n\x1b[31m")), "odd").unwrap();
    symlink("../plain", top.join("a/link")).unwrap();
    symlink("/nowhere/at/all", top.join("dangling")).unwrap();
    fs::hard_link(top.join("plain"), top.join("a/twin")).unwrap();
    let large: Vec<u8> = (0..300_000u32).map(|at| (at / 7) as u8).collect();
    fs::write(top.join("large"), large).unwrap();
    let sparse = fs::File::create(top.join("sparse")).unwrap();
    sparse.set_len(40 << 20).unwrap();
    sparse.write_all_at(b"in the middle", 20 << 20).unwrap();
    let old = SystemTime::UNIX_EPOCH + Duration::new(1_000_000_000, 123_456_789);
    for path in ["plain", "large", "a/b"] {
        let file = fs::File::open(top.join(path)).unwrap();
        file.set_modified(old).unwrap();
    }
    fs::set_permissions(top.join("empty"), fs::Permissions::from_mode(0o700)).unwrap();
}

/// Pushes a tree and pulls it again, and checks that it is the same.
async fn check_round_trip(files: &Files, folder: &Path) {
    let (source, copy) = (folder.join("source"), folder.join("copy"));
    let pushed = files.push(&source, "tree").run().await.unwrap();
    assert_eq!((pushed.skipped, pushed.unchanged), (0, 0));
    let received = files.pull("tree", &copy).run().await.unwrap();
    assert_eq!((received.skipped, received.lost_xattrs), (0, 0));
    assert_eq!(description(&copy), description(&source));
    let sparse = copy.join("sparse").metadata().unwrap();
    assert!(
        sparse.blocks() * 512 < 1 << 20,
        "{} blocks",
        sparse.blocks()
    );
    fs::remove_dir_all(copy).unwrap();
}

#[tokio::test]
async fn a_tree_that_goes_in_and_comes_out_is_the_same() {
    let vm = start().await;
    let files = vm.files().at("/workspace");
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("source");
    make_tree(&source);
    check_round_trip(&files, folder.path()).await;
    let check = "cd /workspace/tree && ./a/b/c/script && cat a/link && stat -c '%h %a' a/twin && du -k sparse";
    let output = vm.exec(["sh", "-c", check]).await.unwrap();
    let text = output.stdout_text();
    assert!(text.starts_with("ran\nplain\n2 644\n"), "{text}");

    // Unchanged files are not sent again, and changed ones are.
    let again = files.push(&source, "tree").run().await.unwrap();
    assert_eq!(again.entries, 0, "{again:?}");
    assert!(again.unchanged >= 12, "{again:?}");
    fs::write(source.join("a/b/c/script"), "#!/bin/sh\necho again\n").unwrap();
    let changed = files.push(&source, "tree").run().await.unwrap();
    assert!(changed.entries <= 5 && changed.bytes < 100, "{changed:?}");
    let output = vm.exec(["/workspace/tree/a/b/c/script"]).await.unwrap();
    assert_eq!(output.stdout, b"again\n");
    // With the same size and time but other bytes, only a digest reveals the
    // change.
    let modified = source.join("plain").metadata().unwrap().modified().unwrap();
    fs::write(source.join("plain"), "other\n").unwrap();
    let file = fs::File::open(source.join("plain")).unwrap();
    file.set_modified(modified).unwrap();
    let unnoticed = files.push(&source, "tree").run().await.unwrap();
    assert_eq!(unnoticed.bytes, 0, "{unnoticed:?}");
    let noticed = files.push(&source, "tree").compare_digests().run().await;
    assert!(noticed.unwrap().entries > 0);
    assert_eq!(files.read("tree/plain").await.unwrap(), b"other\n");

    // An attached program can do the same through the owner's relay.
    files.remove_tree("tree").await.unwrap();
    let client = Vm::attach(vm.id()).await.unwrap();
    check_round_trip(&client.files().at("/workspace"), folder.path()).await;
}

#[tokio::test]
async fn patterns_choose_and_owners_are_chosen() {
    let vm = start().await;
    let files = vm.files().at("/workspace");
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("source");
    for path in [
        "src/main.rs",
        "src/deep/lib.rs",
        "target/debug/big",
        "notes.txt",
    ] {
        let path = source.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "x").unwrap();
    }
    let push = files.push(&source, "p").exclude("target/").exclude("*.txt");
    push.owner(FileOwner::user("cell")).run().await.unwrap();
    let list = vm
        .exec([
            "sh",
            "-c",
            "cd /workspace/p && find . | sort && stat -c %U src/deep/lib.rs",
        ])
        .await
        .unwrap();
    let expected = ".\n./src\n./src/deep\n./src/deep/lib.rs\n./src/main.rs\ncell\n";
    assert_eq!(list.stdout_text(), expected);
    files.push(&source, "p").run().await.unwrap();
    let out = folder.path().join("out");
    let pull = files.pull("p", &out).include("*.rs").exclude("deep/");
    pull.run().await.unwrap();
    let found: Vec<_> = description(&out).into_keys().collect();
    assert_eq!(found, [Path::new("src"), Path::new("src/main.rs")]);
    let names = files.glob("p/**/*.rs").await.unwrap();
    let names: Vec<_> = names.iter().map(|entry| entry.path.to_str()).collect();
    assert_eq!(names, [Some("p/src/deep/lib.rs"), Some("p/src/main.rs")]);
}

#[tokio::test]
async fn archives_go_in_and_come_out() {
    let vm = start().await;
    let files = vm.files().at("/workspace");
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("source");
    make_tree(&source);
    for (name, option, format) in [
        ("t.tar", "-c", ArchiveFormat::Tar),
        ("t.tgz", "-cz", ArchiveFormat::TarGz),
    ] {
        let archive = folder.path().join(name);
        let made = std::process::Command::new("tar")
            .args([option, "--format=posix", "-f"])
            .arg(&archive)
            .args(["-C", source.to_str().unwrap(), "."])
            .status()
            .unwrap();
        assert!(made.success());
        let push = files.push_archive(&archive, "unpacked").unwrap();
        push.run().await.unwrap();
        let copy = folder.path().join("copy");
        files.pull("unpacked", &copy).run().await.unwrap();
        assert_eq!(description(&copy), description(&source), "{name}");
        fs::remove_dir_all(&copy).unwrap();
        let packed = folder.path().join(format!("out-{name}"));
        let pull = files.pull_archive("unpacked", &packed, format);
        pull.run().await.unwrap();
        fs::create_dir(&copy).unwrap();
        let unpacked = std::process::Command::new("tar")
            .arg("-xf")
            .arg(&packed)
            .args(["-C", copy.to_str().unwrap()])
            .status()
            .unwrap();
        assert!(unpacked.success());
        let names = |top: &Path| description(top).into_keys().collect::<Vec<_>>();
        assert_eq!(names(&copy), names(&source), "{name}");
        fs::remove_dir_all(&copy).unwrap();
        files.remove_tree("unpacked").await.unwrap();
    }
}

#[tokio::test]
async fn what_a_guest_has_beside_files_stays_there() {
    let vm = start().await;
    let files = vm.files().at("/workspace");
    let script = "cd /workspace && mkdir odd && cd odd && mknod null c 1 3 && mkfifo pipe && \
        ln -s /etc/passwd link && echo x > file && chmod 6755 file";
    vm.exec(["sh", "-c", script]).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let received = files.pull("odd", &out).run().await.unwrap();
    assert_eq!(received.skipped, 2, "{received:?}");
    let mode = out.join("file").metadata().unwrap().mode();
    assert_eq!(mode & 0o7777, 0o755, "no setuid program comes out");
    assert!(out.join("link").symlink_metadata().unwrap().is_symlink());
    // An existing symlink on the host is replaced, not followed.
    let victim = folder.path().join("victim");
    fs::write(&victim, "safe").unwrap();
    fs::remove_file(out.join("file")).unwrap();
    symlink(&victim, out.join("file")).unwrap();
    files.pull("odd", &out).run().await.unwrap();
    assert_eq!(fs::read_to_string(&victim).unwrap(), "safe");
    assert_eq!(fs::read_to_string(out.join("file")).unwrap(), "x\n");
    // A single device cannot be pulled at all.
    let error = files
        .pull("odd/null", folder.path().join("null"))
        .run()
        .await;
    assert_eq!(
        kind(error.unwrap_err()),
        vmcell::files::FileFailureKind::Unsupported
    );
    let error = files.pull("nothing", folder.path().join("n")).run().await;
    assert_eq!(
        kind(error.unwrap_err()),
        vmcell::files::FileFailureKind::NotFound
    );
    assert!(!folder.path().join("n").exists());
}

#[tokio::test]
async fn a_tree_keeps_its_limits() {
    let vm = start().await;
    let files = vm.files().at("/workspace");
    let script = "cd /workspace && mkdir many && cd many && touch $(seq 100) && \
        dd if=/dev/zero of=big bs=1M count=4 status=none";
    vm.exec(["sh", "-c", script]).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut limits = TreeLimits::default();
    limits.entries = 50;
    let pull = files.pull("many", folder.path().join("a")).limits(limits);
    let error = pull.run().await.unwrap_err();
    assert!(
        matches!(error, Error::Tree(TreeError::Limit { .. })),
        "{error}"
    );
    let mut limits = TreeLimits::default();
    limits.bytes = 1 << 20;
    let out = folder.path().join("b");
    let error = files
        .pull("many", &out)
        .limits(limits)
        .run()
        .await
        .unwrap_err();
    assert!(
        matches!(error, Error::Tree(TreeError::Limit { .. })),
        "{error}"
    );
    assert!(!out.join("big").exists());
    // The VM and its link still work.
    assert_eq!(files.list("many").await.unwrap().len(), 101);
}
