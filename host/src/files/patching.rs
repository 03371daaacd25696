use std::{
    collections::BTreeMap,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use bytes::Bytes;
use sha2::{Digest as _, Sha256};
use vmcell_wire::files::{EditRecord, FileOperation, Precondition, record};

use super::{EntryKind, FileFailureKind, Files, Job, ReadOptions};
use crate::{
    error::Error,
    patch::{ApplyOptions, FilePatchKind, Patch, Strip, TreeFile},
    result_budget::ResultBudget,
};

/// How to apply a patch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PatchOptions {
    apply: ApplyOptions,
    strip: Strip,
}

impl PatchOptions {
    /// Requires an exact match, except that hunks may be at other lines.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Allows this many lines at the start and the end of a hunk's context to
    /// differ, as with `patch --fuzz`.
    #[must_use]
    pub const fn fuzz(mut self, lines: u32) -> Self {
        self.apply.fuzz = lines;
        self
    }

    /// Sets how many leading directories to strip from the names in the patch,
    /// as with `patch -p`.
    #[must_use]
    pub const fn strip(mut self, strip: Strip) -> Self {
        self.strip = strip;
        self
    }
}

/// What a patch has changed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AppliedPatch {
    /// The files that were changed, in the order of the patch. A file that the
    /// patch changes several times occurs as often.
    pub files: Vec<PatchedFile>,
    /// The paths of the binary files in the patch. They were left as they are.
    pub omitted: Vec<PathBuf>,
}

/// A file that a patch has changed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PatchedFile {
    /// What the patch did with the file.
    pub kind: FilePatchKind,
    /// The path, relative to the directory in which the patch was applied. For
    /// a renamed file, the new path.
    pub path: PathBuf,
}

/// The size limit for a file to patch.
const MAX_FILE: u64 = 256 << 20;

/// The size limit for all files of a patch together.
const MAX_FILES: usize = 512 << 20;

impl Files {
    /// Applies a text patch to the files below a directory, completely or not
    /// at all.
    ///
    /// Accepts the output of `git diff`, `diff -u` and `diff -c`, see
    /// [`Patch`](crate::patch::Patch). Binary files in it are left out, and
    /// reported. Symbolic links to directories are followed, but not out of the
    /// directory. If a file changes between being read and being written, the
    /// patch fails and nothing is changed. A file may have at most 256 MiB, and
    /// all files of a patch together 512 MiB.
    ///
    /// ```no_run
    /// # async fn example(vm: vmcell::Vm) -> Result<(), vmcell::Error> {
    /// let workspace = vm.files().at("/workspace");
    /// let patch = "--- a/greeting\n+++ b/greeting\n@@ -1 +1 @@\n-hello\n+goodbye\n";
    /// let applied = workspace.apply_patch("", patch, Default::default()).await?;
    /// assert!(applied.omitted.is_empty());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::BadPatch`] if the text is not a patch, [`Error::PatchMismatch`]
    /// with the closest match if it does not match, [`Error::File`] if the
    /// guest cannot write a file or one is too large, [`Error::ResultLimit`] if
    /// the files are too large together.
    ///
    /// # Cancel safety
    /// If the future is dropped, the patch is applied completely or not at all.
    pub async fn apply_patch(
        &self,
        directory: impl AsRef<Path>,
        patch: impl Into<Bytes>,
        options: PatchOptions,
    ) -> Result<AppliedPatch, Error> {
        let (directory, text) = (directory.as_ref(), patch.into());
        let paths = {
            let text = text.clone();
            blocking(move || {
                let patch = Patch::parse_with(&text, options.strip)?;
                Ok(patch
                    .paths()
                    .into_iter()
                    .map(Path::to_owned)
                    .collect::<Vec<_>>())
            })
            .await?
        };
        let mut old = BTreeMap::new();
        let mut budget = ResultBudget::new(
            "the files of the patch",
            usize::MAX,
            MAX_FILES,
            "apply the patch in parts",
        );
        for path in paths {
            if let Some(file) = self.read_tree_file(&directory.join(&path)).await? {
                budget.add(file.content.len())?;
                old.insert(path, file);
            }
        }
        let (edit, applied) = blocking(move || {
            let patch = Patch::parse_with(&text, options.strip)?;
            let new = patch.apply(&old, options.apply)?;
            let files = patch.files().iter().map(|file| PatchedFile {
                kind: file.kind(),
                path: file.path().to_owned(),
            });
            let omitted = patch.omitted().iter().map(|file| file.path.clone());
            let applied = AppliedPatch {
                files: files.collect(),
                omitted: omitted.collect(),
            };
            Ok((Edit { old, new }, applied))
        })
        .await?;
        let operation = FileOperation::Edit {
            path: self.relative_bytes(directory)?,
            owner: self.owner.as_wire(),
        };
        let job = self.begin(directory, operation).await?;
        if edit.send(&job).await? {
            job.input().end();
        }
        job.finish().await?;
        Ok(applied)
    }

    /// Reads a regular file or a symbolic link, or returns `None` if there is
    /// none.
    async fn read_tree_file(&self, path: &Path) -> Result<Option<TreeFile>, Error> {
        const REGULAR: u32 = 0o100_000;
        const SYMLINK: u32 = 0o120_000;
        let entry = match self.stat_link(path).await {
            Ok(entry) => entry,
            Err(Error::File(failure)) if failure.kind == FileFailureKind::NotFound => {
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        Ok(match (entry.kind, entry.target) {
            (EntryKind::File, _) => Some(TreeFile {
                mode: REGULAR | entry.mode,
                content: self
                    .read_with(path, ReadOptions::new().limit(MAX_FILE))
                    .await?,
            }),
            (EntryKind::Symlink, Some(target)) => Some(TreeFile {
                mode: SYMLINK,
                content: target.as_os_str().as_bytes().to_vec(),
            }),
            _ => {
                let path = super::path::display_path(path);
                return Err(Error::Invalid(format!(
                    "{path} cannot be patched: it is neither a file nor a symbolic link"
                )));
            }
        })
    }
}

/// The files before and after a patch.
struct Edit {
    old: BTreeMap<PathBuf, TreeFile>,
    new: BTreeMap<PathBuf, Option<TreeFile>>,
}

impl Edit {
    /// Sends the changes to the guest. Returns `false` if the guest has stopped
    /// reading; the job then contains the reason.
    async fn send(self, job: &Job) -> Result<bool, Error> {
        let input = job.input();
        for (path, new) in self.new {
            let old = self.old.get(&path);
            let Some(pieces) = edit_records(&path, old, new)? else {
                continue;
            };
            for piece in pieces {
                if !input.write(piece).await {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }
}

/// Encodes the change of one file, or returns `None` if it does not change.
fn edit_records(
    path: &Path,
    old: Option<&TreeFile>,
    new: Option<TreeFile>,
) -> Result<Option<Vec<Bytes>>, Error> {
    const TYPE: u32 = 0o170_000;
    const SYMLINK: u32 = 0o120_000;
    let path = path.as_os_str().as_bytes();
    let precondition = match old {
        Some(old) => Precondition::Digest(Sha256::digest(&old.content).into()),
        None => Precondition::Absent,
    };
    let is_same = |new: &TreeFile, old: &TreeFile| new.content == old.content;
    let is_same_type = |new: &TreeFile, old: &TreeFile| new.mode & TYPE == old.mode & TYPE;
    let record = match (&new, old) {
        (None, None) => return Ok(None),
        (None, Some(_)) => EditRecord::Remove { path, precondition },
        (Some(new), Some(old)) if new == old => return Ok(None),
        (Some(new), _) if new.mode & TYPE == SYMLINK => EditRecord::PutLink {
            path,
            precondition,
            target: &new.content,
        },
        (Some(new), Some(old)) if is_same(new, old) && is_same_type(new, old) => {
            EditRecord::SetMode {
                path,
                precondition,
                mode: super::operations::permissions(new.mode & !TYPE)?,
            }
        }
        (Some(new), _) => EditRecord::Put {
            path,
            precondition,
            mode: Some(super::operations::permissions(new.mode & !TYPE)?),
            length: new.content.len() as u64,
        },
    };
    let mut head = Vec::new();
    let too_large = |_| Error::Invalid("a path in the patch is too long".to_owned());
    record::encode(&mut head, &record).map_err(too_large)?;
    let is_put = matches!(record, EditRecord::Put { .. });
    let mut pieces = vec![Bytes::from(head)];
    if let Some(new) = new.filter(|new| is_put && !new.content.is_empty()) {
        let header = record::raw_header(new.content.len()).map_err(too_large)?;
        pieces.push(Bytes::copy_from_slice(&header));
        pieces.push(new.content.into());
    }
    Ok(Some(pieces))
}

/// Runs work that may take long on a thread of its own.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        // The task is cancelled only if the runtime shuts down.
        Err(_) => Err(Error::Busy("the program is about to end")),
    }
}
