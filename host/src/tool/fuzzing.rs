//! What the fuzz target `state_files` reaches.

use super::{
    ToolPolicy, ToolRequest,
    audit::Audit,
    validation::{Refusal, validate},
};
use crate::printable;

/// Decides about a request, and checks that what is allowed is within the policy.
///
/// # Errors
/// What the model or the application is told.
pub fn decide(policy: &ToolPolicy, caller: &str, request: &[u8]) -> Result<(), String> {
    // As `Tool::run_json` does.
    let shown = |error: serde_json::Error| printable(error.to_string().as_bytes()).into_owned();
    let request = ToolRequest::from_json(request).map_err(shown)?;
    let mut audit = Audit::new("run_1".to_owned(), caller);
    let decided = validate(request, policy, &mut audit);
    for decision in &audit.decisions {
        let texts = [&decision.name, &decision.reason];
        for text in texts {
            assert!(!text.chars().any(char::is_control), "{text:?}");
        }
    }
    let plan = match decided {
        Ok(plan) => plan,
        Err(Refusal::Invalid(reason) | Refusal::Denied(reason)) => {
            assert!(audit.decisions.iter().any(|decision| !decision.allowed));
            return Err(reason);
        }
    };
    assert!(audit.decisions.iter().all(|decision| decision.allowed));
    let limits = &policy.limits;
    let written = plan.files.iter().map(|file| &file.path);
    for path in written
        .chain(&plan.outputs)
        .chain([&plan.working_directory])
    {
        let mut parts = path.split('/').skip(1);
        assert!(path.starts_with('/') && parts.all(|part| !["", ".", ".."].contains(&part)));
        let is_below = |root: &String| path == root || path.starts_with(&format!("{root}/"));
        assert!(limits.roots.iter().any(is_below), "{path:?}");
    }
    let bytes: usize = plan.files.iter().map(|file| file.content.len()).sum();
    assert!(bytes as u64 <= limits.total_bytes);
    assert!(plan.timeout.as_secs() <= limits.timeout_seconds);
    assert!(plan.max_output as u64 <= limits.output_bytes);
    assert!(plan.memory_mib <= limits.memory_mib);
    assert!(policy.images.contains_key(&plan.image_name));
    assert!(
        plan.secrets
            .iter()
            .all(|(_, name)| policy.secrets.contains_key(name))
    );
    assert!(
        plan.network_grants
            .iter()
            .all(|name| policy.network.contains_key(name))
    );
    assert!(plan.network.is_off() || !plan.network_grants.is_empty());
    Ok(())
}
