//! Patches and diffs.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use vmcell::{files::PatchOptions, patch::FilePatchKind};
use vmcell_tree::whole_characters;

use super::{files::files, workspaces::baseline};
use crate::{call::Call, failure::Failure, hints::Hints, tool::Tool};

pub(super) struct WorkspacePatchApply;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct PatchInput {
    workspace_id: String,
    /// A unified diff, as of `git diff` or `diff -u`, with paths below /workspace.
    patch: String,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Patched {
    workspace_id: String,
    files: Vec<PatchedFile>,
    /// Binary files in the patch, which were left as they are.
    omitted: Vec<String>,
}

#[derive(Serialize, JsonSchema)]
struct PatchedFile {
    path: String,
    /// added, modified, deleted, renamed or copied.
    change: &'static str,
}

impl Tool for WorkspacePatchApply {
    const NAME: &'static str = "workspace_patch_apply";
    const TITLE: &'static str = "Apply a patch to a workspace";
    const DESCRIPTION: &'static str = "\
Apply a unified diff to text files of a running workspace, completely or not at all. It can add, \
change and delete files.";
    const HINTS: Hints = Hints::REPLACES;
    type Input = PatchInput;
    type Output = Patched;

    async fn run(call: Call, input: PatchInput) -> Result<Patched, Failure> {
        let (workspace, vm) = call.running(&input.workspace_id).await?;
        let files = files(&vm);
        let applied = files.apply_patch("", input.patch.into_bytes(), PatchOptions::new());
        let applied = applied.await?;
        let files = applied.files.iter().map(|file| PatchedFile {
            path: file.path.to_string_lossy().into_owned(),
            change: match file.kind {
                FilePatchKind::Added => "added",
                FilePatchKind::Deleted => "deleted",
                FilePatchKind::Renamed => "renamed",
                FilePatchKind::Copied => "copied",
                _ => "modified",
            },
        });
        let omitted = applied.omitted.iter();
        Ok(Patched {
            workspace_id: workspace.id().to_owned(),
            files: files.collect(),
            omitted: omitted
                .map(|path| path.to_string_lossy().into_owned())
                .collect(),
        })
    }
}

pub(super) struct WorkspaceDiff;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct DiffInput {
    workspace_id: String,
    /// Since when: `baseline` is the workspace as it was created.
    #[serde(default = "baseline")]
    snapshot: String,
    /// How many bytes of patches are returned at most.
    #[serde(default = "default_max_bytes")]
    max_bytes: usize,
}

fn default_max_bytes() -> usize {
    256 * 1024
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Diff {
    workspace_id: String,
    snapshot: String,
    /// How many files have changed.
    change_count: usize,
    changes: Vec<Change>,
    /// Whether patches were left out: read these files with workspace_file_read.
    truncated: bool,
}

#[derive(Serialize, JsonSchema)]
struct Change {
    path: String,
    /// added, modified, deleted, ...
    change: &'static str,
    /// The unified diff of a text file.
    #[serde(skip_serializing_if = "Option::is_none")]
    patch: Option<String>,
}

impl Tool for WorkspaceDiff {
    const NAME: &'static str = "workspace_diff";
    const TITLE: &'static str = "Show what has changed in a workspace";
    const DESCRIPTION: &'static str = "\
Return what has changed in /workspace since the workspace was created, or since a snapshot: the \
files, and a unified diff of each text file.";
    const HINTS: Hints = Hints::READS;
    type Input = DiffInput;
    type Output = Diff;

    async fn run(call: Call, input: DiffInput) -> Result<Diff, Failure> {
        let workspace = call.workspace(&input.workspace_id).await?;
        let diff = workspace.diff(&input.snapshot).await?;
        let mut room = input.max_bytes;
        let mut truncated = false;
        let changes = diff.files().iter().map(|file| {
            let mut patch = file.patch().to_vec();
            if patch.len() > room {
                patch.truncate(room);
                patch.truncate(whole_characters(&patch).len());
                truncated = true;
            }
            room -= patch.len();
            Change {
                path: file.change().path.to_string_lossy().into_owned(),
                change: file.change().kind().name(),
                patch: (!patch.is_empty()).then(|| String::from_utf8_lossy(&patch).into_owned()),
            }
        });
        Ok(Diff {
            workspace_id: workspace.id().to_owned(),
            snapshot: input.snapshot,
            change_count: diff.files().len(),
            changes: changes.collect(),
            truncated,
        })
    }
}
