//! `--network`, `--allow`, `--deny`, `--resolve`, and `vmcell network`.

use std::{
    io::Write,
    net::{Ipv4Addr, TcpListener},
    thread,
};

use crate::{
    shared_vm::SharedVm,
    vmcell::{Running, Vmcell},
};

/// Serves a line to each client. Returns the port.
fn serve() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for client in listener.incoming() {
            let mut client = client.unwrap();
            // A client may disconnect early.
            let _ = client.write_all(b"hello\n");
        }
    });
    port
}

#[test]
fn a_program_reaches_what_is_allowed_and_the_log_says_what_it_wanted() {
    let port = serve();
    let rule = format!("web.test:{port}");
    let options = ["--allow", &rule, "--resolve", "web.test=127.0.0.1"];
    let vm = SharedVm::start_with("network", &options);
    let mut follower: Running = Vmcell::new(["network", "log", &vm.id, "--follow"]).start();
    let port_text = port.to_string();
    let ended = vm.exec([], ["nc", "web.test", &port_text]);
    ended.assert_printed("hello\n");
    let ended = vm.exec([], ["nc", "other.test", "80"]);
    assert_ne!(ended.code(), 0);
    let line = follower.line();
    let expected = format!(" 1 web.test:{port} allowed by web.test:{port}\n");
    assert!(line.ends_with(&expected), "{line}");
    assert!(follower.line().contains(" 1 ended after "));
    let line = follower.line();
    let expected = " 2 other.test denied: no rule allows it\n";
    assert!(line.ends_with(expected), "{line}");
    drop(follower);

    let status = vm.cli("network", ["--json"]).finish().json();
    assert_eq!(status["network_policy"], "egress");
    assert_eq!(status["allow"][0], rule.as_str());
    assert_eq!(status["denied"], 1);
    assert_eq!(status["received"], 6);
    let text = vm.cli("network", []).finish();
    assert_eq!(text.code(), 0);
    let text = String::from_utf8(text.stdout).unwrap();
    assert!(text.contains(&format!("allow        {rule}\n")), "{text}");
    let log = Vmcell::new(["network", "log", &vm.id, "--json"]).finish();
    let log = String::from_utf8(log.stdout).unwrap();
    let events: Vec<serde_json::Value> = log
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(events[0]["verdict"], "allowed");
    assert_eq!(events[0]["address"], "127.0.0.1");
    assert_eq!(events[1]["received"], 6);
    assert_eq!(events[2]["verdict"], "denied");
}

#[test]
fn what_was_denied_is_in_the_result() {
    let ended = Vmcell::run(
        ["--json", "--allow", "web.test"],
        ["nc", "other.test", "80"],
    );
    let ended = ended.finish();
    assert_eq!(ended.json()["network_denials"][0], "other.test");
}

#[test]
fn the_variables_of_the_proxy_are_set_unless_the_user_has_chosen_others() {
    let options = ["--allow", "web.test", "--proxy", "--env", "no_proxy=mine"];
    let ended = Vmcell::run(options, ["sh", "-c", "echo $https_proxy $no_proxy"]);
    let ended = ended.finish();
    ended.assert_printed("http://proxy.vmcell.internal:3128 mine\n");
}

#[test]
fn options_that_make_no_sense_are_refused_before_a_vm_boots() {
    for (options, expected) in [
        (&["--allow", "http://web.test"][..], "without a scheme"),
        (&["--allow", "web.test:0"], "are not ports"),
        (&["--allow", "10.0.0.1/8"], "must be zero"),
        (&["--resolve", "web.test"], "NAME=ADDRESS"),
        (&["--deny", "web.test"], "--allow"),
        (&["--proxy"], "--allow"),
        (&["--network", "off", "--proxy"], "no effect"),
        (&["--network", "off", "--allow", "web.test"], "no effect"),
        (&["--network", "bridge"], "egress+published-ports"),
    ] {
        let ended = Vmcell::run(options.iter().copied(), ["true"]).finish();
        assert_ne!(ended.code(), 0, "{options:?}");
        assert!(ended.stderr.contains(expected), "{options:?}: {ended:?}");
    }
    let ended = Vmcell::run(["--network", "egress", "--publish", "80"], ["true"]).finish();
    assert_ne!(ended.code(), 0);
    assert!(ended.stderr.contains("egress+published-ports"), "{ended:?}");
}
