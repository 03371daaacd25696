//! A sample tree with all kinds of entries, and images of it.

use std::{
    env,
    ffi::OsStr,
    fs,
    os::unix::{
        ffi::OsStrExt as _,
        fs::{FileExt as _, PermissionsExt as _, symlink},
    },
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, SystemTime},
};

use rustix::fs::{CWD, FileType, Mode, XattrFlags, mknodat, setxattr};
use tempfile::TempDir;
use vmcell_disk::{
    Disk,
    image::{self, Format},
};

/// The cluster size of a child.
const CLUSTER: usize = 64 << 10;

/// A temporary directory with a tree and an image of it.
pub(crate) struct Sample {
    pub(crate) folder: TempDir,
}

impl Sample {
    /// Creates the tree and an image with 4 KiB blocks.
    pub(crate) fn new() -> Self {
        Self::with(&["-t", "ext4", "-b", "4096"])
    }

    pub(crate) fn with(options: &[&str]) -> Self {
        let sample = Self {
            folder: tempfile::tempdir().unwrap(),
        };
        fs::create_dir(sample.tree()).unwrap();
        create_tree(&sample.tree());
        let mut command = tool("mke2fs");
        command.args(["-q", "-F"]).args(options).arg("-d");
        run(command.arg(sample.tree()).arg(sample.image()).arg("32M"));
        sample
    }

    pub(crate) fn tree(&self) -> PathBuf {
        self.path("tree")
    }

    pub(crate) fn image(&self) -> PathBuf {
        self.path("base.ext4")
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn open(&self) -> Disk {
        open(&self.image())
    }

    /// Returns a copy of the image, changed by `debugfs` commands, one per
    /// line.
    pub(crate) fn changed(&self, name: &str, commands: &str) -> PathBuf {
        let copy = self.path(name);
        fs::copy(self.image(), &copy).unwrap();
        debugfs(&copy, commands);
        copy
    }

    /// Returns a qcow2 child of the image that contains only these changes.
    pub(crate) fn child(&self, commands: &str) -> PathBuf {
        let changed = self.changed("changed.ext4", commands);
        let child = self.path("child.qcow2");
        image::create_child(self.image(), &child, &image::OpenOptions::new()).unwrap();
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
    let write = |path: &str, content: &[u8], mode: u32| {
        let path = tree.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    };
    let passwd = b"root:x:0:0::/root:/bin/sh\nalice:x:1000:1000::/:\n";
    write("etc/passwd", passwd, 0o644);
    write("etc/group", b"root:x:0:\nusers:x:1000:alice\n", 0o644);
    write(
        "etc/secret.conf",
        b"key = value\npassword = hunter2\n",
        0o600,
    );
    write("bin/tool", &pattern(300_000), 0o4755);
    let main = b"fn main() {\n    println!(\"hello\");\n}\n";
    write("src/main.rs", main, 0o644);
    write("src/deep/er/lib.rs", b"//! A library.\n", 0o640);
    write("src/empty", b"", 0o644);
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
    fs::hard_link(tree.join("src/main.rs"), tree.join("src/same.rs")).unwrap();
    fs::hard_link(tree.join("data/large"), tree.join("large-too")).unwrap();
    let mode = Mode::from_raw_mode(0o600);
    mknodat(CWD, tree.join("pipe"), FileType::Fifo, mode, 0).unwrap();
    fs::create_dir(tree.join("nothing")).unwrap();
    fs::set_permissions(tree.join("nothing"), fs::Permissions::from_mode(0o700)).unwrap();
    if has_xattrs(tree) {
        let none = XattrFlags::empty();
        setxattr(tree.join("src/main.rs"), "user.colour", b"blue", none).unwrap();
        setxattr(tree.join("src"), "user.kind", &[7; 700], none).unwrap();
    }
    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_500_000_000);
    let file = fs::File::open(tree.join("src/main.rs")).unwrap();
    file.set_modified(time).unwrap();
}

/// Returns whether the host's file system supports extended attributes.
pub(crate) fn has_xattrs(folder: &Path) -> bool {
    setxattr(folder, "user.vmcell-test", b"", XattrFlags::empty()).is_ok()
}

/// Returns deterministic bytes without short repetitions.
pub(crate) fn pattern(length: usize) -> Vec<u8> {
    let mut state = 1_u32;
    let next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state.to_le_bytes()[3]
    };
    std::iter::repeat_with(next).take(length).collect()
}

pub(crate) fn open(path: &Path) -> Disk {
    Disk::open(path).unwrap_or_else(|error| panic!("{error:?}"))
}

pub(crate) fn open_raw(path: &Path) -> Disk {
    Disk::options().format(Format::Raw).open(path).unwrap()
}

/// Changes an image with `debugfs` commands, one per line.
pub(crate) fn debugfs(image: &Path, commands: &str) {
    let script = image.with_extension("script");
    fs::write(&script, commands).unwrap();
    let output = run(tool("debugfs").args(["-w", "-f"]).arg(script).arg(image));
    // debugfs succeeds even if a command fails, so check its error output.
    let errors: Vec<_> = output.1.lines().skip(1).collect();
    assert!(errors.is_empty(), "{errors:#?}");
}

/// Returns the output of a `debugfs` command.
pub(crate) fn debugfs_output(image: &Path, command: &str) -> String {
    run(tool("debugfs").args(["-R", command]).arg(image)).0
}

pub(crate) fn tool(name: &str) -> Command {
    // These directories are often not in the PATH of other users than root.
    let path = env::var("PATH").unwrap_or_default();
    let mut command = Command::new(name);
    command
        .env("PATH", format!("{path}:/usr/sbin:/sbin"))
        .env("LC_ALL", "C")
        .env("DEBUGFS_PAGER", "cat")
        .stdin(Stdio::null());
    command
}

pub(crate) fn run(command: &mut Command) -> (String, String) {
    let output = command
        .output()
        .unwrap_or_else(|error| panic!("{command:?}: {error}: does `make setup` bring it?"));
    assert!(output.status.success(), "{command:?}: {output:?}");
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    (text(output.stdout), text(output.stderr))
}
