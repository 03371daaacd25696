//! What `docs/mcp.md` tells a new user to do.

use std::{env, fs, path::Path, process::Command};

use serde_json::Value;

use super::official_client::client;

/// Returns the first block of a language after a heading.
fn block<'a>(text: &'a str, heading: &str, language: &str) -> &'a str {
    let start = format!("\n```{language}\n");
    let (_, section) = text.split_once(&format!("\n## {heading}\n")).unwrap();
    let (_, block) = section.split_once(&start).unwrap();
    block.split_once("\n```\n").unwrap().0
}

#[test]
fn the_configuration_and_the_script_mend_a_project() {
    let text = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/mcp.md");
    let text = fs::read_to_string(text).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let state = tempfile::tempdir().unwrap();
    let mut configuration: Value = serde_json::from_str(block(&text, "Clients", "json")).unwrap();
    // The client passes few variables to the server.
    let server = &mut configuration["mcpServers"]["vmcell"];
    server["env"] = serde_json::json!({ "XDG_STATE_HOME": state.path() });
    let file = |name: &str| folder.path().join(name);
    fs::write(file("mcp.json"), configuration.to_string()).unwrap();
    fs::write(
        file("project.py"),
        block(&text, "A project, mended", "python"),
    )
    .unwrap();

    let programs = Path::new(env!("CARGO_BIN_EXE_vmcell")).parent().unwrap();
    let mut path = programs.as_os_str().to_owned();
    path.push(":");
    path.push(env::var_os("PATH").unwrap());
    let output = Command::new("python3")
        .arg("project.py")
        .current_dir(folder.path())
        .env("PATH", path)
        .env("PYTHONPATH", client())
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{printed}{errors}");
    let expected = "exit code 1 2 + 3 is not -1\n\necho $(($1 - $2))\n\nexit code 0\n";
    assert_eq!(printed, expected, "{errors}");
    let diff = fs::read_to_string(file("project.diff")).unwrap();
    assert!(diff.contains("\n+echo $(($1 + $2))\n"), "{diff}");
}
