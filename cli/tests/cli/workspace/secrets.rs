//! Secrets that workspaces keep, and where their values are not.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::json;

use super::{Store, text_of};
use crate::vmcell::{Ended, Vmcell};

/// A value of each source.
const LITERAL: &str = "canary/literal+7f3a9c";
const FILE: &str = "canary/file+\"b21d\" 55";
const VARIABLE: &str = "canary/variable+e04c";
const PIPED: &str = "canary/piped+91aa0b";

const VALUES: [&str; 4] = [LITERAL, FILE, VARIABLE, PIPED];

impl Store {
    fn secret<'a>(&self, arguments: impl IntoIterator<Item = &'a str>) -> Vmcell {
        let arguments = ["secret"].into_iter().chain(arguments);
        Vmcell::new(arguments).env("XDG_STATE_HOME", self.state.path())
    }
}

#[track_caller]
fn assert_hidden(text: &str) {
    for value in VALUES {
        assert!(!text.contains(value), "{value} is in {text}");
    }
}

#[track_caller]
fn assert_succeeded(ended: &Ended) -> &str {
    assert_eq!(ended.code(), 0, "{ended:?}");
    assert_hidden(&ended.stderr);
    assert_hidden(ended.stdout());
    ended.stdout()
}

/// Returns the files below a folder that contain a value.
fn files_with_values(folder: &Path) -> Vec<PathBuf> {
    let values = VALUES.iter().flat_map(|value| ["-e", value]);
    let found = Command::new("grep")
        .args(["-rlaF"])
        .args(values)
        .arg(folder)
        .output();
    let text = String::from_utf8(found.unwrap().stdout).unwrap();
    let mut files: Vec<_> = text.lines().map(PathBuf::from).collect();
    files.sort();
    files
}

/// Returns the arguments and the environments of all processes of this machine.
fn processes() -> String {
    let mut all = String::new();
    for entry in fs::read_dir("/proc").unwrap() {
        let process = entry.unwrap().path();
        for file in ["cmdline", "environ"] {
            let bytes = fs::read(process.join(file)).unwrap_or_default();
            all += &String::from_utf8_lossy(&bytes);
        }
    }
    all
}

#[test]
fn values_are_in_the_environment_of_the_program_and_nowhere_else() {
    let store = Store::new();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("value");
    fs::write(&path, format!("{FILE}\n")).unwrap();
    let from_file = format!("file={}", text_of(&path));
    let literal = format!("literal={LITERAL}");
    let id = store.create(["--secret", &literal, "--secret-file", &from_file]);
    let set = store.secret(["set", &id, "variable", "--from-env", "CANARY"]);
    assert_succeeded(&set.env("CANARY", VARIABLE).finish());
    let mut set = store.secret(["set", &id, "piped", "--json"]).start();
    set.write_all_and_close(format!("{PIPED}\n").into_bytes())
        .join()
        .unwrap();
    let set = set.finish();
    assert_succeeded(&set);
    assert_eq!(set.json()["secrets"][0]["name"], "piped");

    // Names and sources, wherever it is shown.
    let secrets = json!([
        { "name": "file", "source": "file" },
        { "name": "literal", "source": "literal" },
        { "name": "piped", "source": "file" },
        { "name": "variable", "source": "environment" },
    ]);
    let listed = store.secret(["list", &id, "--json"]).finish();
    assert_eq!(listed.json()["secrets"], secrets);
    assert_eq!(store.json(["status", &id])["secrets"], secrets);
    let shown = store.text(["status", &id]);
    assert!(shown.contains("literal (literal)"), "{shown}");

    // A command has those that it was granted, and traces show none of them.
    let line = "for value in \"$A\" \"$file\" \"$C\" \"$D\"; do echo \"$value\"; \
                printf %s \"$value\" | base64; done; echo ${variable-none}";
    let grants = ["literal=A", "file", "variable=C", "piped=D"];
    let grants = grants.iter().flat_map(|grant| ["--secret-env", grant]);
    let exec = ["exec", &id].into_iter().chain(grants);
    let exec = store.cli(exec.chain(["--", "sh", "-c", line]));
    let ended = exec.env("VMCELL_LOG", "trace").finish();
    let printed = assert_succeeded(&ended);
    let lengths: Vec<_> = printed.lines().step_by(2).map(str::len).collect();
    assert_eq!(
        lengths,
        [LITERAL, FILE, VARIABLE, PIPED, "none"].map(str::len)
    );
    assert!(printed.lines().take(8).all(|line| line.contains("*****")));
    assert!(printed.ends_with("\nnone\n"), "{printed}");
    let missing = ["exec", &id, "--secret-env", "other", "--", "true"];
    store
        .cli(missing)
        .finish()
        .assert_failed(125, "keeps no secret \"other\"");

    // So do services and shells.
    let line = "echo $TOKEN; echo up; exec sleep 1000";
    let service = [
        "service",
        "start",
        &id,
        "web",
        "--secret-env",
        "literal=TOKEN",
    ];
    let ready = ["--ready", "log:^up", "--", "sh", "-c", line];
    store.text(service.into_iter().chain(ready));
    let log = store.text(["service", "logs", &id, "web"]);
    assert_eq!(log, format!("{}\nup\n", "*".repeat(LITERAL.len())));
    let open = [
        "shell",
        "open",
        &id,
        "--secret-env",
        "file=TOKEN",
        "--id-only",
    ];
    let shell = store.text(open);
    let shell = shell.trim_end();
    let input = "echo \"<$TOKEN>\"; exit";
    store.text(["shell", "write", &id, shell, "--input", input]);
    let read = [
        "shell",
        "read",
        &id,
        shell,
        "--plain",
        "--wait-for-idle-ms",
        "300",
    ];
    let ended = store.cli(read).finish();
    assert!(assert_succeeded(&ended).contains(&format!("<{}>", "*".repeat(FILE.len()))));
    assert_hidden(&processes());

    // When they have ended, it is in the files of the secrets only, and nowhere in memory.
    let log = store.text(["logs", &id]);
    assert_hidden(&log);
    // What they have printed is kept as long as they are listed.
    store.text(["service", "stop", &id, "web"]);
    let removed = Vmcell::new(["service", "rm", &id, "web"]);
    assert_succeeded(&removed.env("XDG_STATE_HOME", store.state.path()).finish());
    store.text(["shell", "close", &id, shell]);
    store.text(["snapshot", "create", &id, "later"]);
    store.text(["pause", &id]);
    let kept = store
        .state
        .path()
        .join("vmcell/workspaces")
        .join(&id)
        .join("secrets");
    let names = [
        "file=file",
        "literal=literal",
        "piped=file",
        "variable=environment",
    ];
    let expected = names.map(|name| kept.join(name));
    assert_eq!(files_with_values(store.state.path()), expected);
    for file in &expected {
        let mode = fs::metadata(file).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
    assert_succeeded(&store.secret(["rm", &id, "literal"]).finish());
    store
        .secret(["rm", &id, "literal"])
        .finish()
        .assert_failed(125, "keeps no secret");
    store.text(["delete", &id]);
    assert_eq!(files_with_values(store.state.path()), [] as [PathBuf; 0]);
    store.assert_empty();
}
