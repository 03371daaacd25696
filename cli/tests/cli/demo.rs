//! `vmcell demo`.

use crate::vmcell::Vmcell;

#[test]
fn a_demo_says_what_was_found_how_long_it_took_and_what_the_guest_answered() {
    let ended = Vmcell::new(["demo"]).finish();
    assert_eq!((ended.code(), ended.stderr.as_str()), (0, ""), "{ended:?}");
    let text = ended.stdout();
    let lines: Vec<&str> = text.lines().collect();
    let found = |beginning: &[&str]| {
        let words = |line: &&str| {
            line.split_whitespace()
                .collect::<Vec<_>>()
                .starts_with(beginning)
        };
        assert!(lines.iter().any(words), "{beginning:?}: {text}");
    };
    for finding in [
        ["good", "qemu"],
        ["good", "kernel"],
        ["good", "environment"],
    ] {
        found(&finding);
    }
    for choice in [["backend", "qemu"], ["link", "serial:"], ["booted", "in"]] {
        found(&choice);
    }
    found(&["acceleration"]);
    found(&["`uname", "-a`", "took"]);
    let answer = lines.last().unwrap();
    assert!(
        answer.starts_with("Linux ") && answer.contains("x86_64"),
        "{text}"
    );
}

#[test]
fn machines_are_told_the_same() {
    let ended = Vmcell::new(["demo", "--json"]).finish();
    assert_eq!((ended.code(), ended.stderr.as_str()), (0, ""), "{ended:?}");
    let parsed = ended.json();
    assert_eq!(parsed["backend"], "qemu", "{parsed}");
    assert_eq!(parsed["link"]["name"], "serial", "{parsed}");
    for reason in [&parsed["acceleration"]["reason"], &parsed["link"]["reason"]] {
        assert_ne!(reason.as_str().unwrap(), "", "{parsed}");
    }
    let milliseconds = |key: &str| parsed[key].as_f64().unwrap();
    assert!(milliseconds("boot_ms") > 0.0 && milliseconds("command_ms") > 0.0);
    let findings = parsed["findings"].as_array().unwrap();
    assert!(
        findings.iter().any(|finding| finding["name"] == "kernel"),
        "{parsed}"
    );
    assert!(
        parsed["answer"].as_str().unwrap().starts_with("Linux "),
        "{parsed}"
    );
}

#[test]
fn a_machine_without_what_it_needs_is_told_so_first() {
    let ended = Vmcell::new(["demo"])
        .env("PATH", "/nonexistent")
        .env_remove("VMCELL_QEMU")
        .finish();
    assert_ne!(ended.code(), 0, "{ended:?}");
    assert!(
        ended.stdout().contains("VMs cannot run here yet."),
        "{ended:?}"
    );
    assert!(ended.stderr.contains("vmcell: "), "{ended:?}");
}
