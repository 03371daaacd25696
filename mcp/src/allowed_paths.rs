use std::{
    io,
    path::{Path, PathBuf},
};

use crate::failure::Failure;

/// The folders of this machine that a model may read and write.
#[derive(Clone, Debug, Default)]
pub(crate) struct AllowedPaths(Vec<PathBuf>);

impl AllowedPaths {
    /// Adds a folder, which must exist.
    pub(crate) fn add(&mut self, folder: &Path) -> io::Result<()> {
        let folder = folder.canonicalize()?;
        if !folder.is_dir() {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        self.0.push(folder);
        Ok(())
    }

    /// Checks a path that is read. Returns it without links.
    pub(crate) fn existing(&self, path: &str) -> Result<PathBuf, Failure> {
        self.check_any(path)?;
        let found = Path::new(path).canonicalize();
        // What is outside is not told apart from what is not there.
        found
            .ok()
            .filter(|path| self.contains(path))
            .ok_or_else(|| self.refusal(path))
    }

    /// Checks a path that is written, in a folder that exists. Returns it without links.
    pub(crate) fn new_file(&self, path: &str) -> Result<PathBuf, Failure> {
        self.check_any(path)?;
        let wanted = Path::new(path);
        let (Some(parent), Some(name)) = (wanted.parent(), wanted.file_name()) else {
            return Err(self.refusal(path));
        };
        let parent = parent.canonicalize().ok();
        let parent = parent.filter(|parent| self.contains(parent));
        Ok(parent.ok_or_else(|| self.refusal(path))?.join(name))
    }

    fn contains(&self, path: &Path) -> bool {
        self.0.iter().any(|folder| path.starts_with(folder))
    }

    fn check_any(&self, path: &str) -> Result<(), Failure> {
        match self.0.is_empty() || !Path::new(path).is_absolute() {
            true => Err(self.refusal(path)),
            false => Ok(()),
        }
    }

    fn refusal(&self, path: &str) -> Failure {
        let failure = Failure::new(
            "path-not-allowed",
            format!("{path:?} is not in a folder of the host that this server may use"),
        );
        if self.0.is_empty() {
            return failure.with_remedy(
                "it may use none: send and read contents with workspace_file_write, \
                 workspace_sync_push `files` and workspace_export without `output_path`, or ask \
                 the user to start the server with --allow-path DIR",
            );
        }
        let folders: Vec<_> = self.0.iter().map(|it| it.display().to_string()).collect();
        let folders = folders.join(", ");
        failure.with_remedy(format!(
            "use the absolute path of something that is there, below: {folders}"
        ))
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::symlink};

    use super::*;

    #[test]
    fn only_what_is_in_an_allowed_folder_is_used() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        for folder in ["mine/sub", "other"] {
            fs::create_dir_all(root.join(folder)).unwrap();
        }
        fs::write(root.join("other/file"), "").unwrap();
        symlink(root.join("other"), root.join("mine/link")).unwrap();
        symlink(root.join("mine/sub"), root.join("mine/inside")).unwrap();
        let mut paths = AllowedPaths::default();
        let text = |path: &str| root.join(path).to_str().unwrap().to_owned();
        assert!(paths.existing(&text("mine")).is_err());
        paths.add(&root.join("mine")).unwrap();
        assert!(paths.add(&root.join("none")).is_err());
        assert!(paths.add(&root.join("other/file")).is_err());
        for path in ["mine", "mine/sub", "mine/../mine/sub", "mine/inside"] {
            assert!(paths.existing(&text(path)).is_ok(), "{path}");
        }
        for path in [
            "other",
            "mine/../other",
            "mine/link",
            "mine/link/file",
            "mine/none",
            "",
            "mine/..",
        ] {
            assert!(paths.existing(&text(path)).is_err(), "{path}");
        }
        for path in ["mine", "sub", "."] {
            assert!(paths.existing(path).is_err(), "{path}");
        }
        assert_eq!(
            paths.new_file(&text("mine/inside/new")).unwrap(),
            root.join("mine/sub/new")
        );
        for path in ["mine/link/new", "mine/none/new", "mine/sub/..", "new"] {
            assert!(paths.new_file(&text(path)).is_err(), "{path}");
        }
    }
}
