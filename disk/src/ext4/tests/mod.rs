//! Tests with real file systems, made by `mke2fs` and changed by `debugfs`.

mod attributes;
mod directories;
mod features;
mod hostile;
mod journal;
mod kernel;
mod lookup;
mod maps;
mod other_readers;
mod random_damage;
mod refused;
mod sample;
mod units;

use std::{
    collections::BTreeMap,
    env, fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use tempfile::TempDir;

use super::*;

/// An image in its own temporary directory.
struct Image {
    folder: TempDir,
}

impl Image {
    /// Creates an image of `size` MiB with the contents of a directory.
    fn new(options: &[&str], size: u32, tree: Option<&Path>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let image = Self { folder };
        let mut command = tool("mke2fs");
        command.args(["-q", "-F"]).args(options);
        if let Some(tree) = tree {
            command.arg("-d").arg(tree);
        }
        run(command.arg(image.path()).arg(format!("{size}M")));
        image
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("image")
    }

    /// Changes the image with `debugfs` commands, one per line.
    fn change(&self, commands: &str) {
        let script = self.folder.path().join("script");
        fs::write(&script, commands).unwrap();
        let output = run(tool("debugfs")
            .args(["-w", "-f"])
            .arg(&script)
            .arg(self.path()));
        // debugfs succeeds even if a command fails, so check its error output.
        let errors = String::from_utf8_lossy(&output.1);
        let errors: Vec<_> = errors.lines().skip(1).collect();
        assert!(errors.is_empty(), "{errors:#?}");
    }

    /// Returns the output of a `debugfs` command.
    fn ask(&self, command: &str) -> String {
        let output = run(tool("debugfs").args(["-R", command]).arg(self.path()));
        String::from_utf8(output.0).unwrap()
    }

    /// Creates a file next to the image, for use in commands.
    fn file(&self, name: &str, content: &[u8]) -> String {
        let path = self.folder.path().join(name);
        fs::write(&path, content).unwrap();
        path.to_str().unwrap().to_owned()
    }

    fn bytes(&self) -> Vec<u8> {
        fs::read(self.path()).unwrap()
    }

    fn try_open(&self, options: Options) -> Result<Ext4, Error> {
        Ext4::open(fs::File::open(self.path()).unwrap(), options)
    }

    fn open(&self) -> Ext4 {
        self.try_open(Options::default()).unwrap()
    }
}

fn tool(name: &str) -> Command {
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

fn run(command: &mut Command) -> (Vec<u8>, Vec<u8>) {
    let output = command
        .output()
        .unwrap_or_else(|error| panic!("{command:?}: {error}: is e2fsprogs installed?"));
    assert!(output.status.success(), "{command:?}: {output:?}");
    (output.stdout, output.stderr)
}

/// Returns all inodes of a file system by path. Fails on any error.
fn everything(ext4: &Ext4) -> BTreeMap<Vec<u8>, Inode> {
    let root = ext4.root().unwrap();
    ext4.walk(&root)
        .map(|found| {
            let found = found.unwrap_or_else(|problem| panic!("{problem:?}"));
            let inode = found
                .inode
                .unwrap_or_else(|error| panic!("{}: {error}", found.path.escape_ascii()));
            if let Some(kind) = found.entry.kind {
                assert_eq!(kind, inode.kind);
            }
            (found.path, inode)
        })
        .collect()
}

fn content(ext4: &Ext4, inode: &Inode) -> Vec<u8> {
    let mut content = vec![0xaa; usize::try_from(inode.size).unwrap() + 1];
    let length = ext4.read(inode, 0, &mut content).unwrap();
    content.truncate(length);
    content
}

fn find(ext4: &Ext4, path: &str) -> Inode {
    ext4.lookup(path.as_bytes(), SymlinkPolicy::Never)
        .unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn damage(error: &Error) -> &Damage {
    match error {
        Error::Damaged(damage) => damage,
        other => panic!("{other}"),
    }
}
