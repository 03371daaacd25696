mod rows;

use std::time::Duration;

use proptest::prelude::*;
use regex::Regex;

use super::*;

/// The modes of line editors: bash, Python, vim.
const RAW: TtyModes = TtyModes {
    echo: false,
    canonical: false,
};

/// The default modes.
const COOKED: TtyModes = TtyModes {
    echo: true,
    canonical: true,
};

/// The modes of a password prompt.
const NO_ECHO: TtyModes = TtyModes {
    echo: false,
    canonical: true,
};

/// The modes of `read -n 1`.
const CBREAK: TtyModes = TtyModes {
    echo: true,
    canonical: false,
};

fn evidence<'a>(command: &'a str, modes: TtyModes, before: &'a str) -> Evidence<'a> {
    Evidence {
        liveness: Liveness::Running,
        before,
        after: "",
        alternate: false,
        foreground: Some(Foreground {
            command,
            is_initial: command == "bash",
        }),
        modes: Some(modes),
        is_read: Some(false),
        prompt: None,
        unanswered: None,
    }
}

fn full_screen<'a>(command: &'a str, before: &'a str) -> Evidence<'a> {
    Evidence {
        alternate: true,
        ..evidence(command, RAW, before)
    }
}

#[test]
fn programs_with_a_screen_of_their_own_are_told_by_their_names() {
    for (command, before, status) in [
        ("vim", "", Status::Editor),
        ("vim", "$ ", Status::Editor),
        ("vim", ":wq", Status::Editor),
        ("vim.tiny", "", Status::Editor),
        ("nano", "", Status::Editor),
        ("emacs", ">>> ", Status::Editor),
        ("git", "Fix the", Status::Editor),
        ("git", ":", Status::Pager),
        ("crontab", "", Status::Editor),
        ("less", "README.md", Status::Pager),
        (
            "man",
            " Manual page ls(1) line 1 (press h for help or q to quit)",
            Status::Pager,
        ),
        ("", "(END)", Status::Pager),
        ("htop", "", Status::Running),
        ("top", "", Status::Running),
        ("unheard-of", "Password: ", Status::Running),
        ("ssh", "$ ", Status::Unknown),
        ("bash", "$ ", Status::Unknown),
    ] {
        let (inferred, prompt) = infer(&full_screen(command, before));
        assert_eq!(inferred, status, "{command} {before:?}");
        assert_eq!(prompt, Prompt::None, "{command}");
    }
    let shell_in_tmux = infer(&full_screen("tmux: client", "me@box:~$ "));
    assert_eq!(shell_in_tmux, (Status::Ready, Prompt::Shell));
    // In a terminal without alternate screen.
    assert_eq!(infer(&evidence("vi", RAW, "~")).0, Status::Editor);
}

#[test]
fn the_end_is_told_before_all_else() {
    let prompt = evidence("bash", RAW, "$ ");
    for (liveness, status) in [
        (Liveness::Exited, Status::Eof),
        (Liveness::Terminated, Status::Terminated),
    ] {
        let over = Evidence {
            liveness,
            ..prompt.clone()
        };
        assert_eq!(infer(&over), (status, Prompt::None));
    }
}

#[test]
fn a_prompt_does_not_count_before_what_was_typed_is_answered() {
    for (milliseconds, status) in [
        (0, Status::Running),
        (299, Status::Running),
        (300, Status::Ready),
    ] {
        let typed = Evidence {
            unanswered: Some(Duration::from_millis(milliseconds)),
            ..evidence("bash", RAW, "$ ")
        };
        assert_eq!(infer(&typed).0, status, "{milliseconds}");
    }
}

#[test]
fn the_pattern_of_the_user_wins() {
    let pattern = Regex::new("^ready when you are:? ?$").unwrap();
    let own = Evidence {
        prompt: Some(&pattern),
        ..evidence("cat", COOKED, "ready when you are: ")
    };
    assert_eq!(infer(&own), (Status::Ready, Prompt::Shell));
    let unasked = Evidence {
        foreground: None,
        modes: None,
        ..own.clone()
    };
    assert_eq!(infer(&unasked), (Status::Ready, Prompt::Shell));
    let hidden = Evidence {
        modes: Some(NO_ECHO),
        ..own.clone()
    };
    assert_eq!(infer(&hidden).0, Status::Password);
    let other = Evidence {
        before: "hello$ ",
        ..own
    };
    assert_eq!(infer(&other).0, Status::Running);
}

#[test]
fn what_the_guest_does_not_say_is_unknown() {
    let nobody = Evidence {
        foreground: None,
        modes: None,
        ..evidence("", RAW, "$ ")
    };
    assert_eq!(infer(&nobody), (Status::Unknown, Prompt::Unknown));
    let unset = Evidence {
        modes: None,
        ..evidence("cat", COOKED, "Password: ")
    };
    assert_eq!(infer(&unset), (Status::Unknown, Prompt::Unknown));
    let prompt = Evidence {
        modes: None,
        ..evidence("bash", COOKED, "$ ")
    };
    assert_eq!(infer(&prompt), (Status::Ready, Prompt::Shell));
}

#[test]
fn a_cursor_in_the_middle_of_text_is_behind_no_prompt() {
    for (command, before) in [("sh", "$ "), ("python3", ">>> "), ("rm", "Continue? ")] {
        let middle = Evidence {
            after: "more text",
            ..evidence(command, COOKED, before)
        };
        assert_eq!(infer(&middle), (Status::Running, Prompt::None), "{command}");
    }
    // Back at the beginning of a line that is edited.
    let back = Evidence {
        after: "ls -l",
        ..evidence("bash", RAW, "me@box:~$ ")
    };
    assert_eq!(infer(&back), (Status::Ready, Prompt::Shell));
}

#[test]
fn a_terminal_may_be_opened_for_any_program() {
    let first = |command, before| {
        infer(&Evidence {
            foreground: Some(Foreground {
                command,
                is_initial: true,
            }),
            ..evidence(command, COOKED, before)
        })
    };
    assert_eq!(first("python3", ">>> "), (Status::Repl, Prompt::Python));
    assert_eq!(first("python3", "5 $ "), (Status::Running, Prompt::None));
    assert_eq!(first("my-shell", "mine> "), (Status::Ready, Prompt::Shell));
}

#[test]
fn names_are_those_of_the_contract() {
    assert_eq!(Status::Ready.to_string(), "ready");
    assert_eq!(Status::Eof.to_string(), "eof");
    assert_eq!(Prompt::Pdb.to_string(), "pdb");
}

proptest! {
    #[test]
    fn only_the_settings_of_the_terminal_make_a_password(
        before: String, after: String, command: String,
        is_initial: bool, alternate: bool, echo: bool, canonical: bool,
    ) {
        let (status, _) = infer(&Evidence {
            after: &after,
            alternate,
            foreground: Some(Foreground { command: &command, is_initial }),
            ..evidence("", TtyModes { echo, canonical }, &before)
        });
        prop_assert_eq!(status == Status::Password, canonical && !echo);
    }
}

#[test]
fn a_program_that_seems_to_run_but_reads_is_not_known() {
    for (command, before) in [
        ("cat", ""),
        ("ed", ""),
        ("bash", "Name: "),
        ("make", "50 %"),
    ] {
        let runs = evidence(command, COOKED, before);
        assert_eq!(infer(&runs).0, Status::Running, "{command}");
        assert!(runs.is_busy());
        let reads = Evidence {
            is_read: Some(true),
            ..runs.clone()
        };
        assert_eq!(infer(&reads).0, Status::Unknown, "{command}");
        assert!(!reads.is_busy());
        // Its answer to what was just typed is still to come.
        let typed = Evidence {
            unanswered: Some(Duration::from_millis(10)),
            ..reads
        };
        assert_eq!(infer(&typed).0, Status::Running, "{command}");
        // An older agent does not report it.
        let unknown = Evidence {
            is_read: None,
            ..runs
        };
        assert_eq!(infer(&unknown).0, Status::Running, "{command}");
        assert!(!unknown.is_busy());
    }
    assert!(!full_screen("top", "").is_busy());
    assert!(!evidence("fzf", RAW, "> ").is_busy());
}
