//! Files of a running workspace.

use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use vmcell::{
    Vm,
    files::{Entry, Files, ReadOptions, WalkOptions},
};
use vmcell_tree::whole_characters;

use super::workspaces::date;
use crate::{call::Call, content::Content, failure::Failure, hints::Hints, tool::Tool};

/// The folder of a workspace. No link leads outside.
pub(super) const WORKSPACE: &str = "/workspace";

/// How many entries are listed at most, unless the caller says.
const DEFAULT_MAX_ENTRIES: usize = 500;

/// Returns the files below `/workspace`.
pub(super) fn files(vm: &Vm) -> Files {
    vm.files().at(WORKSPACE)
}

pub(super) fn workspace_folder() -> String {
    WORKSPACE.to_owned()
}

pub(super) fn default_max_bytes() -> u64 {
    65_536
}

pub(super) fn default_max_entries() -> usize {
    DEFAULT_MAX_ENTRIES
}

/// A file or folder.
#[derive(Serialize, JsonSchema)]
pub(super) struct Listed {
    path: String,
    /// file, directory, symlink, ...
    kind: &'static str,
    size_bytes: u64,
    /// Permissions, in octal digits.
    mode: String,
    modified_at: String,
    /// Where a symbolic link leads.
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<String>,
}

impl Listed {
    pub(super) fn new(root: &Path, entry: &Entry) -> Self {
        let target = entry.target.as_ref();
        Self {
            path: root.join(&entry.path).to_string_lossy().into_owned(),
            kind: entry.kind.name(),
            size_bytes: entry.size,
            mode: format!("{:04o}", entry.mode),
            modified_at: date(entry.modified),
            target: target.map(|target| target.to_string_lossy().into_owned()),
        }
    }
}

pub(super) struct WorkspaceFileList;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ListInput {
    pub(super) workspace_id: String,
    /// Folder below /workspace.
    #[serde(default = "workspace_folder")]
    pub(super) path: String,
    #[serde(default)]
    pub(super) recursive: bool,
    /// How many entries are returned at most.
    #[serde(default = "default_max_entries")]
    pub(super) max_entries: usize,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct List {
    pub(super) workspace_id: String,
    pub(super) path: String,
    pub(super) entries: Vec<Listed>,
    /// Whether there are more: list a folder below, or ask for more max_entries.
    pub(super) truncated: bool,
}

impl Tool for WorkspaceFileList {
    const NAME: &'static str = "workspace_file_list";
    const TITLE: &'static str = "List files of a workspace";
    const DESCRIPTION: &'static str = "\
List the entries of a folder of a running workspace. workspace_disk_list does it for a stopped one.";
    const HINTS: Hints = Hints::READS;
    type Input = ListInput;
    type Output = List;

    async fn run(call: Call, input: ListInput) -> Result<List, Failure> {
        let (workspace, vm) = call.running(&input.workspace_id).await?;
        let depth = if input.recursive { u32::MAX } else { 1 };
        let files = files(&vm);
        let walk = WalkOptions::new().depth(depth);
        let mut walk = files.walk(&input.path, walk).await?;
        let mut entries = Vec::new();
        let truncated = loop {
            match walk.next().await? {
                None => break false,
                Some(_) if entries.len() == input.max_entries => break true,
                Some(entry) => entries.push(Listed::new(files.root(), &entry)),
            }
        };
        Ok(List {
            workspace_id: workspace.id().to_owned(),
            path: input.path,
            entries,
            truncated,
        })
    }
}

pub(super) struct WorkspaceFileRead;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ReadInput {
    pub(super) workspace_id: String,
    /// File below /workspace.
    pub(super) path: String,
    /// How many bytes are returned at most.
    #[serde(default = "default_max_bytes")]
    pub(super) max_bytes: u64,
    /// The first byte: 0, or next_offset of the last call.
    #[serde(default)]
    pub(super) offset: u64,
}

impl ReadInput {
    /// The most that is read at once.
    const MAX_BYTES: u64 = 4 * 1024 * 1024;

    pub(super) fn check(&self) -> Result<ReadOptions, Failure> {
        if self.max_bytes > Self::MAX_BYTES {
            return Err(Failure::invalid(format!(
                "max_bytes: {} is more than {}: read it in parts, with offset",
                self.max_bytes,
                Self::MAX_BYTES
            )));
        }
        let options = ReadOptions::new().range(self.offset, self.max_bytes);
        Ok(options.limit(self.max_bytes))
    }

    pub(super) fn answer(self, workspace_id: &str, size: u64, mut bytes: Vec<u8>) -> Read {
        let end = self.offset.saturating_add(bytes.len() as u64);
        if end < size {
            bytes.truncate(whole_characters(&bytes).len());
        }
        let end = self.offset.saturating_add(bytes.len() as u64);
        Read {
            workspace_id: workspace_id.to_owned(),
            path: self.path,
            size_bytes: size,
            content: bytes.into(),
            truncated: end < size,
            next_offset: (end < size).then_some(end),
        }
    }
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Read {
    workspace_id: String,
    path: String,
    size_bytes: u64,
    #[serde(flatten)]
    content: Content,
    truncated: bool,
    /// The offset to read on with, if there is more.
    next_offset: Option<u64>,
}

impl Tool for WorkspaceFileRead {
    const NAME: &'static str = "workspace_file_read";
    const TITLE: &'static str = "Read a file of a workspace";
    const DESCRIPTION: &'static str = "\
Read a file of a running workspace. A long one is read in parts: next_offset is the offset of the \
next part. workspace_disk_read does it for a stopped workspace.";
    const HINTS: Hints = Hints::READS;
    type Input = ReadInput;
    type Output = Read;

    async fn run(call: Call, input: ReadInput) -> Result<Read, Failure> {
        let options = input.check()?;
        let (workspace, vm) = call.running(&input.workspace_id).await?;
        let files = files(&vm);
        let size = files.stat(&input.path).await?.size;
        let bytes = files.read_with(&input.path, options).await?;
        Ok(input.answer(workspace.id(), size, bytes))
    }
}

pub(super) struct WorkspaceFileWrite;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct WriteInput {
    workspace_id: String,
    /// File below /workspace. Folders that are missing are created.
    path: String,
    text: String,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Written {
    workspace_id: String,
    path: String,
    bytes_written: u64,
}

impl Tool for WorkspaceFileWrite {
    const NAME: &'static str = "workspace_file_write";
    const TITLE: &'static str = "Write a file of a workspace";
    const DESCRIPTION: &'static str = "\
Create or replace a text file of a running workspace. workspace_patch_apply changes parts of files.";
    const HINTS: Hints = Hints::DESTROYS;
    type Input = WriteInput;
    type Output = Written;

    async fn run(call: Call, input: WriteInput) -> Result<Written, Failure> {
        let (workspace, vm) = call.running(&input.workspace_id).await?;
        let written = files(&vm)
            .write(&input.path, input.text.into_bytes())
            .await?;
        Ok(Written {
            workspace_id: workspace.id().to_owned(),
            path: input.path,
            bytes_written: written.size,
        })
    }
}
