//! `vmcell tool` and `vmcell receipt`, with the request and the policy of their page.

use std::{fs, path::Path};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::vmcell::{Ended, Vmcell};

/// State, configuration and the files of one test.
struct Fixture {
    folder: TempDir,
}

impl Fixture {
    fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
        }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn run<'a>(&self, arguments: impl IntoIterator<Item = &'a str>) -> Ended {
        self.command(arguments).finish()
    }

    fn command<'a>(&self, arguments: impl IntoIterator<Item = &'a str>) -> Vmcell {
        Vmcell::new(arguments)
            .env("XDG_STATE_HOME", self.path())
            .env("XDG_CONFIG_HOME", self.path())
            .current_dir(self.path())
    }

    /// Writes a file for the program.
    fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        fs::write(self.path().join(name), content).unwrap();
    }

    fn log(&self) -> std::path::PathBuf {
        self.path().join("vmcell/receipts/log")
    }
}

/// Returns the first code block of a language on the page about the tool.
fn block(language: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/tool.md");
    let page = fs::read_to_string(path).unwrap();
    let (_, rest) = page.split_once(&format!("```{language}\n")).unwrap();
    rest.split_once("\n```").unwrap().0.to_owned()
}

#[test]
fn the_request_and_the_policy_of_the_page_run_and_the_receipt_verifies() {
    let fixture = Fixture::new();
    fixture.write("request.json", block("json"));
    fixture.write("policy.toml", block("toml"));
    let key = fixture.run(["receipt", "key"]);
    assert_eq!(key.stdout().trim_end().len(), 64, "{key:?}");
    let ended = fixture.run(["tool", "run", "request.json", "--policy", "policy.toml"]);
    let answer = ended.json();
    assert_eq!(ended.code(), 0, "{answer:#}");
    assert_eq!(
        (&answer["stdout"], &answer["exit_code"]),
        (&json!("hello\n"), &json!(0))
    );
    assert_eq!(
        (&answer["failure"], &answer["retention"]),
        (&Value::Null, &json!("destroy"))
    );

    let id = answer["audit_id"].as_str().unwrap();
    let shown = fixture.run(["receipt", "show", id]).json();
    assert_eq!(
        shown["receipt"]["command"],
        json!(["python3", "/work/main.py"])
    );
    assert_eq!(shown["digest"], answer["receipt"]["digest"]);
    let list = fixture.run(["receipt", "list", "--json"]).json();
    assert_eq!(list["receipts"][0]["audit_id"], id);
    let verified = fixture.run(["receipt", "verify", "--json"]);
    let outcome = verified.json();
    assert_eq!(
        (verified.code(), &outcome["signed"]),
        (0, &json!(1)),
        "{outcome:#}"
    );

    // A byte is changed.
    let mut log = fs::read(fixture.log()).unwrap();
    let at = log
        .windows(7)
        .position(|bytes| bytes == b"main.py")
        .unwrap();
    log[at] = b'M';
    fs::write(fixture.log(), log).unwrap();
    let verified = fixture.run(["receipt", "verify"]);
    assert_eq!(verified.code(), 1, "{verified:?}");
    assert!(
        verified.stderr.contains("line 1 was changed"),
        "{verified:?}"
    );
}

#[test]
fn requests_come_from_standard_input_and_refusals_are_recorded() {
    let fixture = Fixture::new();
    let run = |request: String| {
        let command = fixture.command(["tool", "run"]);
        let mut running = command.env("VMCELL_LOG", "vmcell::audit=info").start();
        let writing = running.write_all_and_close(request.into_bytes());
        let ended = running.finish();
        writing.join().unwrap();
        ended
    };
    let request = json!({
        "image": "base", "command": ["sh", "-c", "cat; exit 3"], "stdin": "from a pipe\n",
        "state": { "retention": "destroy" },
    });
    let ended = run(request.to_string());
    let answer = ended.json();
    assert_eq!(
        (ended.code(), &answer["stdout"]),
        (3, &json!("from a pipe\n")),
        "{answer:#}"
    );
    assert_eq!(answer["failure"]["kind"], "guest_command");
    // Each decision is an event with stable fields.
    let event = |ended: &Ended, fields: &[&str]| {
        let has_all = |line: &str| fields.iter().all(|field| line.contains(field));
        let mut lines = ended.stderr.lines();
        assert!(lines.any(has_all), "{fields:?}: {ended:?}");
    };
    let id = format!("audit_id={}", answer["audit_id"]);
    event(
        &ended,
        &[
            &id,
            "caller=\"default\"",
            "subject=\"image\"",
            "name=\"base\"",
            "decision=\"allowed\"",
            "reason=",
        ],
    );
    let image = request.to_string().replace("\"base\"", "\"/etc/passwd\"");
    let ended = run(image);
    let answer = ended.json();
    assert_eq!(
        (ended.code(), &answer["failure"]["kind"]),
        (125, &json!("invalid_request"))
    );
    let image = request.to_string().replace("\"base\"", "\"windows\"");
    assert_eq!(run(image).json()["failure"]["kind"], "policy_denied");
    let list = fixture
        .run(["receipt", "list", "--json", "--last", "2"])
        .json();
    let outcomes: Vec<_> = list["receipts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| &it["failure"])
        .collect();
    assert_eq!(outcomes, ["invalid_request", "policy_denied"]);
    assert_eq!(fixture.run(["receipt", "verify"]).code(), 0);
    let missing = fixture.run(["receipt", "show", "run_0"]);
    assert_eq!(missing.code(), 125, "{missing:?}");

    // The schema has what the policy has.
    let schema = fixture.run(["tool", "schema"]).json();
    assert_eq!(
        schema["properties"]["language"]["enum"],
        json!(["bash", "python", "sh"])
    );
    fixture.write("bad.toml", "[images.a]");
    let ended = fixture.run(["tool", "schema", "--policy", "bad.toml"]);
    assert_eq!(ended.code(), 125, "{ended:?}");
    assert!(
        ended.stdout().contains("needs an environment or a path"),
        "{ended:?}"
    );
}
