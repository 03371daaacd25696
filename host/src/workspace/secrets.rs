//! The secrets that a workspace keeps.

use std::{
    fs::{self, DirBuilder, File},
    io::{self, Write as _},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::PathBuf,
};

use super::{Workspace, WorkspaceError, folder::Folder};
use crate::{
    error::Error,
    on_thread::on_thread,
    secret::{Secret, SecretInfo, SecretSource, checked_name},
};

/// The folder with the secrets of a workspace, a file for each: `NAME=SOURCE`, with the
/// value in it. Only its owner can read it, and it is neither part of the disk nor of
/// anything that is made of the disk.
#[derive(Debug)]
pub(super) struct KeptSecrets(PathBuf);

/// Between the name of a secret and its source. No name contains it.
const SEPARATOR: char = '=';

/// The file that is being written, which is not the name of a secret.
const PARTIAL: &str = "=partial";

impl KeptSecrets {
    pub(super) fn new(path: PathBuf) -> Self {
        Self(path)
    }

    /// Returns the names and sources of the secrets, sorted by name.
    pub(super) fn list(&self) -> Vec<SecretInfo> {
        let Ok(entries) = fs::read_dir(&self.0) else {
            return Vec::new();
        };
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let mut list: Vec<_> = names.filter_map(|name| parse(&name)).collect();
        list.sort_by(|a, b| a.name.cmp(&b.name));
        list
    }

    /// Reads all secrets. One that cannot be read is left out.
    pub(super) fn read_all(&self) -> Vec<Secret> {
        let list = self.list();
        let secrets = list.iter().filter_map(|info| match self.read(info) {
            Ok(secret) => Some(secret),
            Err(error) => {
                tracing::warn!(%error, "a secret of a workspace cannot be read");
                None
            }
        });
        secrets.collect()
    }

    fn find(&self, name: &str) -> Option<SecretInfo> {
        self.list().into_iter().find(|info| info.name == name)
    }

    fn read(&self, info: &SecretInfo) -> Result<Secret, Error> {
        Ok(Secret::from_kept(info, &self.path(info))?)
    }

    /// Writes a secret, in place of one with the same name.
    pub(super) fn write(&self, secret: &Secret) -> io::Result<()> {
        match DirBuilder::new().mode(0o700).create(&self.0) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        let partial = self.0.join(PARTIAL);
        let mut options = File::options();
        options.write(true).create(true).truncate(true).mode(0o600);
        let write = || {
            let mut file = options.open(&partial)?;
            file.write_all(secret.value().expose().as_bytes())?;
            file.sync_all()?;
            fs::rename(&partial, self.path(&secret.info()))
        };
        write().inspect_err(|_| drop(fs::remove_file(&partial)))?;
        for other in self.list() {
            if other.name == secret.name() && other.source != secret.source() {
                fs::remove_file(self.path(&other))?;
            }
        }
        File::open(&self.0)?.sync_all()
    }

    /// Removes a secret. Returns whether there was one.
    fn remove(&self, name: &str) -> io::Result<bool> {
        match self.find(name) {
            None => Ok(false),
            Some(info) => fs::remove_file(self.path(&info)).map(|()| true),
        }
    }

    fn path(&self, info: &SecretInfo) -> PathBuf {
        let SecretInfo { name, source } = info;
        self.0.join(format!("{name}{SEPARATOR}{source}"))
    }
}

/// Reads the name of a file.
fn parse(file: &str) -> Option<SecretInfo> {
    let (name, source) = file.split_once(SEPARATOR)?;
    Some(SecretInfo {
        name: checked_name(name.to_owned()).ok()?,
        source: SecretSource::from_name(source)?,
    })
}

impl Workspace {
    /// Keeps a secret, in place of one with the same name, until it is
    /// [forgotten](Self::forget_secret) or the workspace is deleted. It is in a file that
    /// only its owner can read, outside of `/workspace`, of the disk and of all snapshots. A
    /// fork does not have it.
    ///
    /// No program gets it by this: [grant](crate::Command::secret_env) it to those that need
    /// it.
    ///
    /// ```no_run
    /// # async fn example(workspace: vmcell::workspace::Workspace) -> Result<(), vmcell::Error> {
    /// use vmcell::{Command, secret::Secret};
    ///
    /// workspace.keep_secret(&Secret::from_env("token", "API_TOKEN")?).await?;
    /// // Later, in another program:
    /// let token = workspace.secret("token").await?;
    /// workspace.exec(Command::new("deploy").secret_env("TOKEN", &token)).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`WorkspaceError::NotFound`], or [`Error::Host`] if it cannot be written.
    ///
    /// # Cancel safety
    /// If the future is dropped, it may or may not be kept.
    pub async fn keep_secret(&self, secret: &Secret) -> Result<(), Error> {
        let secret = secret.clone();
        let write = move |kept: KeptSecrets| kept.write(&secret).map_err(Error::host(WRITE));
        self.with_secrets(write).await
    }

    /// Forgets a secret that it [keeps](Self::keep_secret). Programs that have it keep it.
    ///
    /// # Errors
    /// [`WorkspaceError::NotFound`], or [`WorkspaceError::NoSecret`] if it keeps none with
    /// this name.
    ///
    /// # Cancel safety
    /// If the future is dropped, it may or may not be forgotten.
    pub async fn forget_secret(&self, name: &str) -> Result<(), Error> {
        let (missing, name) = (self.no_secret(name), name.to_owned());
        let remove = move |kept: KeptSecrets| match kept.remove(&name) {
            Ok(true) => Ok(()),
            Ok(false) => Err(missing.into()),
            Err(error) => Err(Error::host("remove a secret of the workspace")(error)),
        };
        self.with_secrets(remove).await
    }

    /// Returns a secret that it [keeps](Self::keep_secret).
    ///
    /// # Errors
    /// [`WorkspaceError::NotFound`], or [`WorkspaceError::NoSecret`] if it keeps none with
    /// this name.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn secret(&self, name: &str) -> Result<Secret, Error> {
        let (missing, name) = (self.no_secret(name), name.to_owned());
        let read = move |kept: KeptSecrets| match kept.find(&name) {
            Some(info) => kept.read(&info),
            None => Err(missing.into()),
        };
        self.with_secrets(read).await
    }

    /// Returns the names and sources of the secrets that it [keeps](Self::keep_secret).
    ///
    /// # Errors
    /// [`WorkspaceError::NotFound`]
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn secrets(&self) -> Result<Vec<SecretInfo>, Error> {
        self.with_secrets(|kept| Ok(kept.list())).await
    }

    async fn with_secrets<T: Send + 'static>(
        &self,
        doing: impl FnOnce(KeptSecrets) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let (folder, missing) = (self.folder(), self.not_found());
        on_thread("use the secrets of the workspace", move || {
            folder.read()?.ok_or(missing)?;
            doing(folder.secrets())
        })
        .await
    }

    fn no_secret(&self, name: &str) -> WorkspaceError {
        WorkspaceError::NoSecret {
            id: self.id().to_owned(),
            name: name.to_owned(),
        }
    }
}

const WRITE: &str = "write a secret of the workspace";

/// Writes the secrets of a workspace that is being created.
pub(super) fn write_first(folder: &Folder, secrets: &[Secret]) -> Result<(), Error> {
    let kept = folder.secrets();
    let mut secrets = secrets.iter();
    secrets
        .try_for_each(|secret| kept.write(secret))
        .map_err(Error::host(WRITE))
}

#[cfg(test)]
mod tests {
    use std::{os::unix::fs::PermissionsExt as _, path::Path};

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn a_secret_is_for_its_owner_and_replaced_as_a_whole() {
        let folder = tempfile::tempdir().unwrap();
        let kept = KeptSecrets::new(folder.path().join("secrets"));
        assert_eq!(kept.list(), []);
        let first = Secret::new("to.ken", "one\n".to_owned()).unwrap();
        kept.write(&first).unwrap();
        let path = kept.0.join("to.ken=literal");
        assert_eq!((mode(&kept.0), mode(&path)), (0o700, 0o600));
        assert_eq!(kept.read_all()[0].value().expose(), "one\n");

        // From elsewhere this time.
        let file = folder.path().join("value");
        fs::write(&file, "two").unwrap();
        kept.write(&Secret::from_file("to.ken", &file).unwrap())
            .unwrap();
        let list = kept.list();
        assert_eq!(list.len(), 1, "{list:?}");
        let info = kept.find("to.ken").unwrap();
        assert_eq!(info.source, SecretSource::File);
        assert_eq!(kept.read(&info).unwrap().value().expose(), "two");

        assert!(kept.remove("to.ken").unwrap());
        assert!(!kept.remove("to.ken").unwrap());
        assert_eq!(fs::read_dir(&kept.0).unwrap().count(), 0);
    }

    #[test]
    fn other_files_are_no_secrets() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["=partial", "token", "token=unknown", "a b=file", "=file"] {
            fs::write(folder.path().join(name), "x").unwrap();
        }
        assert_eq!(KeptSecrets::new(folder.path().to_owned()).list(), []);
    }
}
