//! Inspects images with `debugfs`, `dumpe2fs` and `e2fsck`.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// An image under inspection.
pub(crate) struct Inspect(pub(crate) PathBuf);

impl Inspect {
    /// Returns the output of one `debugfs` command.
    pub(crate) fn debugfs(&self, command: &str) -> String {
        let output = run("debugfs", &["-R", command, self.0.to_str().unwrap()]);
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Returns `mode uid gid` of an entry, from `ls -p`: `/inode/mode/uid/gid/name/size/`.
    pub(crate) fn entry(&self, path: &str) -> String {
        let (directory, name) = path.rsplit_once('/').unwrap();
        let listing = self.debugfs(&format!("ls -p \"{directory}/\""));
        let found = listing.lines().find_map(|line| {
            let fields: Vec<&str> = line.split('/').collect();
            let is_it = fields.get(5) == Some(&name);
            is_it.then(|| format!("{} {} {}", fields[2], fields[3], fields[4]))
        });
        found.unwrap_or_else(|| panic!("no {path} in:\n{listing}"))
    }

    /// Returns the names in a directory, without `.`, `..` and `lost+found`.
    pub(crate) fn names(&self, directory: &str) -> Vec<Vec<u8>> {
        let command = format!("ls -p \"{directory}\"");
        let listing = run("debugfs", &["-R", &command, self.0.to_str().unwrap()]).stdout;
        // A name may contain line breaks, but no slash: an entry is seven fields and a line break.
        let fields: Vec<&[u8]> = listing.split(|byte| *byte == b'/').collect();
        let names = fields
            .chunks(7)
            .filter_map(|entry| entry.get(5))
            .map(|name| name.to_vec());
        let made_by_mke2fs: [&[u8]; 3] = [b".", b"..", b"lost+found"];
        names
            .filter(|name| !made_by_mke2fs.contains(&name.as_slice()))
            .collect()
    }

    pub(crate) fn stat(&self, path: &str) -> String {
        self.debugfs(&format!("stat \"{path}\""))
    }

    pub(crate) fn cat(&self, path: &str) -> String {
        self.debugfs(&format!("cat \"{path}\""))
    }

    /// Returns the output of `dumpe2fs`: the superblock and all block groups.
    pub(crate) fn dumpe2fs(&self) -> String {
        let output = run("dumpe2fs", &[self.0.to_str().unwrap()]);
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    pub(crate) fn assert_clean(&self) {
        let output = run("e2fsck", &["-f", "-n", self.0.to_str().unwrap()]);
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stdout)
        );
    }
}

fn run(tool: &str, arguments: &[&str]) -> std::process::Output {
    let path =
        ["/usr/sbin", "/sbin", "/usr/bin", "/bin"].map(|folder| Path::new(folder).join(tool));
    let path = path
        .iter()
        .find(|path| path.exists())
        .expect("install e2fsprogs to run the tests");
    Command::new(path).args(arguments).output().unwrap()
}

/// Asserts that two files hold the same bytes, without printing them if not.
pub(crate) fn assert_identical(left: &Path, right: &Path) {
    let (a, b) = (fs::read(left).unwrap(), fs::read(right).unwrap());
    assert_eq!(a.len(), b.len());
    let difference = a.iter().zip(&b).position(|(a, b)| a != b);
    assert_eq!(
        difference, None,
        "{left:?} and {right:?} differ from this offset on"
    );
}

/// Writes a program, by way of another process. If this process had it open for writing, a child
/// forked by another thread could inherit the descriptor, and running it would fail (ETXTBSY).
pub(crate) fn install_program(path: &Path, bytes: &[u8]) {
    let source = path.with_extension("source");
    fs::write(&source, bytes).unwrap();
    fs::set_permissions(&source, fs::Permissions::from_mode(0o755)).unwrap();
    assert!(
        Command::new("cp")
            .args([&source, path])
            .status()
            .unwrap()
            .success()
    );
    fs::remove_file(source).unwrap();
}

/// Returns the names of all files in a folder.
pub(crate) fn files_in(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into())
        .collect()
}
