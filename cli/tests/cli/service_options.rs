//! Invalid options for services and ports.

use crate::vmcell::Vmcell;

/// All of these fail before a VM boots.
#[test]
fn options_of_run_are_explained() {
    let ended = |options: &[&str]| Vmcell::run(options.iter().copied(), ["true"]).finish();
    for (options, words) in [
        (&["--service", "web"][..], "NAME=LINE"),
        (&["--service", "web="], "NAME=LINE"),
        (&["--service", "=true"], "NAME=LINE"),
        (&["--ready", "tcp:1"], "--service"),
        (
            &["--service", "a=b", "--ready", "c=tcp:1"],
            "there is no --service c",
        ),
        (&["--service", "a=b", "--ready", "tcp:no"], "tcp:no"),
        (&["--service", "a=b", "--ready", "smell:1"], "smell:1"),
        (
            &["--service", "a=b", "--ready", "a=log:on (80"],
            "\"on (80\" cannot be the pattern of a log probe: invalid at character 4",
        ),
        (&["--service", "a=b", "--service", "a=c"], "twice"),
        (
            &["--service", "a=b", "--needs", "c"],
            "there is no --service c",
        ),
        (
            &["--service", "a=b", "--ready", "tcp:1", "--ready", "tcp:2"],
            "--ready is given twice for \"a\"",
        ),
        (
            &["--ready", "tcp:1", "--service", "a=b", "--service", "c=d"],
            "does not name a service",
        ),
        (
            &["--service", "a=b", "--ready-timeout", "5"],
            "without --ready",
        ),
        (
            &[
                "--service",
                "a=b",
                "--ready",
                "tcp:1",
                "--ready-timeout",
                "0",
            ],
            "whole seconds",
        ),
        (&["--service", "a=b", "--restart", "often"], "on-failure"),
        (&["--publish", "0"], "--publish"),
        (&["--publish", "70000"], "--publish"),
        (&["--publish", "a:80"], "--publish"),
        (&["--publish", "1:2:3"], "--publish"),
    ] {
        let ended = ended(options);
        assert_eq!(ended.code(), 2, "{ended:?}");
        assert!(ended.stderr.contains(words), "{words} in {ended:?}");
        assert!(ended.stderr.contains("try '--help'"), "{ended:?}");
    }
    for (options, words) in [
        (&["--service", "a/b=true"][..], "\"a/b\""),
        (&["--service", "a=b", "--needs", "a"], "a -> a"),
        (
            &[
                "--service",
                "a=b",
                "--needs",
                "c",
                "--service",
                "c=d",
                "--needs",
                "a",
            ],
            "a -> c -> a",
        ),
    ] {
        let ended = ended(options);
        ended.assert_failed(125, words);
    }
}

#[test]
fn arguments_of_service_and_publish_are_explained() {
    for (arguments, words) in [
        (&["service"][..], "Usage"),
        (&["service", "start", "vm", "web"], "<CMD>"),
        (
            &[
                "service", "start", "vm", "web", "--ready", "x", "--", "true",
            ],
            "tcp:PORT",
        ),
        (
            &[
                "service",
                "start",
                "vm",
                "web",
                "--ready",
                "log:x{9999}",
                "--",
                "true",
            ],
            "too large: use fewer repetitions",
        ),
        (
            &[
                "service",
                "start",
                "vm",
                "web",
                "--ready-timeout",
                "1",
                "--",
                "true",
            ],
            "--ready",
        ),
        (
            &[
                "service",
                "start",
                "vm",
                "web",
                "--restart",
                "x",
                "--",
                "true",
            ],
            "on-failure",
        ),
        (&["service", "logs", "vm", "web", "--tail", "-1"], "--tail"),
        (
            &["service", "logs", "vm", "web", "--tail", "1", "--all"],
            "--all",
        ),
        (&["service", "stop", "vm"], "<NAME>"),
        (&["service", "fly"], "fly"),
        (&["publish", "vm"], "GUEST"),
        (&["publish", "vm", "0"], "GUEST"),
        (&["publish", "vm", "x:80"], "GUEST"),
    ] {
        let ended = Vmcell::new(arguments).finish();
        assert_eq!(ended.code(), 2, "{ended:?}");
        assert!(ended.stderr.contains(words), "{words} in {ended:?}");
    }
    let ended = Vmcell::new(["service", "ls", "nobody-has-this"]).finish();
    ended.assert_failed(125, "`vmcell ps` lists running VMs");
}
