use serde_json::{Value, json};

use super::*;
use crate::tool::{CallerGrants, SecretGrant, ToolImage};

/// The request of the contract.
fn contract() -> Value {
    json!({
        "language": "python",
        "files": [{ "path": "/work/main.py", "content": "print('hello')" }],
        "command": ["python", "/work/main.py"],
        "timeout_seconds": 20,
        "network": { "mode": "none" },
        "state": { "retention": "destroy" },
    })
}

fn policy() -> ToolPolicy {
    let mut policy = ToolPolicy::new()
        .image("debian", ToolImage::environment("debian"))
        .image("other", ToolImage::path("other.ext4"))
        .language("python", "debian")
        .network_grant("pypi", ["pypi.org:443", "*.pythonhosted.org:443"])
        .network_grant("internal", ["10.0.0.1:80"])
        .secret("api-key", SecretGrant::env("API_KEY"))
        .secret("other-key", SecretGrant::env("OTHER_KEY"));
    let grants = CallerGrants {
        images: Some(BTreeSet::from(["debian".to_owned()])),
        ..CallerGrants::default().network("pypi").secret("api-key")
    };
    policy.callers.insert("default".to_owned(), grants);
    policy.state.retention = Retention::ALL.into_iter().collect();
    let programs = &mut policy.languages.get_mut("python").unwrap().programs;
    programs.insert("python".to_owned(), "python3".to_owned());
    policy
}

/// Decides about the request of the contract with other members.
fn decide_with(
    policy: &ToolPolicy,
    caller: &str,
    changes: Value,
) -> (Result<Plan, Refusal>, Audit) {
    let mut request = contract();
    for (key, value) in changes.as_object().unwrap() {
        match value {
            Value::Null => drop(request.as_object_mut().unwrap().remove(key)),
            value => request[key] = value.clone(),
        }
    }
    let mut audit = Audit::new("run_1".to_owned(), caller);
    let request = match serde_json::from_value(request) {
        Ok(request) => request,
        // As `Tool::run_json` does.
        Err(error) => return (Err(Refusal::Invalid(error.to_string())), audit),
    };
    (validate(request, policy, &mut audit), audit)
}

fn decide(changes: Value) -> Result<Plan, Refusal> {
    decide_with(&policy(), "default", changes).0
}

#[test]
fn the_request_of_the_contract_is_valid() {
    let (plan, audit) = decide_with(&policy(), "default", json!({}));
    let plan = plan.unwrap();
    assert_eq!(plan.image_name, "debian");
    assert_eq!(plan.argv, ["python3", "/work/main.py"]);
    assert_eq!(plan.files[0].content, "print('hello')");
    assert_eq!(plan.timeout, Duration::from_secs(20));
    assert!(plan.network.is_off() && plan.secrets.is_empty());
    assert_eq!((plan.retention, plan.ttl), (Retention::Destroy, None));
    assert!(audit.decisions.iter().all(|decision| decision.allowed));
    let subjects: Vec<_> = audit.decisions.iter().map(|it| &*it.subject).collect();
    assert_eq!(subjects, ["caller", "image", "limits", "retention"]);
}

#[test]
fn what_is_granted_is_allowed_and_nothing_more() {
    let plan = decide(json!({
        "network": { "mode": "bridge", "allow": [{ "host": "a.pythonhosted.org", "port": 443 }] },
        "secrets": { "API_KEY": { "ref": "api-key" } },
    }))
    .unwrap();
    let rules: Vec<_> = plan
        .network
        .allowed()
        .iter()
        .map(ToString::to_string)
        .collect();
    // Not all that the grant has.
    assert_eq!(rules, ["a.pythonhosted.org:443"]);
    assert_eq!(plan.network_grants, ["pypi"]);
    assert_eq!(plan.secrets, [("API_KEY".to_owned(), "api-key".to_owned())]);
    let plan = decide(json!({ "network": { "mode": "grants", "grants": ["pypi"] } })).unwrap();
    assert_eq!(plan.network.allowed().len(), 2);
    // What stays without a time of its own has that of the policy.
    let plan = decide(json!({ "state": { "retention": "stop" } })).unwrap();
    assert_eq!(plan.ttl, Some(Duration::from_secs(24 * 3600)));
}

#[test]
fn what_is_not_valid_is_refused_as_such() {
    let file = |path: &str| json!({ "files": [{ "path": path, "content": "" }] });
    let state = |state: Value| json!({ "state": state });
    let many: Vec<_> = (0..10_000)
        .map(|number| json!({ "path": format!("/work/{number}"), "content": "" }))
        .collect();
    let allow = |host: &str, port: u32| json!({ "network": { "mode": "bridge", "allow": [{ "host": host, "port": port }] } });
    for changes in [
        file("/work/../etc/passwd"),
        file("../etc/passwd"),
        file("/etc/passwd"),
        file("/home/user/.ssh/id_ed25519"),
        file("C:\\windows"),
        file("/work/a\0b"),
        json!({ "files": [{ "path": "/work/a", "link": "/etc/passwd" }] }),
        json!({ "files": [{ "path": "/work/a", "content": "", "type": "symlink" }] }),
        json!({ "files": [{ "path": "/work/a" }] }),
        json!({ "files": [{ "path": "/work/a", "content": "", "content_base64": "" }] }),
        json!({ "files": [{ "path": "/work/a", "content_base64": "%%%%" }] }),
        json!({ "files": [{ "path": "/work/a", "content": "", "mode": "4755" }] }),
        json!({ "files": [{ "path": "/work/a", "content": "", "mode": "rwx" }] }),
        json!({ "files": [{ "path": "/work/a", "content": "" }, { "path": "/work/a", "content": "" }] }),
        json!({ "files": [{ "path": "/work/a", "content": "" }, { "path": "/work/a/b", "content": "" }] }),
        json!({ "files": many }),
        json!({ "files": [{ "path": "/work/a", "content": "a".repeat((1 << 20) + 1) }] }),
        json!({ "files": [{ "path": "/work/a", "content_base64": "A".repeat(2 << 20) }] }),
        json!({ "files": (0..9).map(|number| json!({
            "path": format!("/work/{number}"), "content": "a".repeat(1 << 20),
        })).collect::<Vec<_>>() }),
        json!({ "stdin": "a".repeat((1 << 20) + 1) }),
        json!({ "command": [] }),
        json!({ "command": [""] }),
        json!({ "command": "python /work/main.py" }),
        json!({ "command": ["a\0b"] }),
        json!({ "command": vec!["a"; 300] }),
        json!({ "command": ["a".repeat(70 << 10)] }),
        json!({ "timeout_seconds": -1 }),
        json!({ "timeout_seconds": 0 }),
        json!({ "timeout_seconds": 1e300 }),
        json!({ "timeout_seconds": 301 }),
        json!({ "max_output_bytes": 2 << 20 }),
        json!({ "outputs": ["/etc/shadow"] }),
        json!({ "outputs": ["/work/../etc/shadow"] }),
        json!({ "outputs": ["/work/a", "/work/a"] }),
        json!({ "outputs": vec!["/work/a"; 17] }),
        json!({ "working_directory": "/root" }),
        json!({ "env": { "LD_PRELOAD": "/work/a.so" } }),
        json!({ "volumes": ["/:/host"] }),
        json!({ "language": "../python" }),
        json!({ "language": null }),
        json!({ "image": "debian" }),
        json!({ "language": null, "image": "/var/lib/images/debian.ext4" }),
        json!({ "language": null, "image": "./debian.ext4" }),
        json!({ "network": { "mode": "host" } }),
        json!({ "network": { "mode": "none", "allow": [{ "host": "pypi.org", "port": 443 }] } }),
        json!({ "network": { "mode": "grants" } }),
        json!({ "network": { "mode": "grants", "grants": vec!["pypi"; 17] } }),
        allow("*", 443),
        allow("*.pythonhosted.org", 443),
        allow("https://pypi.org", 443),
        allow("pypi.org", 0),
        allow("pypi.org", 70_000),
        allow("10.0.0.0/8", 80),
        json!({ "secrets": { "API_KEY": "sk-literal" } }),
        json!({ "secrets": { "API_KEY": { "value": "sk-literal" } } }),
        json!({ "secrets": { "API_KEY": { "ref": "not a name" } } }),
        json!({ "secrets": { "A=B": { "ref": "api-key" } } }),
        json!({ "state": null }),
        state(json!({})),
        state(json!({ "retention": "forever" })),
        state(json!({ "retention": "cold" })),
        state(json!({ "retention": "snapshot" })),
        state(json!({ "retention": "cold", "ttl_seconds": 0 })),
        state(json!({ "retention": "cold", "ttl_seconds": -5 })),
        state(json!({ "retention": "cold", "ttl_seconds": 86401 })),
        state(json!({ "retention": "snapshot", "ttl_seconds": 60, "name": "../a" })),
        state(json!({ "retention": "snapshot", "ttl_seconds": 60, "name": "baseline" })),
        state(json!({ "retention": "stop", "name": "a" })),
    ] {
        let shown: String = changes.to_string().chars().take(200).collect();
        let refusal = decide(changes);
        assert!(
            matches!(refusal, Err(Refusal::Invalid(_))),
            "{shown}: {refusal:?}"
        );
        let text = format!("{refusal:?}");
        assert!(
            text.len() < 1000 && !text.contains("not a name\""),
            "{text}"
        );
    }
}

#[test]
fn what_is_not_granted_is_denied_as_such() {
    let allow = |host: &str, port: u16| json!({ "network": { "mode": "bridge", "allow": [{ "host": host, "port": port }] } });
    for (changes, subject) in [
        (json!({ "language": "cobol" }), "image"),
        (json!({ "language": null, "image": "unknown" }), "image"),
        (json!({ "language": null, "image": "other" }), "image"),
        (allow("example.org", 443), "network"),
        (allow("pypi.org", 80), "network"),
        (allow("pythonhosted.org", 443), "network"),
        (allow("10.0.0.1", 80), "network"),
        (allow("127.0.0.1", 443), "network"),
        (allow("::1", 443), "network"),
        (
            json!({ "network": { "mode": "grants", "grants": ["internal"] } }),
            "network",
        ),
        (
            json!({ "network": { "mode": "grants", "grants": ["unknown"] } }),
            "network",
        ),
        (
            json!({ "secrets": { "KEY": { "ref": "other-key" } } }),
            "secret",
        ),
        (
            json!({ "secrets": { "KEY": { "ref": "unknown" } } }),
            "secret",
        ),
        (
            json!({
                "secrets": { "KEY": { "ref": "api-key" } },
                "state": { "retention": "cold", "ttl_seconds": 60 },
            }),
            "retention",
        ),
    ] {
        let (refusal, audit) = decide_with(&policy(), "default", changes.clone());
        assert!(
            matches!(refusal, Err(Refusal::Denied(_))),
            "{changes}: {refusal:?}"
        );
        let last = audit.decisions.last().unwrap();
        assert_eq!(
            (&*last.subject, last.allowed),
            (subject, false),
            "{changes}"
        );
        assert!(!last.reason.is_empty());
    }
    let (refusal, _) = decide_with(&policy(), "stranger", json!({}));
    assert!(matches!(refusal, Err(Refusal::Denied(_))), "{refusal:?}");
    // By default nothing is kept.
    let mut strict = policy();
    strict.state = super::super::StatePolicy::default();
    let state = json!({ "state": { "retention": "stop" } });
    let (refusal, _) = decide_with(&strict, "default", state);
    assert!(matches!(refusal, Err(Refusal::Denied(_))), "{refusal:?}");
}
