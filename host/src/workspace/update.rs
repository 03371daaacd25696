use std::collections::BTreeMap;

use super::id::{check_label, check_name};
use crate::error::Error;

/// A change of a workspace's name and labels.
///
/// ```
/// use vmcell::workspace::WorkspaceUpdate;
///
/// let update = WorkspaceUpdate::new().name("build").clear_label("team");
/// ```
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct WorkspaceUpdate {
    name: NameUpdate,
    clear_labels: bool,
    labels: BTreeMap<String, Option<String>>,
}

#[derive(Clone, Debug, Default)]
enum NameUpdate {
    #[default]
    Keep,
    Clear,
    Set(String),
}

impl WorkspaceUpdate {
    /// Changes nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the name.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = NameUpdate::Set(name.into());
        self
    }

    /// Removes the name.
    pub fn clear_name(mut self) -> Self {
        self.name = NameUpdate::Clear;
        self
    }

    /// Sets a label.
    pub fn label(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.labels.insert(key.into(), Some(value.into()));
        self
    }

    /// Removes a label.
    pub fn clear_label(mut self, key: impl Into<String>) -> Self {
        self.labels.insert(key.into(), None);
        self
    }

    /// Removes all labels but those that this update sets.
    pub fn clear_labels(mut self) -> Self {
        self.clear_labels = true;
        self
    }

    pub(super) fn check(&self) -> Result<(), Error> {
        if let NameUpdate::Set(name) = &self.name {
            check_name("name", name)?;
        }
        for (key, value) in &self.labels {
            check_label(key, value.as_deref().unwrap_or_default())?;
        }
        Ok(())
    }

    /// Returns the new name, if it sets one.
    pub(super) fn new_name(&self) -> Option<&str> {
        match &self.name {
            NameUpdate::Set(name) => Some(name),
            NameUpdate::Keep | NameUpdate::Clear => None,
        }
    }

    pub(super) fn apply_to(self, name: &mut Option<String>, labels: &mut BTreeMap<String, String>) {
        match self.name {
            NameUpdate::Keep => {}
            NameUpdate::Clear => *name = None,
            NameUpdate::Set(new) => *name = Some(new),
        }
        if self.clear_labels {
            labels.clear();
        }
        for (key, value) in self.labels {
            match value {
                Some(value) => labels.insert(key, value),
                None => labels.remove(&key),
            };
        }
    }
}
