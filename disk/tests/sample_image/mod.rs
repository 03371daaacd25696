//! Trees and ext4 images of them, for the tests of the crate `vmcell-disk` and
//! of the program.

use std::{
    env, fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, SystemTime},
};

use rustix::fs::{CWD, FileType, Mode, mknodat};
use tempfile::TempDir;

/// A temporary directory with a tree and an image of it.
pub(crate) struct Sample {
    folder: TempDir,
}

impl Sample {
    /// Creates a tree, and an image of it with options of `mke2fs`.
    pub(crate) fn create(options: &[&str], create_tree: impl FnOnce(&Path)) -> Self {
        let sample = Self {
            folder: tempfile::tempdir().unwrap(),
        };
        create_tree(&sample.tree());
        create_image(options, &sample.tree(), &sample.image());
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

    /// Returns a copy of the image, changed by `debugfs` commands, one per
    /// line.
    pub(crate) fn changed(&self, name: &str, commands: &str) -> PathBuf {
        let copy = self.path(name);
        fs::copy(self.image(), &copy).unwrap();
        debugfs(&copy, commands);
        copy
    }
}

/// Creates an image of a tree with options of `mke2fs`.
pub(crate) fn create_image(options: &[&str], tree: &Path, image: &Path) {
    let mut command = tool("mke2fs");
    command.args(["-q", "-F"]).args(options).arg("-d");
    run(command.arg(tree).arg(image).arg("32M"));
}

/// Creates the entries that all trees have, with this content of `src/main.rs`.
pub(crate) fn create_common_entries(tree: &Path, main: &[u8]) {
    let secret = b"key = value\npassword = hunter2\n";
    write(tree, "etc/secret.conf", secret, 0o600);
    write(tree, "src/main.rs", main, 0o644);
    write(tree, "src/deep/er/lib.rs", b"//! A library.\n", 0o640);
    write(tree, "src/empty", b"", 0o644);
    fs::hard_link(tree.join("src/main.rs"), tree.join("src/same.rs")).unwrap();
    let mode = Mode::from_raw_mode(0o600);
    mknodat(CWD, tree.join("pipe"), FileType::Fifo, mode, 0).unwrap();
    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_500_000_000);
    let file = fs::File::open(tree.join("src/main.rs")).unwrap();
    file.set_modified(time).unwrap();
}

/// Creates a file of a tree, and its parent directories.
pub(crate) fn write(tree: &Path, path: &str, content: &[u8], mode: u32) {
    let path = tree.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, content).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
}

/// Returns deterministic bytes without short repetitions, including zeros.
pub(crate) fn pattern(length: usize) -> Vec<u8> {
    let mut state = 1_u32;
    let next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state.to_le_bytes()[3]
    };
    std::iter::repeat_with(next).take(length).collect()
}

/// Changes an image with `debugfs` commands, one per line.
#[track_caller]
pub(crate) fn debugfs(image: &Path, commands: &str) {
    let script = image.with_extension("script");
    fs::write(&script, commands).unwrap();
    let (_, errors) = output(tool("debugfs").args(["-w", "-f"]).arg(script).arg(image));
    // debugfs succeeds even if a command fails, so check its error output.
    let errors: Vec<_> = errors.lines().skip(1).collect();
    assert!(errors.is_empty(), "{errors:#?}");
}

pub(crate) fn tool(name: &str) -> Command {
    // These directories are often not in the PATH of users other than root.
    let path = env::var("PATH").unwrap_or_default();
    let mut command = Command::new(name);
    command
        .env("PATH", format!("{path}:/usr/sbin:/sbin"))
        .env("LC_ALL", "C")
        .env("DEBUGFS_PAGER", "cat")
        .stdin(Stdio::null());
    command
}

/// Runs a tool, asserts that it succeeds, and returns its standard output.
#[track_caller]
pub(crate) fn run(command: &mut Command) -> String {
    output(command).0
}

#[track_caller]
fn output(command: &mut Command) -> (String, String) {
    let output = command
        .output()
        .unwrap_or_else(|error| panic!("{command:?}: {error}: does `make setup` bring it?"));
    assert!(output.status.success(), "{command:?}: {output:?}");
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    (text(output.stdout), text(output.stderr))
}
