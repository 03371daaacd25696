//! The VM of a call, and what becomes of it.

use std::{
    path::Path,
    time::{Duration, SystemTime},
};

use tokio::{runtime::Handle, task::JoinSet};

use super::{
    Retention,
    plan::{Plan, PlannedFile},
};
use crate::{
    error::Error,
    files::{FileOwner, WriteOptions},
    hex,
    process::{Command, OverflowPolicy},
    random::random_bytes,
    secret::Secret,
    template::Template,
    vm::{Vm, VmBuilder},
    workspace::{NewWorkspace, Workspaces},
};

/// The VM of a call.
#[derive(Debug)]
pub(super) enum Sandbox {
    /// It ends with this handle.
    Vm(Vm),
    /// It can be kept. Until it is, it is deleted with this handle.
    Workspace { vm: Vm, kept: KeptWorkspace },
}

/// A workspace that is deleted when this is dropped, unless it was kept.
#[derive(Debug)]
pub(super) struct KeptWorkspace {
    workspaces: Workspaces,
    id: String,
    is_kept: bool,
}

/// How long the end of a VM may take.
const END_TIMEOUT: Duration = Duration::from_secs(60);

/// How many files are written at once.
const WRITES_AT_ONCE: usize = 8;

impl Sandbox {
    /// Starts a VM that is not kept, from a template if it can be.
    pub(super) async fn start(
        vm: VmBuilder,
        template: Option<&Template>,
        plan: &Plan,
    ) -> Result<Self, Error> {
        let network = plan.network.clone();
        let started = match template {
            Some(template) => {
                let with_network = |vm: VmBuilder| vm.network(network.clone());
                template.start_with(with_network).await
            }
            None => vm.network(network).start().await,
        };
        started.map(Self::Vm)
    }

    /// Starts a VM that can be kept.
    pub(super) async fn start_kept(
        workspaces: &Workspaces,
        image: &Path,
        plan: &Plan,
        audit_id: &str,
    ) -> Result<Self, Error> {
        let kept = KeptWorkspace {
            workspaces: workspaces.clone(),
            id: format!("tool-{}", hex::encode(&random_bytes::<6>()?)),
            is_kept: false,
        };
        let new = NewWorkspace::new(image)
            .id(&kept.id)
            .environment(&plan.image_name)
            .label("audit_id", audit_id)
            .vcpus(plan.image.vcpus.unwrap_or(1))
            .memory_mib(plan.memory_mib)
            .network(plan.network.clone())
            // In case this program dies. What is kept has its own time from then on.
            .lifetime(plan.deadline.saturating_add(plan.ttl.unwrap_or_default()))
            .warm(true);
        let workspace = workspaces.create(new).await?;
        let vm = workspace.vm().await?;
        Ok(Self::Workspace { vm, kept })
    }

    pub(super) fn vm(&self) -> &Vm {
        match self {
            Self::Vm(vm) | Self::Workspace { vm, .. } => vm,
        }
    }

    /// Returns its id, by which users find it if it is kept.
    pub(super) fn id(&self) -> String {
        match self {
            Self::Vm(vm) => vm.id().to_owned(),
            Self::Workspace { kept, .. } => kept.id.clone(),
        }
    }

    /// Writes the files of a plan.
    pub(super) async fn write_files(&self, plan: &mut Plan) -> Result<(), Error> {
        let mut files = self.vm().files();
        if let Some(user) = &plan.image.user {
            files = files.owned_by(FileOwner::user(user));
            files.make_directory(&plan.working_directory).await?;
        }
        let mut writing = JoinSet::new();
        for file in std::mem::take(&mut plan.files) {
            if writing.len() >= WRITES_AT_ONCE {
                joined(writing.join_next().await)?;
            }
            let files = files.clone();
            writing.spawn(async move {
                let PlannedFile {
                    path,
                    content,
                    mode,
                } = file;
                let options = WriteOptions::new().mode(mode);
                files.write_with(path, content, options).await
            });
        }
        while let Some(written) = writing.join_next().await {
            joined(Some(written))?;
        }
        Ok(())
    }

    /// Ends it as the plan says. Returns until when it is kept.
    pub(super) async fn finish(self, plan: &Plan) -> Result<Option<SystemTime>, Error> {
        let ending = async {
            match self {
                Self::Vm(vm) => vm.kill().await.map(|()| None),
                Self::Workspace { vm, mut kept } => {
                    drop(vm);
                    match kept.keep(plan).await {
                        Ok(expires) => Ok(expires),
                        Err(error) => {
                            // Nothing stays that nobody asked for.
                            kept.delete().await?;
                            Err(error)
                        }
                    }
                }
            }
        };
        in_time(ending).await
    }

    /// Ends it, and leaves nothing.
    pub(super) async fn discard(self) -> Result<(), Error> {
        let ending = async {
            match self {
                Self::Vm(vm) => vm.kill().await,
                Self::Workspace { vm, mut kept } => {
                    drop(vm);
                    kept.delete().await
                }
            }
        };
        in_time(ending).await
    }
}

impl KeptWorkspace {
    async fn keep(&mut self, plan: &Plan) -> Result<Option<SystemTime>, Error> {
        let workspace = self.workspaces.get(&self.id).await?;
        match plan.retention {
            Retention::Cold => workspace.pause().await?,
            Retention::Snapshot => {
                workspace.snapshot(&plan.snapshot_name).await?;
                workspace.stop().await?;
            }
            Retention::Stop | Retention::Destroy => workspace.stop().await?,
        }
        let expires = match plan.ttl {
            Some(ttl) => Some(workspace.expire_after(ttl).await?),
            None => None,
        };
        self.is_kept = true;
        Ok(expires)
    }

    async fn delete(&mut self) -> Result<(), Error> {
        let workspace = self.workspaces.get(&self.id).await?;
        workspace.delete().await?;
        self.is_kept = true;
        Ok(())
    }
}

impl Drop for KeptWorkspace {
    fn drop(&mut self) {
        if self.is_kept {
            return;
        }
        // Without a runtime its VM has ended, and its time will be over.
        if let Ok(runtime) = Handle::try_current() {
            let (workspaces, id) = (self.workspaces.clone(), self.id.clone());
            runtime.spawn(async move {
                if let Ok(workspace) = workspaces.get(&id).await
                    && let Err(error) = workspace.delete().await
                {
                    tracing::warn!(%error, id, "cannot delete the workspace of a tool");
                }
            });
        }
    }
}

/// Returns the command of a plan.
pub(super) fn command(plan: &mut Plan, secrets: &[(String, Secret)]) -> Command {
    let mut command = Command::from_argv(plan.argv.iter())
        .current_dir(&plan.working_directory)
        .timeout(plan.timeout)
        .max_output(plan.max_output)
        .on_overflow(OverflowPolicy::HeadAndTail);
    command = match &plan.image.user {
        Some(user) => command.user(user),
        None => command.create_current_dir(),
    };
    if let Some(stdin) = plan.stdin.take() {
        command = command.stdin(stdin);
    }
    for (variable, secret) in secrets {
        command = command.secret_env(variable, secret);
    }
    command
}

/// Returns the result of a task. It fails only if that panicked or the runtime shuts down.
fn joined<T>(task: Option<Result<Result<T, Error>, tokio::task::JoinError>>) -> Result<(), Error> {
    match task {
        None => Ok(()),
        Some(Ok(result)) => result.map(drop),
        Some(Err(error)) => Err(Error::host("write a file")(std::io::Error::other(error))),
    }
}

async fn in_time<T>(ending: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    let ended = tokio::time::timeout(END_TIMEOUT, ending).await;
    ended.unwrap_or(Err(Error::Unresponsive(END_TIMEOUT)))
}
