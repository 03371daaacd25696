use std::{collections::BTreeMap, fmt};

use serde::{Deserialize, Serialize};

use super::Retention;

/// What a model asks for. It names images, grants and secrets, and cannot describe them.
///
/// All of it is checked by the [`Tool`](super::Tool) before anything is started. Fields that
/// are not known are refused.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolRequest {
    /// The language of the code, which the policy maps to an image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub language: Option<String>,
    /// The name of an image of the policy, in place of a language.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// Files to write before the command runs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<ToolFile>,
    /// The program and its arguments. No shell interprets them.
    pub command: Vec<String>,
    /// Text for the command's standard input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stdin: Option<String>,
    /// The working directory; by default the first root of the policy, `/work`. It is made if
    /// it is not there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub working_directory: Option<String>,
    /// How long the command may run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<u64>,
    /// How many bytes of each output, and of all output files together, are returned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_output_bytes: Option<u64>,
    /// What it may reach; nothing by default.
    #[serde(default)]
    pub network: NetworkRequest,
    /// Secrets by environment variable.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub secrets: BTreeMap<String, SecretReference>,
    /// Files to return after the command.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outputs: Vec<String>,
    /// What becomes of the sandbox afterwards.
    pub state: StateRequest,
}

/// A file to write.
///
/// Its [`Debug`] shows the length of the content only.
#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolFile {
    /// Its path in the guest, below one of the roots of the policy.
    pub path: String,
    /// Its content, as text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
    /// Its content in Base64, in place of text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_base64: Option<String>,
    /// Its permissions in octal digits; `644` by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
}

/// What a command may reach.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NetworkRequest {
    /// Whether it may reach anything.
    pub mode: NetworkMode,
    /// The names of grants of the policy, all of whose hosts it wants to reach.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub grants: Vec<String>,
    /// Single hosts that it wants to reach. A grant of the caller must contain each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allow: Vec<Destination>,
}

/// Whether a command may reach anything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum NetworkMode {
    /// Nothing.
    #[default]
    None,
    /// What the request names, and the policy grants.
    #[serde(alias = "bridge")]
    Grants,
}

/// A host and a port.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Destination {
    /// The name of the host, or its address.
    pub host: String,
    /// The TCP port.
    pub port: u16,
}

/// A secret by its name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SecretReference {
    /// The name of the secret in the policy.
    #[serde(rename = "ref")]
    pub name: String,
}

/// What becomes of the sandbox.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StateRequest {
    /// What is kept.
    pub retention: Retention,
    /// How long it is kept: `cold` and `snapshot` must say it. With `destroy` it limits how
    /// long the whole call takes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl_seconds: Option<u64>,
    /// The name of the snapshot; `tool` by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

impl ToolRequest {
    /// Returns a request to run a command in an image and to leave nothing.
    pub fn new(
        image: impl Into<String>,
        command: impl IntoIterator<Item = impl Into<String>>,
    ) -> Self {
        Self {
            language: None,
            image: Some(image.into()),
            files: Vec::new(),
            command: command.into_iter().map(Into::into).collect(),
            stdin: None,
            working_directory: None,
            timeout_seconds: None,
            max_output_bytes: None,
            network: NetworkRequest::default(),
            secrets: BTreeMap::new(),
            outputs: Vec::new(),
            state: StateRequest {
                retention: Retention::Destroy,
                ttl_seconds: None,
                name: None,
            },
        }
    }

    /// Reads a request. [`Tool::run_json`](super::Tool::run_json) does this, too, and limits
    /// the size.
    ///
    /// # Errors
    /// If it is not JSON, or not such a request.
    pub fn from_json(json: &[u8]) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(json)
    }
}

impl ToolFile {
    /// Returns a file with this text.
    pub fn text(path: impl Into<String>, content: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            content: Some(content.into()),
            ..Self::default()
        }
    }
}

impl fmt::Debug for ToolFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let length = |text: &Option<String>| text.as_ref().map(String::len);
        f.debug_struct("ToolFile")
            .field("path", &self.path)
            .field("content_length", &length(&self.content))
            .field("content_base64_length", &length(&self.content_base64))
            .field("mode", &self.mode)
            .finish()
    }
}
