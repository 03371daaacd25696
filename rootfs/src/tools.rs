//! Finds and runs external programs, mainly those of e2fsprogs.

use std::env;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::Error;

/// The first e2fsprogs with `-E assume_storage_prezeroed`, which keeps new images small.
const MIN_VERSION: (u32, u32) = (1, 47);

/// Folders of administration programs, which are often not in a user's `PATH`.
const SBIN_FOLDERS: [&str; 3] = ["/usr/local/sbin", "/usr/sbin", "/sbin"];

/// The folders to search for `mke2fs`, `debugfs`, `e2fsck` and the programs that recipes run.
///
/// ```
/// use vmcell_rootfs::{Error, ImageBuilder, Tools, Tree};
///
/// let builder = ImageBuilder::new().tools(Tools::in_folders(["/nowhere"]));
/// let error = builder.build(&Tree::new(), "never.ext4").unwrap_err();
/// assert!(matches!(error, Error::ToolMissing { tool: "mke2fs", .. }));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tools {
    folders: Vec<PathBuf>,
}

impl Default for Tools {
    fn default() -> Self {
        Self::system()
    }
}

impl Tools {
    /// Searches the folders in `PATH`, then `/usr/local/sbin`, `/usr/sbin` and `/sbin`.
    #[must_use]
    pub fn system() -> Self {
        let path = env::var_os("PATH").unwrap_or_default();
        // Empty and relative elements of `PATH` depend on the current folder, which is not a
        // safe place to search for system tools.
        let folders = env::split_paths(&path).filter(|folder| folder.is_absolute());
        Self {
            folders: folders.chain(SBIN_FOLDERS.map(PathBuf::from)).collect(),
        }
    }

    /// Searches only these folders, in this order.
    #[must_use]
    pub fn in_folders<P: Into<PathBuf>>(folders: impl IntoIterator<Item = P>) -> Self {
        Self {
            folders: folders.into_iter().map(Into::into).collect(),
        }
    }

    /// Returns the version line of `mke2fs`, such as `mke2fs 1.47.0 (5-Feb-2023)`.
    ///
    /// ```no_run
    /// # fn main() -> Result<(), vmcell_rootfs::Error> {
    /// println!("{}", vmcell_rootfs::Tools::system().version()?);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::ToolMissing`] without e2fsprogs, [`Error::ToolTooOld`] before version 1.47.
    pub fn version(&self) -> Result<String, Error> {
        let mut tool = self.e2fsprogs("mke2fs")?;
        let output = tool
            .command
            .arg("-V")
            .output()
            .map_err(|source| tool.unusable(source))?;
        let text = String::from_utf8_lossy(&output.stderr);
        let version = text.lines().next().unwrap_or_default().trim().to_owned();
        if parse_version(&version).is_none_or(|found| found < MIN_VERSION) {
            return Err(Error::ToolTooOld { found: version });
        }
        Ok(version)
    }

    /// Returns the folders as a `PATH` for child processes. Folders with a colon in their names
    /// cannot be expressed and are left out.
    pub(crate) fn path(&self) -> OsString {
        let has_colon = |folder: &&PathBuf| folder.as_os_str().as_bytes().contains(&b':');
        let folders = self.folders.iter().filter(|folder| !has_colon(folder));
        env::join_paths(folders).unwrap_or_default()
    }

    /// Returns a command for one of the programs of e2fsprogs.
    pub(crate) fn e2fsprogs(&self, name: &'static str) -> Result<Tool, Error> {
        let mut tool = self.tool("e2fsprogs", name)?;
        tool.command.env("E2FSPROGS_UNDO_DIR", "none");
        Ok(tool)
    }

    /// Returns a command for a program of a package, with an empty environment: locale, clock and
    /// configuration of the host would affect images.
    pub(crate) fn tool(&self, package: &'static str, name: &'static str) -> Result<Tool, Error> {
        let path = find_program(&self.folders, name).ok_or(Error::ToolMissing {
            tool: name,
            package,
        })?;
        let mut command = Command::new(&path);
        command.env_clear().env("LC_ALL", "C");
        command.stdin(Stdio::null());
        Ok(Tool {
            name,
            path,
            command,
        })
    }
}

/// A program that was found.
pub(crate) struct Tool {
    pub(crate) name: &'static str,
    pub(crate) path: PathBuf,
    pub(crate) command: Command,
}

impl Tool {
    pub(crate) fn unusable(&self, source: std::io::Error) -> Error {
        Error::ToolUnusable {
            path: self.path.clone(),
            source,
        }
    }

    pub(crate) fn failed(&self, output: &[u8]) -> Error {
        Error::ToolFailed {
            tool: self.name,
            output: one_line(output),
        }
    }
}

/// Returns the first executable file of this name.
pub(crate) fn find_program(folders: &[PathBuf], name: impl AsRef<OsStr>) -> Option<PathBuf> {
    let candidates = folders
        .iter()
        .map(|folder| folder.join(Path::new(name.as_ref())));
    candidates.into_iter().find(|path| {
        path.metadata()
            .is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
    })
}

/// Formats a program's output for an error message: one line, no control characters, at most 500
/// characters.
pub(crate) fn one_line(output: &[u8]) -> String {
    let text = String::from_utf8_lossy(output);
    let text: String = text
        .chars()
        .filter(|c| *c == '\n' || !c.is_control())
        .collect();
    let lines: Vec<&str> = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect();
    let line: String = lines.join("; ").chars().take(500).collect();
    if line.is_empty() {
        "it gave no reason".to_owned()
    } else {
        line
    }
}

fn parse_version(line: &str) -> Option<(u32, u32)> {
    let mut numbers = line
        .split_whitespace()
        .nth(1)?
        .split(|c: char| !c.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_as_numbers() {
        assert_eq!(parse_version("mke2fs 1.47.0 (5-Feb-2023)"), Some((1, 47)));
        assert_eq!(parse_version("mke2fs 1.48-rc1 (1-Jan-2027)"), Some((1, 48)));
        assert_eq!(parse_version("sh: not found"), None);
        assert!((1, 9) < MIN_VERSION, "1.9 came before 1.47");
    }

    #[test]
    fn tool_output_cannot_drive_a_terminal() {
        assert_eq!(one_line(b"\x1b[31mred\n\n  second \x07"), "[31mred; second");
        assert_eq!(one_line(b"\n"), "it gave no reason");
    }
}
