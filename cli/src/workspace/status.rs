//! `vmcell workspace status`: shows one workspace.

use std::io::Write;

use vmcell::workspace::WorkspaceInfo;
use vmcell_cli::show::SafeStdout;

use super::{find, info};
use crate::failure::print_json;

pub(super) async fn status(id: &str, json: bool) -> anyhow::Result<u8> {
    let workspace = find(id).await?.info().await?;
    if json {
        print_json(&info::as_json(&workspace));
        return Ok(0);
    }
    print(&workspace)
}

/// Prints everything about a workspace.
pub(super) fn print(workspace: &WorkspaceInfo) -> anyhow::Result<u8> {
    print_properties(&info::properties(workspace))
}

/// Prints properties with their names.
pub(crate) fn print_properties(properties: &[(&str, String)]) -> anyhow::Result<u8> {
    let mut out = SafeStdout::new();
    let mut properties = properties.iter();
    let written = properties.try_for_each(|(key, value)| {
        write!(out, "{key:12} ")?;
        out.untrusted_text(value.as_bytes(), "")?;
        writeln!(out)
    });
    out.finish(written)
}
