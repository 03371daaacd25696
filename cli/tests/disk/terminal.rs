//! The program on a terminal: colours, and no control sequences from the disk.

use std::{
    ffi::OsStr,
    fs::File,
    io::Read as _,
    process::Stdio,
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::{Mode, OFlags, open},
    pty::{OpenptFlags, openpt, ptsname, unlockpt},
};

use crate::{
    program::command,
    sample::{ODD_NAMES, Sample},
};

const TEST_TIMEOUT: Duration = Duration::from_secs(60);

/// Runs the program on a terminal. Returns the exit code and all its output.
fn run_on_terminal<'a>(
    arguments: impl IntoIterator<Item = &'a OsStr>,
    settings: &[(&str, &str)],
) -> (i32, String) {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let terminal = openpt(flags).unwrap();
    unlockpt(&terminal).unwrap();
    let path = ptsname(&terminal, Vec::new()).unwrap();
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    let device = open(path, flags, Mode::empty()).unwrap();
    let side = || Stdio::from(device.try_clone().unwrap());
    let mut command = command(arguments);
    command.stdout(side()).stderr(side());
    command.envs(settings.iter().copied());
    let mut child = command.spawn().unwrap();
    // The terminal hangs up when the program ends, which alone has it open
    // then.
    drop(command);
    drop(device);
    let mut terminal = File::from(terminal);
    let mut printed = Vec::new();
    let deadline = Instant::now() + TEST_TIMEOUT;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let left = Timespec::try_from(left).unwrap();
        let mut poll_fds = [PollFd::new(&terminal, PollFlags::IN)];
        assert_eq!(poll(&mut poll_fds, Some(&left)).unwrap(), 1, "it hangs");
        let mut buffer = [0; 65536];
        match terminal.read(&mut buffer) {
            Ok(count @ 1..) => printed.extend_from_slice(&buffer[..count]),
            _ => break,
        }
    }
    let code = child.wait().unwrap().code().unwrap();
    // A terminal that does not read UTF-8 would interpret single bytes from
    // 0x80 to 0x9F.
    let text = String::from_utf8(printed).expect("no lone byte reaches a terminal");
    (code, text.replace("\r\n", "\n"))
}

fn shown(sample: &Sample, task: &str, more: &[&str], settings: &[(&str, &str)]) -> String {
    let image = sample.image();
    let first = [task.as_ref(), image.as_os_str()];
    let arguments = first.into_iter().chain(more.iter().map(OsStr::new));
    let (code, text) = run_on_terminal(arguments, settings);
    assert_eq!(code, 0, "{text}");
    text
}

#[test]
fn names_have_the_colours_of_what_they_are() {
    let sample = Sample::new();
    let text = shown(&sample, "ls", &[], &[]);
    assert!(text.contains("\x1b[1;34mbin\x1b[0m\n"), "{text:?}");
    assert!(text.contains("\x1b[1;36mlink\x1b[0m\n"), "{text:?}");
    assert!(text.contains("\nsparse\n"), "{text:?}");
    let text = shown(&sample, "ls", &["-l", "/bin"], &[]);
    assert!(text.contains("  \x1b[1;32mtool\x1b[0m\n"), "{text:?}");
    let text = shown(&sample, "ls", &["-l"], &[]);
    let link = "  \x1b[1;36mlink\x1b[0m -> etc/group\n";
    assert!(text.contains(link), "{text:?}");
    let text = shown(&sample, "tree", &["/src"], &[]);
    assert!(text.contains("├── \x1b[1;34mdeep\x1b[0m\n"), "{text:?}");
    let text = shown(&sample, "find", &["--name", "tool"], &[]);
    assert_eq!(text, "\x1b[1;32m/bin/tool\x1b[0m\n");
    let text = shown(&sample, "grep", &["-n", "h[a-z]+2", "/etc"], &[]);
    let line = "\x1b[35m/etc/secret.conf\x1b[0m\x1b[36m:\x1b[0m\x1b[32m2\x1b[0m\x1b[36m:\x1b[0m\
                password = \x1b[1;31mhunter2\x1b[0m\n";
    assert_eq!(text, line);
}

#[test]
fn nobody_who_wants_no_colours_gets_some() {
    let sample = Sample::new();
    for (task, more) in [
        ("ls", &["-lR"][..]),
        ("tree", &[]),
        ("find", &[]),
        ("grep", &["hello"]),
    ] {
        let text = shown(&sample, task, more, &[("NO_COLOR", "1")]);
        assert!(!text.contains('\x1b'), "{task}: {text:?}");
    }
}

#[test]
fn nothing_on_a_disk_drives_a_terminal() {
    let sample = Sample::new();
    for (task, more) in [
        ("ls", &["/odd"][..]),
        ("ls", &["-l", "/odd"]),
        ("ls", &["--json", "/odd"]),
        ("tree", &["/odd"]),
        ("find", &["/odd"]),
        ("grep", &["odd", "/odd"]),
        ("grep", &["-c", "odd", "/odd"]),
        ("du", &["-s", "/odd"]),
        ("sha256", &["/odd"]),
        ("cat", &["/bin/tool"]),
    ] {
        let text = shown(&sample, task, more, &[("NO_COLOR", "1")]);
        assert_drives_nothing(task, &text);
    }
    // Names in a patch and next to it.
    std::fs::remove_dir_all(sample.tree().join("odd")).unwrap();
    let without = sample.make(&sample.tree(), "without.ext4");
    let image = sample.image();
    for options in [&[][..], &["--stat"], &["--name-status"], &["--json"]] {
        let images = ["diff".as_ref(), image.as_os_str(), without.as_os_str()];
        let arguments = images.into_iter().chain(options.iter().map(OsStr::new));
        let (code, text) = run_on_terminal(arguments, &[("NO_COLOR", "1")]);
        assert_eq!(code, 1, "{text}");
        assert!(text.contains("lone"), "{text}");
        assert_drives_nothing("diff", &text);
    }
    // Every name takes one line, even one with a line break.
    let lines = shown(&sample, "ls", &["/odd"], &[]).lines().count();
    assert_eq!(lines, ODD_NAMES.len());
    let text = shown(&sample, "cat", &["/etc/secret.conf"], &[]);
    assert_eq!(text, "key = value\npassword = hunter2\n");
}

#[track_caller]
fn assert_drives_nothing(task: &str, text: &str) {
    let is_harmless = |letter: char| match letter {
        '\n' | '\t' => true,
        '\u{202e}' => false,
        letter => !letter.is_control(),
    };
    assert!(text.chars().all(is_harmless), "{task}: {text:?}");
}

#[test]
fn a_patch_is_coloured_and_an_archive_is_nothing_for_a_terminal() {
    let sample = Sample::new();
    let changed = sample.changed("new.ext4", "rm /etc/secret.conf\n");
    let image = sample.image();
    let (code, text) = run_on_terminal(
        ["diff".as_ref(), image.as_os_str(), changed.as_os_str()],
        &[],
    );
    assert_eq!(code, 1);
    assert!(text.contains("\x1b[31m-key = value\x1b[0m\n"), "{text:?}");
    let words = ["export", "/", "-"].map(OsStr::new);
    let (code, text) = run_on_terminal([words[0], image.as_os_str(), words[1], words[2]], &[]);
    assert_eq!(code, 125);
    assert!(text.contains("an archive to a terminal"), "{text:?}");
}

#[test]
fn who_looks_on_sees_how_much_was_exported() {
    let sample = Sample::new();
    let out = sample.path("out");
    let text = shown(&sample, "export", &["/src", out.to_str().unwrap()], &[]);
    assert!(text.contains("vmcell-disk: 7 entries, "), "{text:?}");
}
