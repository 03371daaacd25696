//! The official client of the protocol, which is written in Python.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

/// Returns where `make vsock` has installed it.
pub(super) fn client() -> PathBuf {
    let cache = env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let home = env::var_os("HOME").unwrap_or_default();
    let cache = cache.unwrap_or_else(|| Path::new(&home).join(".cache"));
    let tools = fs::read_dir(cache.join("vmcell/tools"))
        .into_iter()
        .flatten();
    let mut paths = tools.map(|tool| tool.unwrap().path());
    let is_client = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("mcp-client-")
    };
    let found = paths.find(is_client);
    found.expect("`make vsock` installs what the tests need, and this client")
}

#[test]
fn every_tool_of_every_profile_answers_as_it_says() {
    let state = tempfile::tempdir().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let script = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/cli/mcp/official_client.py"
    );
    let output = Command::new("python3")
        .args([script, env!("CARGO_BIN_EXE_vmcell")])
        .arg(folder.path().canonicalize().unwrap())
        .env("PYTHONPATH", client())
        .env("XDG_STATE_HOME", state.path())
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{printed}{errors}");
    assert_eq!(printed.lines().count(), 6, "{printed}");
}
