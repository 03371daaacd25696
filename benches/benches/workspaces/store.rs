use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use tempfile::TempDir;
use tokio::{
    io::AsyncReadExt,
    net::{UnixListener, UnixStream},
};
use vmcell::{
    LinkKind, Vm, VmBuilder,
    disk::image::{OpenOptions, create_child},
    workspace::{Keeper, NewWorkspace, Workspace, Workspaces},
};

/// Workspaces in a folder of their own.
pub(crate) struct Store {
    /// Those that run in this program.
    pub(crate) resident: Workspaces,
    /// The same, which run in a keeper: this program, with an argument.
    pub(crate) kept: Workspaces,
    root: TempDir,
    /// What keepers are connected to, so that they end with this program.
    _alive: UnixListener,
}

/// The argument of a keeper. The next one is a socket of the program that started it.
const KEEP: &str = "--keep-workspace";

/// Returns whether this program was started as a keeper.
pub(crate) fn is_keeper() -> bool {
    std::env::args().nth(1).as_deref() == Some(KEEP)
}

/// Keeps a workspace running until it ends, or the program that has started it does.
pub(crate) async fn keep() -> Result<()> {
    let socket = std::env::args().nth(2).context("no socket")?;
    let mut alive = UnixStream::connect(socket).await?;
    let stop = async {
        // Nothing is ever sent.
        let _ = alive.read_u8().await;
    };
    Ok(Keeper::keep(stop).await?)
}

impl Store {
    pub(crate) fn new() -> Result<Self> {
        let root = tempfile::tempdir()?;
        let socket = root.path().join("alive");
        let alive = UnixListener::bind(&socket)?;
        let keeper = Keeper::new(std::env::current_exe()?).arg(KEEP).arg(socket);
        let resident = Workspaces::at(root.path())?;
        Ok(Self {
            kept: resident.clone().keeper(keeper),
            resident,
            root,
            _alive: alive,
        })
    }

    /// A path beside the folder of the workspaces.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    /// The folder that has one for each workspace.
    pub(crate) fn folder(&self) -> PathBuf {
        self.path("workspaces")
    }

    /// Creates a workspace that is stopped.
    pub(crate) async fn stopped(&self, image: &Path) -> Result<Workspace> {
        let workspace = self.resident.create(NewWorkspace::new(image)).await?;
        workspace.stop().await?;
        Ok(workspace)
    }

    /// Creates a disk as a workspace has it, with its baseline and a layer above that.
    pub(crate) fn plain_disk(&self, name: &str, image: &Path) -> Result<PathBuf> {
        let [baseline, top] =
            ["baseline", "top"].map(|layer| self.path(&format!("{name}-{layer}")));
        let options = OpenOptions::new().allow_backing(parent(image));
        create_child(image, &baseline, OpenOptions::new())?;
        create_child(&baseline, &top, options.allow_backing(self.root.path()))?;
        Ok(top)
    }

    /// The VM of a workspace, without a disk.
    pub(crate) fn plain_vm(&self, image: &Path) -> VmBuilder {
        Vm::builder()
            .link(LinkKind::Serial)
            .allow_backing(self.root.path())
            .allow_backing(parent(image))
    }
}

fn parent(path: &Path) -> &Path {
    path.parent().unwrap_or(path)
}
