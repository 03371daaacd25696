//! Guest output and names on a user's terminal.

use rustix::process::Signal;

use crate::{shared_vm::SharedVm, user::User};

/// A colour that is reset, 7-bit and 8-bit control sequences, and a colour that
/// is left on.
const HOSTILE: &str =
    r"printf '\033[1;31mred\033[0m \2332J\033[2J\302\2332J\342\200\256x\r\n\033[32mgreen'";

#[test]
fn colours_of_a_command_are_kept_and_nothing_else_drives_the_terminal() {
    let shared = SharedVm::start("colours");
    let exec = ["exec", &shared.id, "--", "sh", "-c", HOSTILE];
    let text = " \u{fffd}2J\u{fffd}[2J\u{fffd}2J\u{fffd}x\r\n";
    let left = User::run(exec).finish();
    assert_eq!(
        left.printed,
        format!("\x1b[1;31mred\x1b[0m{text}\x1b[32mgreen\x1b[0m")
    );
    let left = User::run_with(exec, &[("NO_COLOR", "1")]).finish();
    assert_eq!(left.printed, format!("red{text}green"));

    // Our own messages are not in the guest's colour.
    let limited = ["exec", &shared.id, "--max-output-bytes", "8"];
    let arguments = limited.into_iter().chain(["--", "sh", "-c", HOSTILE]);
    let left = User::run(arguments).finish();
    let (output, line) = left.printed.split_once("vmcell: ").unwrap();
    assert_eq!(output, "\x1b[1;31mr\x1b[0m");
    assert!(!line.contains('\x1b'), "{line:?}");

    // Into a pipe, all bytes go unchanged.
    let ended = shared.exec([], ["sh", "-c", HOSTILE]);
    let bytes = b"\x1b[1;31mred\x1b[0m \x9b2J\x1b[2J\xc2\x9b2J\xe2\x80\xaex\r\n\x1b[32mgreen";
    assert_eq!(ended.stdout, bytes, "{ended:?}");
}

#[test]
fn a_command_that_is_interrupted_leaves_no_colour_behind() {
    let shared = SharedVm::start("interrupted-colours");
    let script = r"printf '\033[31mred'; exec sleep 1000";
    let mut user = User::run(["exec", &shared.id, "--", "sh", "-c", script]);
    user.sees("\x1b[31mred");
    user.signals(Signal::TERM);
    let left = user.finish();
    assert_eq!(left.code, 128 + 15, "{left:?}");
    assert!(left.printed.contains("\x1b[0m"), "{left:?}");
}

#[test]
fn no_name_of_a_file_or_process_drives_the_terminal() {
    let shared = SharedVm::start("names");
    let make = r#"mkdir /tmp/odd; name=$(printf 'lone\2332J\302\2332J\033[31m\342\200\256x')
        echo text > "/tmp/odd/$name"; ln -s "$name" /tmp/odd/link"#;
    let ended = shared.exec([], ["sh", "-c", make]);
    assert_eq!(ended.code(), 0, "{ended:?}");
    shared.spawn(
        "odd",
        [
            "sh",
            "-c",
            "exec sleep 1000",
            "lone\u{9b}2J\x1b[31m\u{202e}",
        ],
    );
    for (task, more) in [
        ("ls", &["/tmp/odd"][..]),
        ("ls", &["/tmp/odd", "-l"]),
        ("ls", &["/tmp/odd", "--json"]),
        ("ps", &[]),
        ("ps", &["--json"]),
    ] {
        let arguments = [task, &shared.id].into_iter().chain(more.iter().copied());
        let left = User::run_with(arguments, &[("NO_COLOR", "1")]).finish();
        assert_eq!(left.code, 0, "{task}: {left:?}");
        assert!(left.printed.contains("lone"), "{task}: {left:?}");
        let drives = |letter: char| {
            letter.is_control() && !"\r\n\t".contains(letter) || letter == '\u{202e}'
        };
        assert!(!left.printed.contains(drives), "{task}: {left:?}");
    }
}
