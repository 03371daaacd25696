use std::collections::BTreeMap;

use oci_spec::image::Config;
use serde::{Deserialize, Serialize};

/// How programs run in an environment, unless somebody says otherwise.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Defaults {
    /// The user, as a name or a number, with a group if it follows a colon. None is root.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// Environment variables, as `NAME=VALUE`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<String>,
    /// The working directory. None is `/`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub working_dir: Option<String>,
    /// The program, and its first arguments.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub entrypoint: Vec<String>,
    /// The arguments that a command replaces, or a program with its arguments if there is no
    /// entrypoint.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// Ports on which its programs listen, as `PORT/PROTOCOL`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub exposed_ports: Vec<String>,
    /// Labels.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
}

impl Defaults {
    pub(super) fn of(config: &Config) -> Self {
        let text = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
        let list = |list: &Option<Vec<String>>| list.clone().unwrap_or_default();
        let mut exposed_ports = list(config.exposed_ports());
        exposed_ports.sort();
        let labels = config.labels().iter().flatten();
        Self {
            user: text(config.user()),
            env: list(config.env()),
            working_dir: text(config.working_dir()),
            entrypoint: list(config.entrypoint()),
            command: list(config.cmd()),
            exposed_ports,
            labels: labels
                .map(|(key, value)| (key.clone(), value.clone()))
                .collect(),
        }
    }

    /// Returns the environment variables: names and values.
    pub fn variables(&self) -> impl Iterator<Item = (&str, &str)> {
        self.env.iter().filter_map(|line| line.split_once('='))
    }

    /// Returns the program and its arguments: these, or the default ones.
    pub fn command_line(&self, command: &[String]) -> Vec<String> {
        let arguments = match command.is_empty() {
            true => &self.command,
            false => command,
        };
        [&self.entrypoint[..], arguments].concat()
    }
}
