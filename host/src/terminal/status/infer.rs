use std::time::Duration;

use super::{
    Evidence, Foreground, Liveness, Prompt, Status, TtyModes,
    commands::{
        is_editor, is_multiplexer, is_pager, is_proxy, is_shell, launches_editor, repl_prompts,
    },
    patterns::{
        PDB, PYTHON, has_prompt, has_shell_prompt, is_confirmation, is_ipython_prompt,
        is_pager_prompt, is_question, is_shell_prompt, is_word_prompt,
    },
};

/// For this long after input, the screen may still show the state before it.
const INPUT_DELAY: Duration = Duration::from_millis(300);

/// Infers what a terminal waits for. The first rule that matches applies:
///
/// 1. The program has ended.
/// 2. Something was just typed, and nothing was printed since: it runs.
/// 3. The kernel reads a line without echo: a password.
/// 4. An editor or a pager, by its name or, for a pager that another program
///    has started, by its last row.
/// 5. The user's pattern matches: a shell.
/// 6. A shell: see [`shell_status`].
/// 7. Another program: see [`program_status`].
///
/// A program that seems to run but is blocked in a read waits for something: that
/// is not known.
pub(crate) fn infer(evidence: &Evidence<'_>) -> (Status, Prompt) {
    match evidence.liveness {
        Liveness::Terminated => return (Status::Terminated, Prompt::None),
        Liveness::Exited => return (Status::Eof, Prompt::None),
        Liveness::Running => {}
    }
    if evidence.unanswered.is_some_and(|since| since < INPUT_DELAY) {
        return (Status::Running, Prompt::None);
    }
    match infer_from_screen(evidence) {
        (Status::Running, _) if evidence.is_read == Some(true) => {
            (Status::Unknown, Prompt::Unknown)
        }
        inferred => inferred,
    }
}

fn infer_from_screen(evidence: &Evidence<'_>) -> (Status, Prompt) {
    if let Some(TtyModes {
        echo: false,
        canonical: true,
    }) = evidence.modes
    {
        return (Status::Password, Prompt::None);
    }
    let Some(foreground) = evidence.foreground else {
        return match matches_user_prompt(evidence) {
            true => (Status::Ready, Prompt::Shell),
            false => (Status::Unknown, Prompt::Unknown),
        };
    };
    if let Some(status) = full_screen_status(evidence, foreground) {
        return (status, Prompt::None);
    }
    if matches_user_prompt(evidence) {
        return (Status::Ready, Prompt::Shell);
    }
    match is_shell(foreground.command) || foreground.is_initial && !is_not_shell(foreground.command)
    {
        true => shell_status(evidence),
        false => program_status(evidence, foreground.command),
    }
}

fn matches_user_prompt(evidence: &Evidence<'_>) -> bool {
    evidence.prompt.is_some_and(|prompt| {
        prompt.is_match(evidence.before) || prompt.is_match(evidence.before.trim_end())
    })
}

/// Returns the status of editors, pagers, and other full-screen programs.
fn full_screen_status(evidence: &Evidence<'_>, foreground: Foreground<'_>) -> Option<Status> {
    let command = foreground.command;
    let keys = evidence.reads_keys();
    if is_editor(command) && (evidence.alternate || keys) {
        return Some(Status::Editor);
    }
    if is_pager(command) && (evidence.alternate || keys) {
        return Some(Status::Pager);
    }
    if is_shell(command) && !evidence.alternate {
        return None;
    }
    if keys && is_pager_prompt(evidence.before) {
        return Some(Status::Pager);
    }
    if !evidence.alternate || is_multiplexer(command) {
        return None;
    }
    Some(match command {
        _ if launches_editor(command) => Status::Editor,
        // The screen belongs to a program elsewhere, or to one that has ended
        // without leaving the alternate screen.
        _ if is_proxy(command) || is_shell(command) => Status::Unknown,
        _ => Status::Running,
    })
}

/// Returns the status of a shell. One with a line editor reads single keys and
/// echoes them itself, but only while it waits for a command. Others are
/// recognised by their prompt.
fn shell_status(evidence: &Evidence<'_>) -> (Status, Prompt) {
    let edits = evidence.edits_line();
    if evidence.before.trim().is_empty() {
        return (Status::Running, Prompt::None);
    }
    if edits && has_shell_prompt(evidence.before) {
        return (Status::Ready, Prompt::Shell);
    }
    if edits {
        return (Status::Ready, Prompt::Unknown);
    }
    if !evidence.is_at_row_end() {
        return (Status::Running, Prompt::None);
    }
    if is_confirmation(evidence.before) {
        return (Status::Confirm, Prompt::None);
    }
    match is_shell_prompt(evidence.before) {
        true => (Status::Ready, Prompt::Shell),
        false => (Status::Running, Prompt::None),
    }
}

/// Returns the status of a program that is neither a shell nor full-screen.
fn program_status(evidence: &Evidence<'_>, command: &str) -> (Status, Prompt) {
    let row = evidence.before;
    let proxy = is_proxy(command);
    // Also true of a proxy in raw mode, whatever program is behind it.
    let edits = evidence.edits_line();
    if !edits && !evidence.is_at_row_end() {
        return (Status::Running, Prompt::None);
    }
    if evidence.is_at_row_end() && is_confirmation(row) {
        return (Status::Confirm, Prompt::None);
    }
    if PDB.iter().any(|prompt| has_prompt(row, prompt, edits)) {
        return (Status::Repl, Prompt::Pdb);
    }
    let is_python = |prompt: &&str| has_prompt(row, prompt, edits);
    if is_ipython_prompt(row, edits) || !is_repl(command) && PYTHON.iter().any(is_python) {
        return (Status::Repl, Prompt::Python);
    }
    if repl_prompts(command).any(|prompt| has_prompt(row, prompt, edits)) {
        return (Status::Repl, Prompt::Unknown);
    }
    if proxy && is_shell_prompt(row) {
        return (Status::Ready, Prompt::Shell);
    }
    if edits && !proxy && is_word_prompt(row) {
        return (Status::Repl, Prompt::Unknown);
    }
    // It reads input, or the terminal modes are not known.
    if evidence.modes.is_none() || evidence.reads_keys() && is_question(row) {
        return (Status::Unknown, Prompt::Unknown);
    }
    (Status::Running, Prompt::None)
}

/// Returns whether a program is known not to be a shell.
fn is_not_shell(command: &str) -> bool {
    let python = ["python", "pypy", "ipython", "bpython"];
    is_repl(command) || is_proxy(command) || python.iter().any(|name| command.starts_with(name))
}

/// Returns whether the prompts of a program are known.
fn is_repl(command: &str) -> bool {
    repl_prompts(command).next().is_some()
}

impl Evidence<'_> {
    /// Returns whether a program that seems to run does not use the terminal for
    /// input: it is not full-screen, has left the modes as a shell sets them for
    /// commands, and is not blocked in a read.
    pub(crate) fn is_busy(&self) -> bool {
        let has_default_modes = self.modes.is_some_and(|tty| tty.canonical && tty.echo);
        !self.alternate && has_default_modes && self.is_read == Some(false)
    }

    /// Returns whether the program reads single keys.
    fn reads_keys(&self) -> bool {
        self.modes.is_some_and(|tty| !tty.canonical)
    }

    /// Returns whether the program reads single keys and echoes them itself, as
    /// line editors do.
    pub(crate) fn edits_line(&self) -> bool {
        self.modes.is_some_and(|tty| !tty.canonical && !tty.echo)
    }

    /// Returns whether there is no text after the cursor.
    fn is_at_row_end(&self) -> bool {
        self.after.trim().is_empty()
    }
}
