use std::{
    collections::{HashMap, HashSet},
    sync::{Mutex, MutexGuard, PoisonError},
};

use vmcell::{
    Error,
    tool::Tool,
    workspace::{Workspace, WorkspaceError, Workspaces},
};

use crate::{allowed_paths::AllowedPaths, failure::Failure};

/// What all calls work with.
pub(crate) struct Shared {
    pub(crate) workspaces: Workspaces,
    /// Those of `vm_create`.
    pub(crate) vms: Workspaces,
    pub(crate) paths: AllowedPaths,
    /// That of `tool_run`, if there is a policy.
    pub(crate) tool: Option<Tool>,
    /// Handles stay attached to their VM, so that the next call does not have to attach.
    handles: Mutex<HashMap<String, Workspace>>,
    /// The ids of VMs that end with this server.
    temporary: Mutex<HashSet<String>>,
}

impl Shared {
    pub(crate) fn new(
        workspaces: Workspaces,
        vms: Workspaces,
        paths: AllowedPaths,
        tool: Option<Tool>,
    ) -> Self {
        Self {
            workspaces,
            vms,
            paths,
            tool,
            handles: Mutex::default(),
            temporary: Mutex::default(),
        }
    }

    /// Finds a workspace by its id or name.
    pub(crate) async fn workspace(&self, id: &str) -> Result<Workspace, Failure> {
        if let Some(known) = self.handles().get(id) {
            return Ok(known.clone());
        }
        let workspace = self.workspaces.get(id).await?;
        // Names can be given to another one.
        if workspace.id() == id {
            self.handles().insert(id.to_owned(), workspace.clone());
        }
        Ok(workspace)
    }

    /// Forgets the handle of a workspace that is not there any more.
    pub(crate) fn forget(&self, id: &str) {
        self.handles().remove(id);
    }

    /// Remembers that a VM ends with this server.
    pub(crate) fn add_temporary(&self, id: &str) {
        self.temporary().insert(id.to_owned());
    }

    pub(crate) fn remove_temporary(&self, id: &str) {
        self.temporary().remove(id);
    }

    /// Deletes the VMs that nobody asked to keep.
    pub(crate) async fn delete_temporary(&self) {
        let ids: Vec<_> = self.temporary().drain().collect();
        for id in ids {
            let deleted = match self.vms.get(&id).await {
                Ok(vm) => vm.delete().await,
                Err(error) => Err(error),
            };
            match deleted {
                Ok(()) | Err(Error::Workspace(WorkspaceError::NotFound { .. })) => {}
                Err(error) => tracing::warn!(%id, %error, "cannot delete a VM"),
            }
        }
    }

    fn handles(&self) -> MutexGuard<'_, HashMap<String, Workspace>> {
        self.handles.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn temporary(&self) -> MutexGuard<'_, HashSet<String>> {
        self.temporary
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}
