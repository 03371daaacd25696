//! `vmcell shell`, with a user at a terminal.

use std::time::Duration;

use rustix::process::Signal;

use crate::{
    processes::Process,
    shared_vm::{SharedVm, unique},
    user::{User, has_sighup},
    vmcell::Vmcell,
};

/// Timeout for what is immediate on an idle machine.
const TIMEOUT: Duration = Duration::from_secs(30);

/// The prompt of the shell in `base`.
const PROMPT: &str = "/ # ";

/// Attaches a user to the terminal with this tag.
fn attach(shared: &SharedVm, tag: &str) -> User {
    User::run(["shell", &shared.id, "--tag", tag])
}

/// Returns a shell line that waits for a terminal size, as printed by `stty`.
fn until_size_is(size: &str) -> String {
    format!("while [ \"$(stty size)\" != '{size}' ]; do :; done; echo it 'is'")
}

#[test]
fn a_shell_in_a_new_vm_is_used_and_left() {
    let id = unique("own");
    let mut user = User::run(["shell", "--id", &id, "--env", "COLOUR=green"]);
    user.sees(PROMPT);
    assert!(!user.echoes(), "the terminal is not in raw mode");
    user.enters("echo $((6 * 7)) $COLOUR; tty; stty size");
    user.sees("42 green\r\n/dev/pts/");
    user.sees("24 80\r\n");
    user.sees(PROMPT);

    user.resizes(100, 40);
    user.enters(&until_size_is("40 100"));
    user.sees("it is\r\n");
    user.sees(PROMPT);

    // After it has printed, the command is in the foreground: an earlier Ctrl-C
    // would reach only the shell.
    user.enters("sh -c 'echo begun $((1 + 1)); exec sleep 1000'");
    user.sees("begun 2\r\n");
    user.types("\x03");
    user.sees("^C");
    user.sees(PROMPT);

    let vmm = Process::only_child_of(user.pid());
    user.enters("exit 7");
    let left = user.finish();
    assert_eq!(
        (left.code, left.printed.contains("vmcell:")),
        (7, false),
        "{left:?}"
    );
    assert!(vmm.ends_within(TIMEOUT));
}

#[test]
fn a_command_and_a_folder_take_the_place_of_the_shell() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("pushed"), "text").unwrap();
    let pushed = folder.path().to_str().unwrap();
    let user = User::run([
        "shell",
        "--push",
        pushed,
        "--user",
        "nobody",
        "--",
        "sh",
        "-c",
        "pwd; ls; id -un; exit 3",
    ]);
    let left = user.finish();
    assert_eq!(left.code, 3, "{left:?}");
    assert!(
        left.printed.ends_with("/workspace\r\npushed\r\nnobody\r\n"),
        "{left:?}"
    );
}

#[test]
fn a_terminal_is_left_and_come_back_to_by_two_users() {
    let shared = SharedVm::start("sessions");
    let mut first = attach(&shared, "work");
    first.sees(PROMPT);
    first.enters("cd /tmp; echo from the $((1))st");
    first.sees("from the 1st\r\n");
    first.sees("/tmp # ");
    first.resizes(100, 40);
    first.enters(&until_size_is("40 100"));
    first.sees("it is\r\n");
    first.types("\x1d");
    let left = first.finish();
    assert_eq!(left.code, 0, "{left:?}");
    let come_back = format!("`vmcell shell {} --tag work`", shared.id);
    assert!(left.printed.contains(&come_back), "{left:?}");

    let mut second = attach(&shared, "work");
    second.sees("from the 1st\r\n");
    second.sees("it is\r\n");
    second.sees("/tmp # ");
    second.enters(&until_size_is("24 80"));
    second.sees("it is\r\n");
    let mut third = attach(&shared, "work");
    third.sees("from the 1st\r\n");
    second.enters("echo to $((1 + 1))");
    second.sees("to 2\r\n");
    third.sees("to 2\r\n");
    third.enters("exit 5");
    assert_eq!((second.finish().code, third.finish().code), (5, 5));

    let ended = attach(&shared, "work").finish();
    assert_eq!(ended.code, 125, "{ended:?}");
    assert!(
        ended.printed.contains("has ended (exit code 5)"),
        "{ended:?}"
    );
}

#[test]
fn a_terminal_that_nobody_left_is_forgotten_with_its_end() {
    let shared = SharedVm::start("forgotten");
    for code in ["3", "4"] {
        let mut user = attach(&shared, "again");
        user.sees(PROMPT);
        let listed = shared.process("again").unwrap();
        assert_eq!(listed["terminal"], true, "{listed}");
        user.enters(&format!("exit {code}"));
        assert_eq!(user.finish().code.to_string(), code);
        assert!(shared.process("again").is_none());
    }
    assert_eq!(shared.process("main").unwrap()["terminal"], false);
}

#[test]
fn signals_and_the_end_of_the_vm_leave_the_terminal_as_it_was() {
    let shared = SharedVm::start("ends");
    let full_screen = r"printf '\033[?1049h\033[?1002h\033[?2004h\033[?25l\033[31m\033='; cat";
    for (signal, code) in [
        (Signal::TERM, 143),
        (Signal::HUP, 129),
        (Signal::INT, 130),
        (Signal::QUIT, 131),
    ] {
        if signal == Signal::HUP && !has_sighup() {
            println!("skipped: SIGHUP is ignored here");
            continue;
        }
        let mut user = User::run(["shell", &shared.id, "--", "sh", "-c", full_screen]);
        user.sees("\x1b[?25l\x1b[31m\x1b=");
        assert!(!user.echoes());
        user.signals(signal);
        user.sees("\x1b[m\x1b>\x1b[?1002l\x1b[?2004l\x1b[?1049l\x1b[?25h");
        let left = user.finish();
        assert_eq!(left.code, code, "{left:?}");
        assert!(
            left.printed.contains("vmcell: the terminal keeps running"),
            "{left:?}"
        );
    }
    let mut user = User::run(["shell", &shared.id, "--", "sh", "-c", full_screen]);
    user.sees("\x1b[?25l\x1b[31m\x1b=");
    assert_eq!(Vmcell::new(["kill", &shared.id]).finish().code(), 0);
    user.sees("\x1b[?1049l\x1b[?25h");
    let left = user.finish();
    assert_ne!(left.code, 0, "{left:?}");
    assert!(left.printed.contains("vmcell: "), "{left:?}");
}

/// A closed window, and one that accepts no output while much is printed.
#[test]
fn a_terminal_that_is_gone_or_stuck_keeps_nobody() {
    let shared = SharedVm::start("stuck");
    let mut user = attach(&shared, "left-over");
    user.sees(PROMPT);
    let program = user.program();
    drop(user);
    assert!(program.ends_within(TIMEOUT), "it did not end");
    assert_eq!(shared.process("left-over").unwrap()["state"], "running");

    let mut user = User::run(["shell", &shared.id, "--", "yes"]);
    user.sees("y\r\n");
    // Before the signal: afterwards the program may be gone already.
    let program = user.program();
    user.signals(Signal::TERM);
    assert!(program.ends_within(TIMEOUT), "it is blocked");
    assert_eq!(user.finish().code, 143);
}

/// A guest that tries to do more with the user's terminal than draw on it.
#[test]
fn hostile_output_does_not_reach_the_terminal() {
    let shared = SharedVm::start("hostile");
    let hostile = r"printf '<\033]52;c;eA==\007\033[6n\033[c\033[21t\033]2;a\033[5n\033\\\005\033P+q544e\033\\\033[>1u\033[31mred\033]2;ti\001tle\007>\n'";
    let mut user = User::run(["shell", &shared.id, "--", "sh", "-c", hostile]);
    user.sees("<");
    assert_eq!(
        user.sees(">"),
        "\x1b[31mred\x1b[22;0t\x1b]2;ti\u{fffd}tle\x1b\\"
    );
    user.sees("\x1b[m\x1b[23;0t");
    assert_eq!(user.finish().code, 0);
}

#[test]
fn the_key_that_leaves_is_chosen_and_in_an_own_vm_ends_it() {
    let mut user = User::run(["shell", "--detach-key", "ctrl+a"]);
    user.sees(PROMPT);
    let vmm = Process::only_child_of(user.pid());
    user.types("\x1d\x01");
    assert_eq!(user.finish().code, 0);
    assert!(vmm.ends_within(TIMEOUT));
}

#[test]
fn without_a_terminal_or_with_options_that_make_no_sense_nothing_begins() {
    let ended = Vmcell::new(["shell"]).finish();
    ended.assert_failed(
        125,
        "standard input is not a terminal: use `vmcell exec ID -- CMD`",
    );
    for options in [
        &["shell", "id", "--mem-mib", "64"][..],
        &["shell", "id", "--environment", "base"],
        &["shell", "id", "--push", "/tmp"],
        &["shell", "--detach-key", "hyper+x"],
    ] {
        let ended = Vmcell::new(options.iter()).finish();
        assert_eq!(ended.code(), 2, "{ended:?}");
    }
    let left = User::run(["shell", "nobody-has-this"]).finish();
    assert_eq!(left.code, 125, "{left:?}");
    assert!(left.printed.contains("no running VM has the"), "{left:?}");
    let shared = SharedVm::start("senseless");
    let left = User::run(["shell", &shared.id, "--", "no-such-program"]).finish();
    assert_eq!(left.code, 127, "{left:?}");
    let left = attach(&shared, "main").finish();
    assert_eq!(left.code, 126, "{left:?}");
}

#[test]
fn what_is_printed_is_written_down() {
    let shared = SharedVm::start("recorded");
    let folder = tempfile::tempdir().unwrap();
    let records = folder.path().join("records");
    let arguments = ["shell", &shared.id, "--record", records.to_str().unwrap()];
    let user = User::run(arguments.into_iter().chain(["--", "echo", "written down"]));
    assert_eq!(user.finish().code, 0);
    let transcript = std::fs::read_to_string(records.join("transcript.log")).unwrap();
    assert_eq!(transcript, "written down\r\n");
}
