//! Comparisons with the kernel: file systems that it has written and mounts.
//!
//! Mounting needs root. Without it, these tests are skipped.

use std::{
    os::unix::{
        ffi::OsStrExt,
        fs::{FileExt, MetadataExt},
    },
    thread,
    time::{Duration, Instant},
};

use rustix::fs::{FallocateFlags, XattrFlags};

use super::{sample::random_bytes, *};

/// How long a file system can be busy after its last use.
const UNMOUNT_TIMEOUT: Duration = Duration::from_secs(30);

/// An image that is mounted until this is dropped.
struct Mount {
    folder: tempfile::TempDir,
}

impl Mount {
    fn new(image: &Path, options: &str) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let options = format!("loop,noatime,{options}");
        let mut command = tool("mount");
        command.args(["-o", &options]).arg(image).arg(folder.path());
        let done = command.output().is_ok_and(|output| output.status.success());
        if !done {
            eprintln!("skipped: an image cannot be mounted here ({command:?})");
        }
        done.then_some(Self { folder })
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        // A program that another test starts has copies of open files until its execve, and so
        // the file system can be busy for a moment.
        let until = Instant::now() + UNMOUNT_TIMEOUT;
        loop {
            let done = tool("umount").arg(self.path()).output();
            if done.is_ok_and(|output| output.status.success()) || Instant::now() > until {
                return;
            }
            thread::yield_now();
        }
    }
}

/// Writes structures that `mke2fs` and `debugfs` do not create.
fn fill(root: &Path, large_values: bool) {
    let set = |path: &Path, name: &str, value: &[u8]| {
        rustix::fs::lsetxattr(path, name, value, XattrFlags::empty()).unwrap();
    };
    fs::create_dir(root.join("indexed")).unwrap();
    fs::write(root.join("indexed/0"), b"").unwrap();
    for number in 1..6000 {
        // An inode has a maximum number of hard links.
        let target = root.join(format!("indexed/{}", number / 6000));
        fs::hard_link(target, root.join(format!("indexed/{number}"))).unwrap();
    }
    for length in [10, 59, 60, 61, 130, 150, 5000, 100_000] {
        let path = root.join(format!("file-{length}"));
        fs::write(&path, random_bytes(length, 1)).unwrap();
        set(&path, "user.note", &random_bytes(length.min(20), 2));
    }
    let file = root.join("with attributes");
    fs::write(&file, b"").unwrap();
    set(&file, "user.long", &random_bytes(700, 3));
    set(&file, "trusted.other", b"x");
    set(&file, "security.more", b"");
    if large_values {
        set(&file, "user.large", &random_bytes(30_000, 4));
    }
    std::os::unix::fs::symlink("s".repeat(100), root.join("link")).unwrap();

    let sparse = fs::File::create(root.join("sparse")).unwrap();
    for number in 0..200 {
        sparse
            .write_all_at(&random_bytes(100, number), number * 70_000)
            .unwrap();
    }
    sparse.set_len(20_000_000).unwrap();
    let room = fs::File::create(root.join("room")).unwrap();
    let keep = FallocateFlags::KEEP_SIZE;
    if rustix::fs::fallocate(&room, FallocateFlags::empty(), 0, 500_000).is_ok() {
        rustix::fs::fallocate(&room, keep, 1_000_000, 500_000).unwrap();
        room.write_all_at(b"in the middle", 250_000).unwrap();
    }
    // Extended without being written.
    fs::OpenOptions::new()
        .write(true)
        .open(root.join("file-10"))
        .unwrap()
        .set_len(50_000)
        .unwrap();
    fs::remove_file(root.join("indexed/5000")).unwrap();
}

/// Checks that the reader and the kernel see the same.
fn compare(ext4: &Ext4, root: &Path, case: &str) {
    let mut found = everything(ext4);
    let mut pending = vec![root.to_owned()];
    while let Some(directory) = pending.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(root).unwrap().as_os_str().as_bytes();
            let case = format!("{case}: {}", name.escape_ascii());
            let inode = found
                .remove(name)
                .unwrap_or_else(|| panic!("{case} is missing"));
            compare_inode(&inode, &path.symlink_metadata().unwrap(), &case);
            match inode.kind {
                Kind::File => {
                    assert!(content(ext4, &inode) == fs::read(&path).unwrap(), "{case}");
                }
                Kind::Symlink => {
                    let target = fs::read_link(&path).unwrap();
                    let found = ext4.read_link(&inode).unwrap();
                    assert_eq!(found, target.as_os_str().as_bytes());
                }
                Kind::Directory => pending.push(path.clone()),
                _ => {}
            }
            let ours: BTreeMap<_, _> = ext4
                .attributes(&inode)
                .into_iter()
                .map(|attribute| attribute.unwrap())
                .map(|attribute| (attribute.name, attribute.value))
                .collect();
            assert!(ours == attributes(&path), "{case}: {:?}", ours.keys());
        }
    }
    assert!(
        found.is_empty(),
        "{case}: the kernel has no {:?}",
        found.keys()
    );
}

fn compare_inode(inode: &Inode, metadata: &fs::Metadata, case: &str) {
    let time = |seconds, nanoseconds: i64| Timestamp {
        seconds,
        nanoseconds: u32::try_from(nanoseconds).unwrap(),
    };
    assert_eq!(u64::from(inode.number), metadata.ino(), "{case}");
    assert_eq!(u32::from(inode.mode), metadata.mode() & 0o7777, "{case}");
    assert_eq!(
        (inode.uid, inode.gid),
        (metadata.uid(), metadata.gid()),
        "{case}"
    );
    assert_eq!(inode.size, metadata.size(), "{case}");
    assert_eq!(u64::from(inode.links), metadata.nlink(), "{case}");
    // The kernel counts more for inline data.
    if !inode.has_inline_data() {
        assert_eq!(inode.allocated, metadata.blocks() * 512, "{case}");
    }
    assert_eq!(
        inode.accessed,
        time(metadata.atime(), metadata.atime_nsec()),
        "{case}"
    );
    assert_eq!(
        inode.modified,
        time(metadata.mtime(), metadata.mtime_nsec()),
        "{case}"
    );
    assert_eq!(
        inode.changed,
        time(metadata.ctime(), metadata.ctime_nsec()),
        "{case}"
    );
}

fn attributes(path: &Path) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let mut names = vec![0; 1 << 16];
    let length = rustix::fs::llistxattr(path, &mut names[..]).unwrap();
    names[..length]
        .split(|byte| *byte == 0)
        .filter(|name| !name.is_empty())
        .map(|name| {
            let mut value = vec![0; 1 << 16];
            let length = rustix::fs::lgetxattr(path, name, &mut value[..]).unwrap();
            value.truncate(length);
            (name.to_vec(), value)
        })
        .collect()
}

#[test]
fn what_the_kernel_has_written_is_read_as_the_kernel_reads_it() {
    for (options, large_values) in [
        (&["-t", "ext4"][..], false),
        (
            &[
                "-t",
                "ext4",
                "-b",
                "1024",
                "-O",
                "ea_inode,inline_data",
                "-I",
                "512",
            ],
            true,
        ),
        (
            &[
                "-t",
                "ext4",
                "-b",
                "1024",
                "-O",
                "^metadata_csum,bigalloc",
                "-C",
                "4096",
            ],
            false,
        ),
        (&["-t", "ext3", "-b", "1024"], false),
        (&["-t", "ext2", "-b", "4096", "-I", "128"], false),
    ] {
        let image = Image::new(options, 40, None);
        let Some(mount) = Mount::new(&image.path(), "rw") else {
            return;
        };
        fill(mount.path(), large_values);
        drop(mount);
        let mount = Mount::new(&image.path(), "ro").expect("it was mounted to be written");
        compare(&image.open(), mount.path(), &options.join(" "));
    }
}

#[test]
fn an_image_copied_while_it_is_written_is_what_the_kernel_would_recover() {
    for (options, mode) in [
        (&["-t", "ext4"][..], "ordered"),
        (
            &["-t", "ext4", "-O", "orphan_file,metadata_csum_seed"],
            "journal",
        ),
        (
            &["-t", "ext4", "-b", "1024", "-O", "^metadata_csum"],
            "journal",
        ),
        (&["-t", "ext3", "-b", "1024"], "writeback"),
    ] {
        let image = Image::new(options, 40, None);
        let Some(mount) = Mount::new(&image.path(), &format!("rw,commit=600,data={mode}")) else {
            return;
        };
        // Fill the log, so that it wraps around and has revoked blocks.
        for round in 0..3 {
            fill(mount.path(), false);
            rustix::fs::syncfs(fs::File::open(mount.path()).unwrap()).unwrap();
            if round < 2 {
                for entry in fs::read_dir(mount.path()).unwrap() {
                    let path = entry.unwrap().path();
                    if path.ends_with("lost+found") {
                        continue;
                    }
                    let _ = fs::remove_dir_all(&path).or_else(|_| fs::remove_file(&path));
                }
            }
        }
        // Data that looks like journal blocks.
        let marks = 0xc03b_3998_u32.to_be_bytes().repeat(5000);
        fs::write(mount.path().join("marks"), marks).unwrap();
        fs::write(mount.path().join("the last one"), b"here").unwrap();
        fs::File::open(mount.path().join("the last one"))
            .unwrap()
            .sync_all()
            .unwrap();
        let copy = image.folder.path().join("copy");
        fs::copy(image.path(), &copy).unwrap();
        drop(mount);

        let ext4 = Ext4::open(fs::File::open(&copy).unwrap(), Options::default()).unwrap();
        let JournalState::Replayed {
            blocks,
            damage: None,
            ..
        } = ext4.info().journal
        else {
            panic!("{:?}", ext4.info().journal);
        };
        assert!(blocks > 0);
        // Let the kernel recover another copy, which it has to write to.
        let recovered = image.folder.path().join("recovered");
        fs::copy(&copy, &recovered).unwrap();
        let mount = Mount::new(&recovered, "rw").expect("the first was mounted");
        assert_eq!(content(&ext4, &find(&ext4, "the last one")), b"here");
        compare(&ext4, mount.path(), &options.join(" "));
    }
}

#[test]
fn fast_commits_of_the_kernel_are_noticed() {
    if !Path::new("/sys/fs/ext4/features/fast_commit").exists() {
        eprintln!("skipped: this kernel makes none");
        return;
    }
    let image = Image::new(&["-t", "ext4", "-O", "fast_commit"], 40, None);
    let Some(mount) = Mount::new(&image.path(), "rw,commit=600") else {
        return;
    };
    for number in 0..3 {
        let file = fs::File::create(mount.path().join(format!("file {number}"))).unwrap();
        file.write_all_at(b"contents", 0).unwrap();
        file.sync_all().unwrap();
    }
    let copy = image.folder.path().join("copy");
    fs::copy(image.path(), &copy).unwrap();
    drop(mount);

    let error = Ext4::open(fs::File::open(&copy).unwrap(), Options::default()).unwrap_err();
    assert!(error.to_string().contains("fast_commit"), "{error}");
    // After an unmount there are no fast commits.
    assert_eq!(everything(&image.open()).len(), 4);
}
