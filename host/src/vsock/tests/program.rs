//! This test program, for a machine without its libraries.

use std::{fs, io, path::Path, process::Command};

/// A folder with this program, its loader and its libraries.
pub(super) struct Program {
    folder: tempfile::TempDir,
    loader: String,
}

const NAME: &str = "tests";

impl Program {
    pub(super) fn this() -> io::Result<Self> {
        let folder = tempfile::tempdir()?;
        let this = std::env::current_exe()?;
        let copy = folder.path().join(NAME);
        // Most of it is debug information.
        let stripped = Command::new("strip")
            .arg("-o")
            .args([&copy, &this])
            .status();
        if !stripped.is_ok_and(|status| status.success()) {
            fs::copy(&this, &copy)?;
        }
        let ldd = Command::new("ldd").arg(&this).output()?;
        let mut loader = None;
        for line in String::from_utf8_lossy(&ldd.stdout).lines() {
            // `name => path (address)`; for the loader `path (address)`.
            let Some((library, _)) = line.trim().split_once(" (") else {
                continue;
            };
            let (name, path) = match library.split_once(" => ") {
                Some(named) => named,
                None => match library.rsplit_once('/') {
                    Some((_, name)) => {
                        loader = Some(name.to_owned());
                        (name, library)
                    }
                    // The vDSO, which the kernel provides.
                    None => continue,
                },
            };
            fs::copy(path, folder.path().join(name))?;
        }
        let loader = loader.ok_or(io::ErrorKind::NotFound)?;
        Ok(Self { folder, loader })
    }

    pub(super) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Returns the arguments that run one test, with the folder at this path.
    pub(super) fn argv(&self, folder: &str, test: &str) -> Vec<String> {
        let Self { loader, .. } = self;
        let line = format!(
            "{folder}/{loader} --library-path {folder} {folder}/{NAME} {test} --exact --nocapture"
        );
        line.split(' ').map(str::to_owned).collect()
    }
}
