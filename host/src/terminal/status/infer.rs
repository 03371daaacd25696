use std::time::Duration;

use super::{
    Evidence, Foreground, Life, Prompt, Status, Tty,
    commands::{
        is_carrier, is_editor, is_multiplexer, is_pager, is_shell, prompts, starts_editors,
    },
    shape::{
        PDB, PYTHON, has_prompt, has_shell_prompt, is_confirmation, is_ipython_prompt,
        is_pager_prompt, is_question, is_shell_prompt, is_usual_prompt,
    },
};

/// For so long after something is typed the screen shows what was before that.
const ANSWER: Duration = Duration::from_millis(300);

/// What a terminal seems to wait for. The first that fits counts:
///
/// 1. It has ended.
/// 2. Something was just typed, and nothing was printed since: it runs.
/// 3. The kernel collects a line that it does not show: a password.
/// 4. An editor or a pager, by its name or, for a pager that another program
///    has started, by its last row.
/// 5. The user's own pattern fits: a shell.
/// 6. A shell: see [`shell`].
/// 7. Another program: see [`program`].
pub(crate) fn infer(evidence: &Evidence<'_>) -> (Status, Prompt) {
    match evidence.life {
        Life::Terminated => return (Status::Terminated, Prompt::None),
        Life::Ended => return (Status::Eof, Prompt::None),
        Life::Alive => {}
    }
    if evidence.unanswered.is_some_and(|since| since < ANSWER) {
        return (Status::Running, Prompt::None);
    }
    if let Some(Tty {
        echo: false,
        canonical: true,
    }) = evidence.tty
    {
        return (Status::Password, Prompt::None);
    }
    let Some(foreground) = evidence.foreground else {
        return match fits_own(evidence) {
            true => (Status::Ready, Prompt::Shell),
            false => (Status::Unknown, Prompt::Unknown),
        };
    };
    if let Some(status) = whole_screen(evidence, foreground) {
        return (status, Prompt::None);
    }
    if fits_own(evidence) {
        return (Status::Ready, Prompt::Shell);
    }
    match is_shell(foreground.command) || foreground.first && !is_known(foreground.command) {
        true => shell(evidence),
        false => program(evidence, foreground.command),
    }
}

fn fits_own(evidence: &Evidence<'_>) -> bool {
    evidence.prompt.is_some_and(|prompt| {
        prompt.is_match(evidence.before) || prompt.is_match(evidence.before.trim_end())
    })
}

/// Editors, pagers, and other programs that have the screen for themselves.
fn whole_screen(evidence: &Evidence<'_>, foreground: Foreground<'_>) -> Option<Status> {
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
        _ if starts_editors(command) => Status::Editor,
        // The screen is that of a program elsewhere, or of one that has ended
        // without giving it back.
        _ if is_carrier(command) || is_shell(command) => Status::Unknown,
        _ => Status::Running,
    })
}

/// A shell that edits its line itself takes single keys and shows them itself;
/// it does so only while it waits for a command. Others show their prompt.
fn shell(evidence: &Evidence<'_>) -> (Status, Prompt) {
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
    if !evidence.is_last_in_row() {
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

/// A program that is neither a shell nor has the screen for itself.
fn program(evidence: &Evidence<'_>, command: &str) -> (Status, Prompt) {
    let row = evidence.before;
    let carrier = is_carrier(command);
    // A carrier hands on every key, whatever is behind it.
    let edits = evidence.edits_line();
    if !edits && !evidence.is_last_in_row() {
        return (Status::Running, Prompt::None);
    }
    if evidence.is_last_in_row() && is_confirmation(row) {
        return (Status::Confirm, Prompt::None);
    }
    if PDB.iter().any(|form| has_prompt(row, form, edits)) {
        return (Status::Repl, Prompt::Pdb);
    }
    let is_python = |form: &&str| has_prompt(row, form, edits);
    if is_ipython_prompt(row, edits) || !has_own(command) && PYTHON.iter().any(is_python) {
        return (Status::Repl, Prompt::Python);
    }
    if prompts(command).any(|form| has_prompt(row, form, edits)) {
        return (Status::Repl, Prompt::Unknown);
    }
    if carrier && is_shell_prompt(row) {
        return (Status::Ready, Prompt::Shell);
    }
    if edits && !carrier && is_usual_prompt(row) {
        return (Status::Repl, Prompt::Unknown);
    }
    // It reads something, or cannot be asked how it reads.
    if evidence.tty.is_none() || evidence.reads_keys() && is_question(row) {
        return (Status::Unknown, Prompt::Unknown);
    }
    (Status::Running, Prompt::None)
}

/// Whether a program is known to be no shell.
fn is_known(command: &str) -> bool {
    let python = ["python", "pypy", "ipython", "bpython"];
    has_own(command) || is_carrier(command) || python.iter().any(|name| command.starts_with(name))
}

/// Whether a program has prompts of its own.
fn has_own(command: &str) -> bool {
    prompts(command).next().is_some()
}

impl Evidence<'_> {
    /// Whether the program takes single keys.
    fn reads_keys(&self) -> bool {
        self.tty.is_some_and(|tty| !tty.canonical)
    }

    /// Whether the program takes single keys and shows them itself, as line
    /// editors do.
    fn edits_line(&self) -> bool {
        self.tty.is_some_and(|tty| !tty.canonical && !tty.echo)
    }

    /// Whether nothing is behind the cursor.
    fn is_last_in_row(&self) -> bool {
        self.after.trim().is_empty()
    }
}
