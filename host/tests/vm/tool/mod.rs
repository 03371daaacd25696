//! The tool for language models: each line M1 to M11 of its contract.

mod failures;
mod retention;
mod runs;

use serde_json::{Value, json};
use tempfile::TempDir;
use vmcell::tool::{
    CallerGrants, Retention, SecretGrant, Tool, ToolAnswer, ToolBuilder, ToolImage, ToolPolicy,
};

use crate::{base, builder_with_link};

/// A tool with a folder of its own.
struct Fixture {
    tool: Tool,
    folder: TempDir,
}

/// A policy with the image `small`, which is the environment `base`.
fn policy() -> ToolPolicy {
    let image = ToolImage {
        memory_mib: Some(128),
        ..ToolImage::environment("base")
    };
    let mut policy = ToolPolicy::new()
        .image("small", image)
        .language("sh", "small")
        .secret("token", SecretGrant::application())
        .caller("default", CallerGrants::default().secret("token"));
    policy.state.retention = Retention::ALL.into_iter().collect();
    policy.limits.timeout_seconds = 600;
    policy.limits.default_timeout_seconds = 240;
    policy
}

impl Fixture {
    fn new(policy: ToolPolicy) -> Self {
        Self::with(policy, |tool| tool)
    }

    fn with(policy: ToolPolicy, change: impl FnOnce(ToolBuilder) -> ToolBuilder) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let tool = Tool::builder(policy)
            .vm(builder_with_link())
            .state_folder(folder.path())
            .environments(|name| match name {
                "base" => Ok(base()),
                _ => Err("there is no such environment"),
            });
        let tool = change(tool).build().unwrap();
        Self { tool, folder }
    }

    /// Runs a request, which destroys its sandbox unless it says otherwise, and returns the
    /// whole answer.
    async fn run(&self, mut request: Value) -> Value {
        if request.get("state").is_none() {
            request["state"] = json!({ "retention": "destroy" });
        }
        if request.get("language").is_none() {
            request["image"] = "small".into();
        }
        let request = serde_json::to_vec(&request).unwrap();
        let outcome = self.tool.run_json("default", &request).await;
        ToolAnswer::new(&outcome).as_json().clone()
    }

    /// Returns the receipt of an answer.
    fn receipt(&self, answer: &Value) -> Value {
        let id = answer["audit_id"].as_str().unwrap();
        let found = self.tool.receipts().find(id).unwrap();
        found.unwrap_or_else(|| panic!("{answer}")).receipt
    }

    /// Returns how many receipts there are, all of which are right.
    fn verified(&self) -> u64 {
        let verified = self.tool.receipts().verify(None).unwrap();
        assert!(verified.is_valid(), "{verified:?}");
        verified.receipts
    }

    /// Returns the names of the folders of workspaces.
    fn kept(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.folder.path().join("workspaces")).unwrap();
        let entries = entries.map(|entry| entry.unwrap());
        let folders = entries.filter(|entry| entry.file_type().unwrap().is_dir());
        let mut names: Vec<_> = folders
            .map(|entry| entry.file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}
