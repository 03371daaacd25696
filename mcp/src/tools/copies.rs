//! Copies into a workspace and out of it.

use std::path::{Path, PathBuf};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use vmcell::{
    files::{EntryKind, Files, ReadOptions, WalkOptions},
    tree::ArchiveFormat,
};

use super::files::{files, workspace_folder};
use crate::{call::Call, content::Content, failure::Failure, hints::Hints, tool::Tool};

pub(super) struct WorkspaceSyncPush;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct PushInput {
    workspace_id: String,
    /// Folder or .tar, .tar.gz or .tgz of the host, if the server may read it.
    source_path: Option<String>,
    /// Contents to write instead.
    #[serde(default)]
    files: Vec<NewFile>,
    /// Folder below /workspace to copy into.
    #[serde(default = "workspace_folder")]
    dest: String,
}

/// A file with its content.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NewFile {
    /// Relative to dest.
    path: String,
    text: Option<String>,
    /// Instead of text, for other files.
    base64: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Pushed {
    workspace_id: String,
    destination: String,
    entries: u64,
    bytes: u64,
    /// Entries that could not be copied.
    left_out: u64,
}

impl Tool for WorkspaceSyncPush {
    const NAME: &'static str = "workspace_sync_push";
    const TITLE: &'static str = "Copy files into a workspace";
    const DESCRIPTION: &'static str = "\
Copy files into a running workspace: `files` with their contents, or a folder or archive of the \
host. Files that are there already are replaced, others stay.";
    const HINTS: Hints = Hints::DESTROYS;
    type Input = PushInput;
    type Output = Pushed;

    async fn run(call: Call, input: PushInput) -> Result<Pushed, Failure> {
        let source = match (input.source_path.as_deref(), input.files.is_empty()) {
            (Some(path), true) => Some(call.shared.paths.existing(path)?),
            (None, false) => None,
            _ => {
                let message = "give either files or source_path";
                return Err(Failure::invalid(message));
            }
        };
        let contents = input.files.into_iter().map(NewFile::decode);
        let contents = contents.collect::<Result<Vec<_>, _>>()?;
        let (workspace, vm) = call.running(&input.workspace_id).await?;
        let files = files(&vm);
        let mut pushed = Pushed {
            workspace_id: workspace.id().to_owned(),
            destination: input.dest,
            entries: 0,
            bytes: 0,
            left_out: 0,
        };
        match source {
            Some(source) => pushed.push(&call, &files, source).await?,
            None => pushed.write(&files, contents).await?,
        }
        Ok(pushed)
    }
}

impl NewFile {
    fn decode(self) -> Result<(String, Vec<u8>), Failure> {
        let path = self.path;
        match (self.text, self.base64) {
            (Some(text), None) => Ok((path, text.into_bytes())),
            (None, Some(base64)) => {
                let bytes = STANDARD.decode(base64);
                let bytes = bytes.map_err(|error| {
                    Failure::invalid(format!("files: base64 of {path:?}: {error}"))
                })?;
                Ok((path, bytes))
            }
            _ => Err(Failure::invalid(format!(
                "files: {path:?} needs either text or base64"
            ))),
        }
    }
}

impl Pushed {
    async fn push(&mut self, call: &Call, files: &Files, source: PathBuf) -> Result<(), Failure> {
        let push = if !source.is_file() {
            files.push(&source, &self.destination)
        } else if ArchiveFormat::from_path(&source).is_some() {
            files.push_archive(&source, &self.destination)?
        } else {
            let name = source.file_name().unwrap_or_default();
            files.push(&source, Path::new(&self.destination).join(name))
        };
        let progress = call.progress.clone();
        let push = push.progress(move |copied| progress.set_copied(copied.entries, copied.bytes));
        let pushed = push.run().await?;
        self.entries = pushed.entries + pushed.unchanged;
        self.bytes = pushed.bytes;
        self.left_out = pushed.skipped;
        Ok(())
    }

    async fn write(
        &mut self,
        files: &Files,
        contents: Vec<(String, Vec<u8>)>,
    ) -> Result<(), Failure> {
        for (path, bytes) in contents {
            let path = Path::new(&self.destination).join(path);
            self.bytes += files.write(path, bytes).await?.size;
            self.entries += 1;
        }
        Ok(())
    }
}

pub(super) struct WorkspaceExport;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ExportInput {
    workspace_id: String,
    /// File or folder below /workspace.
    path: String,
    /// Where the copy goes on the host, if the server may write there. Without it, contents
    /// are returned.
    output_path: Option<String>,
    /// How many bytes of contents are returned at most.
    #[serde(default = "default_max_bytes")]
    max_bytes: u64,
}

fn default_max_bytes() -> u64 {
    1024 * 1024
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Exported {
    workspace_id: String,
    path: String,
    output_path: Option<String>,
    entries: u64,
    bytes: u64,
    /// The contents, if there is no output_path.
    files: Vec<ExportedFile>,
    /// Files that did not fit into max_bytes: read them with workspace_file_read.
    left_out: Vec<String>,
}

#[derive(Serialize, JsonSchema)]
struct ExportedFile {
    path: String,
    size_bytes: u64,
    #[serde(flatten)]
    content: Content,
}

impl Tool for WorkspaceExport {
    const NAME: &'static str = "workspace_export";
    const TITLE: &'static str = "Copy files out of a workspace";
    const DESCRIPTION: &'static str = "\
Copy a file or folder of a running workspace to the host, or return the contents of its files.";
    const HINTS: Hints = Hints::DESTROYS;
    type Input = ExportInput;
    type Output = Exported;

    async fn run(call: Call, input: ExportInput) -> Result<Exported, Failure> {
        let output = input.output_path.as_deref();
        let output = output
            .map(|path| call.shared.paths.new_file(path))
            .transpose()?;
        let (workspace, vm) = call.running(&input.workspace_id).await?;
        let files = files(&vm);
        let mut exported = Exported {
            workspace_id: workspace.id().to_owned(),
            path: input.path,
            output_path: None,
            entries: 0,
            bytes: 0,
            files: Vec::new(),
            left_out: Vec::new(),
        };
        match output {
            Some(output) => {
                let progress = call.progress.clone();
                let pull = files
                    .pull(&exported.path, &output)
                    .progress(move |copied| progress.set_copied(copied.entries, copied.bytes));
                let pulled = pull.run().await?;
                exported.entries = pulled.entries;
                exported.bytes = pulled.bytes;
                exported.output_path = Some(output.to_string_lossy().into_owned());
            }
            None => exported.read(&files, input.max_bytes).await?,
        }
        Ok(exported)
    }
}

/// How many files are named that were left out.
const MAX_LEFT_OUT: usize = 100;

impl Exported {
    async fn read(&mut self, files: &Files, max_bytes: u64) -> Result<(), Failure> {
        let mut room = max_bytes;
        let entry = files.stat_link(&self.path).await?;
        let mut entries = vec![entry];
        if entries[0].kind == EntryKind::Directory {
            entries.clear();
            let walk = WalkOptions::new().depth(u32::MAX);
            let mut walk = files.walk(&self.path, walk).await?;
            while let Some(entry) = walk.next().await? {
                if entry.kind != EntryKind::File {
                    continue;
                }
                if entry.size <= room {
                    room -= entry.size;
                    entries.push(entry);
                } else if self.left_out.len() < MAX_LEFT_OUT {
                    self.left_out
                        .push(entry.path.to_string_lossy().into_owned());
                }
            }
        } else if entries[0].kind != EntryKind::File {
            return Err(Failure::invalid(format!(
                "{:?} is neither a file nor a folder",
                self.path
            )));
        } else if entries[0].size > room {
            return Err(Failure::invalid(format!(
                "{:?} has {} bytes, more than max_bytes",
                self.path, entries[0].size
            ))
            .with_remedy("read it in parts with workspace_file_read"));
        }
        for entry in entries {
            let options = ReadOptions::new().limit(entry.size.max(1));
            let bytes = files.read_with(&entry.path, options).await?;
            self.entries += 1;
            self.bytes += bytes.len() as u64;
            self.files.push(ExportedFile {
                path: entry.path.to_string_lossy().into_owned(),
                size_bytes: bytes.len() as u64,
                content: bytes.into(),
            });
        }
        Ok(())
    }
}
