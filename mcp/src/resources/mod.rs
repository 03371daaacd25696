//! Files and screens of workspaces, as resources.

mod subscriptions;
mod uri;

pub(crate) use subscriptions::{Subscriptions, accepted, listen};

use std::{ffi::OsStr, os::unix::ffi::OsStrExt as _, path::Path};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use rmcp::{
    ErrorData,
    model::{
        ListResourceTemplatesResult, ListResourcesResult, ReadResourceResponse, ReadResourceResult,
        Resource, ResourceContents, ResourceTemplate,
    },
};
use vmcell::{
    ProcessSelector, Vm,
    files::{Entry, EntryKind, ReadOptions},
    terminal::TerminalOptions,
    workspace::WorkspaceState,
};

use crate::{failure::Failure, shared::Shared};
use uri::Uri;

/// How many files of each workspace are listed.
const MAX_LISTED: usize = 100;

/// The largest file that is read as a resource.
const MAX_READ: u64 = 4 * 1024 * 1024;

const DIRECTORY: &str = "inode/directory";
const TEXT: &str = "text/plain";
const BINARY: &str = "application/octet-stream";
const PNG: &str = "image/png";

/// Lists the files at the top of all workspaces that run.
pub(crate) async fn list(shared: &Shared) -> Result<ListResourcesResult, ErrorData> {
    let workspaces = shared.workspaces.list().await.map_err(Failure::from);
    let mut resources = Vec::new();
    for info in workspaces.map_err(internal)? {
        if info.state != WorkspaceState::Running {
            continue;
        }
        // One that has just ended has none.
        let Ok(entries) = top_entries(shared, &info.id).await else {
            continue;
        };
        let root = Uri::file(&info.id, Path::new("")).to_string();
        let title = info.name.unwrap_or(info.id.clone());
        let root = Resource::new(root, format!("{}/", info.id)).with_title(title);
        resources.push(root.with_mime_type(DIRECTORY));
        for entry in entries.iter().take(MAX_LISTED) {
            let uri = Uri::file(&info.id, &entry.path).to_string();
            let name = entry.path.to_string_lossy().into_owned();
            let resource = Resource::new(uri, name);
            resources.push(match entry.kind {
                EntryKind::Directory => resource.with_mime_type(DIRECTORY),
                _ => resource.with_size(entry.size),
            });
        }
    }
    Ok(ListResourcesResult::with_all_items(resources))
}

async fn top_entries(shared: &Shared, id: &str) -> Result<Vec<Entry>, Failure> {
    let vm = shared.workspace(id).await?.vm().await?;
    Ok(files(&vm).list("").await?)
}

fn files(vm: &Vm) -> vmcell::files::Files {
    vm.files().at("/workspace")
}

pub(crate) fn templates() -> ListResourceTemplatesResult {
    ListResourceTemplatesResult::with_all_items(vec![
        ResourceTemplate::new("vmcell://{workspace_id}/{+path}", "file")
            .with_title("A file or folder of a running workspace")
            .with_description("The path is relative to /workspace."),
        ResourceTemplate::new("vmcell-screen://{workspace_id}/{shell_id}", "screen")
            .with_title("The screen of a shell, as text")
            .with_mime_type(TEXT),
        ResourceTemplate::new(
            "vmcell-screen://{workspace_id}/{shell_id}.png",
            "screen-image",
        )
        .with_title("The screen of a shell, as an image")
        .with_mime_type(PNG),
    ])
}

pub(crate) async fn read(shared: &Shared, uri: &str) -> Result<ReadResourceResponse, ErrorData> {
    let contents = match Uri::parse(uri) {
        Some(Uri::File { workspace, path }) => {
            read_file(shared, uri, &workspace, Path::new(OsStr::from_bytes(&path))).await
        }
        Some(Uri::Screen {
            workspace,
            shell,
            is_image,
        }) => read_screen(shared, uri, &workspace, shell, is_image).await,
        None => Err(Failure::invalid(format!(
            "{uri:?} is no resource: resources/templates/list shows what they are like"
        ))),
    };
    let contents = contents.map_err(not_found)?;
    Ok(ReadResourceResult::new(vec![contents]).into())
}

async fn read_file(
    shared: &Shared,
    uri: &str,
    workspace: &str,
    path: &Path,
) -> Result<ResourceContents, Failure> {
    let vm = shared.workspace(workspace).await?.vm().await?;
    let files = files(&vm);
    let entry = files.stat(path).await?;
    if entry.kind == EntryKind::Directory {
        let entries = files.list(path).await?;
        let names = entries.iter().map(|entry| {
            let name = entry.path.file_name().unwrap_or_default().to_string_lossy();
            match entry.kind {
                EntryKind::Directory => format!("{name}/\n"),
                _ => format!("{name}\n"),
            }
        });
        let names: String = names.collect();
        return Ok(ResourceContents::text(names, uri).with_mime_type(DIRECTORY));
    }
    if entry.size > MAX_READ {
        return Err(Failure::invalid(format!(
            "{uri} has {} bytes, which is more than a resource may have",
            entry.size
        ))
        .with_remedy("workspace_file_read reads it in parts"));
    }
    let bytes = files
        .read_with(path, ReadOptions::new().limit(MAX_READ))
        .await?;
    Ok(match String::from_utf8(bytes) {
        Ok(text) => ResourceContents::text(text, uri).with_mime_type(TEXT),
        Err(error) => {
            let blob = STANDARD.encode(error.as_bytes());
            ResourceContents::blob(blob, uri).with_mime_type(BINARY)
        }
    })
}

async fn read_screen(
    shared: &Shared,
    uri: &str,
    workspace: &str,
    shell: String,
    is_image: bool,
) -> Result<ResourceContents, Failure> {
    let vm = shared.workspace(workspace).await?.vm().await?;
    let view_only = TerminalOptions::new().view_only();
    let terminals = vm.terminals();
    let terminal = terminals
        .attach_with(ProcessSelector::Tag(shell), view_only)
        .await?;
    terminal.catch_up().await?;
    let screen = terminal.screen();
    Ok(match is_image {
        true => {
            let blob = STANDARD.encode(screen.to_picture().to_png());
            ResourceContents::blob(blob, uri).with_mime_type(PNG)
        }
        false => ResourceContents::text(screen.text(), uri).with_mime_type(TEXT),
    })
}

fn not_found(failure: Failure) -> ErrorData {
    ErrorData::resource_not_found(failure.to_string(), Some(failure.into_json()))
}

fn internal(failure: Failure) -> ErrorData {
    ErrorData::internal_error(failure.to_string(), Some(failure.into_json()))
}
