use vmcell::{
    Error,
    workspace::{BASELINE, Workspace, Workspaces},
};

use crate::{new, random::Random};

/// What is done with workspaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Task {
    Create,
    CreateStopped,
    CreateWarm,
    Start,
    Stop,
    Pause,
    Resume,
    Snapshot,
    Reset,
    Fork,
    Delete,
    Diff,
}

impl Task {
    pub(crate) const ALL: [Self; 12] = [
        Self::Create,
        Self::CreateStopped,
        Self::CreateWarm,
        Self::Start,
        Self::Stop,
        Self::Pause,
        Self::Resume,
        Self::Snapshot,
        Self::Reset,
        Self::Fork,
        Self::Delete,
        Self::Diff,
    ];

    pub(crate) fn name(self) -> String {
        format!("{self:?}")
    }

    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|task| task.name() == name)
    }

    /// Carries it out. Prints `doing` and its name when it begins, after what has to be
    /// done before, and `forget` if it may take away what was synced.
    pub(crate) async fn run(
        self,
        workspaces: &Workspaces,
        workspace: &Workspace,
        random: &mut Random,
    ) -> Result<(), Error> {
        match self {
            Self::Start | Self::Resume => workspace.stop().await?,
            Self::Stop | Self::Pause | Self::Snapshot => drop(workspace.start().await?),
            _ => {}
        }
        if self == Self::Resume {
            workspace.start().await?;
            workspace.pause().await?;
        }
        if matches!(self, Self::Reset | Self::Delete) {
            println!("forget");
        }
        println!("doing {}", self.name());
        match self {
            Self::Create => workspaces.create(new()).await?.delete().await,
            Self::CreateStopped => {
                let created = workspaces.create_stopped(new()).await?;
                created.start().await?;
                created.delete().await
            }
            Self::CreateWarm => workspaces.create(new().warm(true)).await?.delete().await,
            Self::Start | Self::Resume => workspace.start().await.map(drop),
            Self::Stop => workspace.stop().await,
            Self::Pause => workspace.pause().await,
            Self::Snapshot => {
                let name = format!("s{}", random.below(5));
                match workspace.delete_snapshot(&name).await {
                    Err(error) if error.code() != "no-such-snapshot" => return Err(error),
                    _ => {}
                }
                match workspace.snapshot(&name).await {
                    // A chain of layers has its limit.
                    Err(error) if error.code() != "too-many-layers" => Err(error),
                    _ => Ok(()),
                }
            }
            Self::Reset => workspace.reset(BASELINE).await.map(drop),
            Self::Fork => {
                let fork = workspace.fork(BASELINE, |new| new).await?;
                fork.start().await?;
                fork.delete().await
            }
            Self::Delete => workspace.clone().delete().await,
            Self::Diff => workspace.diff(BASELINE).await.map(drop),
        }
    }
}
