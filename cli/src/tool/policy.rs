//! Which policy `vmcell tool` uses.

use std::{
    env,
    path::{Path, PathBuf},
};

use vmcell::tool::ToolPolicy;

use super::arguments::PolicyOptions;

/// The policy of users who have none.
const DEFAULT: &str = include_str!("default_policy.toml");

/// Reads the policy that the options name, that of the user, or the default.
pub(super) fn read(options: &PolicyOptions) -> anyhow::Result<ToolPolicy> {
    let own = own_file().filter(|path| path.exists());
    Ok(match options.policy.as_ref().or(own.as_ref()) {
        Some(path) => ToolPolicy::read(path)?,
        None => ToolPolicy::from_toml(DEFAULT)?,
    })
}

/// Returns where the policy of the user is, if there is one.
fn own_file() -> Option<PathBuf> {
    let configuration = match env::var_os("XDG_CONFIG_HOME") {
        Some(folder) if Path::new(&folder).is_absolute() => PathBuf::from(folder),
        _ => PathBuf::from(env::var_os("HOME")?).join(".config"),
    };
    Some(configuration.join("vmcell/tool.toml"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_policy_has_no_network_and_no_secrets() {
        let policy = ToolPolicy::from_toml(DEFAULT).unwrap();
        assert!(policy.network.is_empty() && policy.secrets.is_empty());
        assert!(policy.callers.is_empty() && !policy.state.with_secrets);
        assert_eq!(policy.images.len(), 2);
    }
}
