//! The VM that a command works on.

use serde_json::{Value, json};
use vmcell::{
    Command, Error, ExecStream, Vm,
    workspace::{Workspace, Workspaces},
};

use crate::secret::SecretOptions;

/// Attaches to a VM by its id, or to that of a workspace by its name.
pub(crate) async fn attach(id: &str) -> Result<Vm, Error> {
    let not_found = match Vm::attach(id).await {
        Err(error @ Error::NoSuchVm { .. }) => error,
        attached => return attached,
    };
    let found = match Workspaces::open() {
        Ok(workspaces) => workspaces.get(id).await,
        Err(error) => Err(error),
    };
    match found {
        Ok(workspace) => match Vm::attach(workspace.id()).await {
            // Why there is none.
            Err(Error::NoSuchVm { .. }) => workspace.vm().await,
            attached => attached,
        },
        Err(_) => Err(not_found),
    }
}

/// A running VM, which may be that of a workspace.
pub(crate) struct Target {
    pub(crate) vm: Vm,
    workspace: Option<Workspace>,
    /// What its id is called in JSON.
    id_key: &'static str,
}

impl Target {
    /// Attaches to a VM that another program owns, as [`attach`].
    pub(crate) async fn attach(id: &str) -> Result<Self, Error> {
        Ok(Self::of_vm(attach(id).await?))
    }

    /// A VM of this program.
    pub(crate) fn of_vm(vm: Vm) -> Self {
        Self {
            vm,
            workspace: None,
            id_key: "sandbox_id",
        }
    }

    /// The VM of a workspace.
    pub(crate) fn of_workspace(workspace: Workspace, vm: Vm) -> Self {
        Self {
            vm,
            workspace: Some(workspace),
            id_key: "workspace_id",
        }
    }

    /// A VM of `vmcell vm`.
    pub(crate) fn of_own_vm(workspace: Workspace, vm: Vm) -> Self {
        Self {
            id_key: "vm_id",
            ..Self::of_workspace(workspace, vm)
        }
    }

    /// Runs a command. That of a workspace is in its history.
    pub(crate) async fn exec_stream(&self, command: Command) -> Result<ExecStream, Error> {
        match &self.workspace {
            Some(workspace) => workspace.exec_stream(command).await,
            None => self.vm.exec_stream(command),
        }
    }

    /// Gives a command what its workspace has for all of them, if there is one.
    pub(crate) async fn prepare(&self, command: Command) -> Result<Command, Error> {
        match &self.workspace {
            Some(workspace) => workspace.prepare(command).await,
            None => Ok(command),
        }
    }

    /// Grants secrets to a command: those that its workspace keeps, or else those of the
    /// caller's environment.
    pub(crate) async fn grant(
        &self,
        command: Command,
        secrets: &SecretOptions,
    ) -> Result<Command, Error> {
        let variables = secrets.load_for(&self.vm).await?.into_iter();
        Ok(variables.fold(command, |command, (name, secret)| {
            command.secret_env(name, &secret)
        }))
    }

    /// Returns an object with its id, to which other members are added.
    pub(crate) fn as_json(&self) -> Value {
        json!({ self.id_key: self.vm.id() })
    }

    /// Adds its id to a result.
    pub(crate) fn add_to(&self, result: &mut Value) {
        result[self.id_key] = self.vm.id().into();
    }
}
