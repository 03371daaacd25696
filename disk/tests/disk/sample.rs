//! A sample tree with all kinds of entries, and images of it.

use std::{
    ffi::OsStr,
    fs,
    os::unix::{
        ffi::OsStrExt as _,
        fs::{FileExt as _, PermissionsExt as _, symlink},
    },
    path::{Path, PathBuf},
};

use rustix::fs::{XattrFlags, setxattr};
use vmcell_disk::{
    Disk,
    image::{self, Format},
};

pub(crate) use crate::sample_image::{Sample, debugfs, pattern, run, tool};
use crate::sample_image::{create_common_entries, write};

/// The cluster size of a child.
const CLUSTER: usize = 64 << 10;

impl Sample {
    /// Creates the tree and an image with 4 KiB blocks.
    pub(crate) fn new() -> Self {
        Self::with(&["-t", "ext4", "-b", "4096"])
    }

    pub(crate) fn with(options: &[&str]) -> Self {
        Self::create(options, create_tree)
    }

    pub(crate) fn open(&self) -> Disk {
        open(&self.image())
    }

    /// Returns a qcow2 child of the image that contains only these changes.
    pub(crate) fn child(&self, commands: &str) -> PathBuf {
        let changed = self.changed("changed.ext4", commands);
        let child = self.path("child.qcow2");
        image::create_child(self.image(), &child, image::OpenOptions::new()).unwrap();
        let mut write = tool("qemu-io");
        write.args(["-f", "qcow2"]).arg(&child);
        let bytes = |path| fs::read(path).unwrap();
        let (old, new) = (bytes(self.image()), bytes(changed));
        let clusters = old.chunks(CLUSTER).zip(new.chunks(CLUSTER)).enumerate();
        for (number, (old, new)) in clusters {
            if old != new {
                let file = self.file(&format!("cluster-{number}"), new);
                let (offset, length) = (number * CLUSTER, new.len());
                write.args(["-c", &format!("write -q -s {file} {offset} {length}")]);
            }
        }
        run(&mut write);
        let layer = &open(&child).layers().unwrap()[0];
        assert!(layer.allocated < 4 << 20, "{layer:?}");
        child
    }

    /// Creates a file next to the image, for use in commands.
    pub(crate) fn file(&self, name: &str, content: &[u8]) -> String {
        let path = self.path(name);
        fs::write(&path, content).unwrap();
        path.to_str().unwrap().to_owned()
    }
}

/// Creates the tree.
fn create_tree(tree: &Path) {
    let main = b"fn main() {\n    println!(\"hello\");\n}\n";
    create_common_entries(tree, main);
    let write = |path: &str, content: &[u8], mode| write(tree, path, content, mode);
    let passwd = b"root:x:0:0::/root:/bin/sh\nalice:x:1000:1000::/:\n";
    write("etc/passwd", passwd, 0o644);
    write("etc/group", b"root:x:0:\nusers:x:1000:alice\n", 0o644);
    write("bin/tool", &pattern(300_000), 0o4755);
    write("data/large", &pattern(3_000_000), 0o644);
    write("data/name with\x1b[31m escape", b"coloured\n", 0o644);
    for number in 0..300 {
        let text = format!("{number}\n");
        write(&format!("many/{number:04}"), text.as_bytes(), 0o644);
    }
    let not_utf8 = OsStr::from_bytes(b"data/not-utf8-\xff\xfe");
    fs::write(tree.join(not_utf8), b"bytes").unwrap();

    // Holes at the beginning, in the middle and at the end.
    let sparse = fs::File::create(tree.join("data/sparse")).unwrap();
    sparse.write_all_at(b"in the middle", 1_500_000).unwrap();
    sparse.write_all_at(&pattern(10_000), 2_700_000).unwrap();
    sparse.set_len(6_000_000).unwrap();

    symlink("passwd", tree.join("etc/relative")).unwrap();
    symlink("/etc/passwd", tree.join("absolute")).unwrap();
    symlink("../../../../etc", tree.join("src/deep/up")).unwrap();
    symlink("x".repeat(200), tree.join("data/long-link")).unwrap();
    symlink("round", tree.join("round")).unwrap();
    fs::hard_link(tree.join("data/large"), tree.join("large-too")).unwrap();
    fs::create_dir(tree.join("nothing")).unwrap();
    fs::set_permissions(tree.join("nothing"), fs::Permissions::from_mode(0o700)).unwrap();
    if has_xattrs(tree) {
        let none = XattrFlags::empty();
        setxattr(tree.join("src/main.rs"), "user.colour", b"blue", none).unwrap();
        setxattr(tree.join("src"), "user.kind", &[7; 700], none).unwrap();
    }
}

/// Returns whether the host's file system supports extended attributes.
pub(crate) fn has_xattrs(folder: &Path) -> bool {
    setxattr(folder, "user.vmcell-test", b"", XattrFlags::empty()).is_ok()
}

pub(crate) fn open(path: &Path) -> Disk {
    Disk::open(path).unwrap_or_else(|error| panic!("{error:?}"))
}

pub(crate) fn open_raw(path: &Path) -> Disk {
    Disk::options().format(Format::Raw).open(path).unwrap()
}

/// Returns the output of a `debugfs` command.
pub(crate) fn debugfs_output(image: &Path, command: &str) -> String {
    run(tool("debugfs").args(["-R", command]).arg(image))
}
