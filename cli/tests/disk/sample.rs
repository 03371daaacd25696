//! A tree with many kinds of entries, and an image of it.

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

use rustix::fs::{CWD, FileType, Mode, mknodat};
use tempfile::TempDir;

/// Names with escape sequences, line breaks, invalid UTF-8 and other oddities.
pub(crate) const ODD_NAMES: [&[u8]; 6] = [
    b"esc\x1b[31m",
    b"new\nline",
    b"bad\xff",
    b"back\\slash",
    b"lone\x9b31m",
    "bidi\u{202e}txt.exe".as_bytes(),
];

/// A temporary directory with a tree and an image of it.
pub(crate) struct Sample {
    folder: TempDir,
}

impl Sample {
    pub(crate) fn new() -> Self {
        let sample = Self {
            folder: tempfile::tempdir().unwrap(),
        };
        create_tree(&sample.tree());
        sample.make(&sample.tree(), "base.ext4");
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

    /// Creates an image of a tree.
    pub(crate) fn make(&self, tree: &Path, name: &str) -> PathBuf {
        let image = self.path(name);
        let mut command = tool("mke2fs");
        command.args(["-q", "-F", "-t", "ext4", "-b", "4096", "-d"]);
        run(command.arg(tree).arg(&image).arg("32M"));
        image
    }

    /// Returns a copy of the image, changed by `debugfs` commands, one per
    /// line.
    pub(crate) fn changed(&self, name: &str, commands: &str) -> PathBuf {
        let (copy, script) = (self.path(name), self.path("script"));
        fs::copy(self.image(), &copy).unwrap();
        fs::write(&script, commands).unwrap();
        run(tool("debugfs").args(["-w", "-f"]).arg(script).arg(&copy));
        copy
    }

    /// Returns the number of entries in the temporary directory.
    pub(crate) fn count(&self) -> usize {
        fs::read_dir(self.folder.path()).unwrap().count()
    }
}

fn create_tree(tree: &Path) {
    let write = |path: &str, content: &[u8], mode: u32| {
        let path = tree.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    };
    write("etc/group", b"root:x:0:\n", 0o644);
    write(
        "etc/secret.conf",
        b"key = value\npassword = hunter2\n",
        0o600,
    );
    write("bin/tool", &pattern(300_000), 0o755);
    write("src/main.rs", b"fn main() {\n    hello();\n}\n", 0o644);
    write("src/deep/er/lib.rs", b"//! A library.\n", 0o640);
    write("src/empty", b"", 0o644);
    for name in ODD_NAMES {
        let path = tree.join("odd").join(OsStr::from_bytes(name));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, b"odd\n").unwrap();
    }
    let sparse = fs::File::create(tree.join("sparse")).unwrap();
    sparse.write_all_at(b"in the middle", 1_500_000).unwrap();
    sparse.set_len(6_000_000).unwrap();
    symlink("etc/group", tree.join("link")).unwrap();
    fs::hard_link(tree.join("src/main.rs"), tree.join("src/same.rs")).unwrap();
    let mode = Mode::from_raw_mode(0o600);
    mknodat(CWD, tree.join("pipe"), FileType::Fifo, mode, 0).unwrap();
    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_500_000_000);
    let file = fs::File::open(tree.join("src/main.rs")).unwrap();
    file.set_modified(time).unwrap();
}

/// Returns pseudo-random bytes, including zeroes.
pub(crate) fn pattern(length: usize) -> Vec<u8> {
    let mut state = 1_u32;
    let next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state.to_le_bytes()[3]
    };
    std::iter::repeat_with(next).take(length).collect()
}

pub(crate) fn tool(name: &str) -> Command {
    // These tools are often not in the PATH of users other than root.
    let path = env::var("PATH").unwrap_or_default();
    let mut command = Command::new(name);
    command
        .env("PATH", format!("{path}:/usr/sbin:/sbin"))
        .env("LC_ALL", "C")
        .stdin(Stdio::null());
    command
}

/// Runs a tool, asserts that it succeeds, and returns its standard output.
#[track_caller]
pub(crate) fn run(command: &mut Command) -> String {
    let output = command
        .output()
        .unwrap_or_else(|error| panic!("{command:?}: {error}: does `make setup` bring it?"));
    assert!(output.status.success(), "{command:?}: {output:?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}
