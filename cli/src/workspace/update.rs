//! `vmcell workspace update`: changes the name and the labels of a workspace.

use anyhow::ensure;
use vmcell::workspace::WorkspaceUpdate;

use super::{arguments::UpdateArguments, find, info, status};
use crate::failure::print_json;

pub(super) async fn update(arguments: UpdateArguments, json: bool) -> anyhow::Result<u8> {
    let id = arguments.workspace.id.clone();
    let update = arguments.into_update()?;
    let info = find(&id).await?.update(update).await?;
    match json {
        true => {
            print_json(&info::as_json(&info));
            Ok(0)
        }
        false => status::print(&info),
    }
}

impl UpdateArguments {
    fn into_update(self) -> anyhow::Result<WorkspaceUpdate> {
        let changes_labels =
            self.clear_labels || !self.labels.is_empty() || !self.cleared_labels.is_empty();
        ensure!(
            changes_labels || self.clear_name || self.name.is_some(),
            "nothing to change: use --name, --clear-name, --label, --clear-label or --clear-labels"
        );
        let mut update = WorkspaceUpdate::new();
        if let Some(name) = self.name {
            update = update.name(name);
        }
        if self.clear_name {
            update = update.clear_name();
        }
        if self.clear_labels {
            update = update.clear_labels();
        }
        for key in self.cleared_labels {
            update = update.clear_label(key);
        }
        for label in self.labels {
            update = update.label(label.key, label.value);
        }
        Ok(update)
    }
}
