//! Who uses the images of environments.

use std::path::{Path, PathBuf};

use vmcell::{Template, workspace::Workspaces};

/// The images that workspaces, kept VMs and templates were made from.
pub(super) struct ImageUsers {
    workspaces: Vec<(String, PathBuf)>,
    templates: Vec<PathBuf>,
}

impl ImageUsers {
    pub(super) async fn find() -> anyhow::Result<Self> {
        let mut workspaces = Vec::new();
        let stores = [
            Workspaces::open_existing()?,
            Workspaces::open_existing_apart("vms")?,
        ];
        for store in stores.into_iter().flatten() {
            let infos = store.list().await?.into_iter();
            workspaces.extend(infos.map(|info| (info.id, info.image)));
        }
        let templates = Template::list().await?.into_iter();
        Ok(Self {
            workspaces,
            templates: templates.filter_map(|template| template.image).collect(),
        })
    }

    /// Returns the ids of the workspaces and kept VMs of an image.
    pub(super) fn of(&self, image: &Path) -> Vec<&str> {
        let users = self.workspaces.iter().filter(|(_, used)| used == image);
        users.map(|(id, _)| id.as_str()).collect()
    }

    /// Returns all images that something needs.
    pub(super) fn images(&self) -> Vec<PathBuf> {
        let workspaces = self.workspaces.iter().map(|(_, image)| image);
        workspaces.chain(&self.templates).cloned().collect()
    }
}
