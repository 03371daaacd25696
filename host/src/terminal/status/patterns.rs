//! Patterns of prompts and questions, in the cursor's row up to the cursor.

use std::sync::LazyLock;

use regex::Regex;

/// Characters that shell prompts end with.
const PROMPT_SIGNS: &[char] = &['$', '#', '%', '>', '❯', '➜', 'λ', '»', '⟩', '▶'];

/// Blanks that a prompt may have after its sign.
const MAX_TRAILING_BLANKS: usize = 2;

/// Returns whether the row is a shell prompt with no input after it.
pub(super) fn is_shell_prompt(row: &str) -> bool {
    let prompt = row.trim_end();
    let blanks = row.chars().count() - prompt.chars().count();
    // Some have the sign in front, and the directory after it.
    blanks <= MAX_TRAILING_BLANKS
        && !is_percentage(row)
        && (prompt.ends_with(PROMPT_SIGNS) || prompt.starts_with(['➜', '❯']))
}

/// Returns whether the row ends like `40%`, as in progress bars. A prompt that ends
/// with a number and the sign has a blank after it.
fn is_percentage(row: &str) -> bool {
    let number = row.strip_suffix('%');
    number.is_some_and(|number| number.ends_with(|last: char| last.is_ascii_digit()))
}

/// Returns whether the row has a shell prompt, perhaps with input after it.
pub(super) fn has_shell_prompt(row: &str) -> bool {
    is_shell_prompt(row)
        || PROMPT_SIGNS
            .iter()
            .any(|sign| row.contains(&format!("{sign} ")[..]))
}

/// Returns whether the row has a prompt of this pattern: see
/// [`repl_prompts`](super::commands::repl_prompts). If the program edits its line
/// itself, input may follow the prompt.
pub(super) fn has_prompt(row: &str, pattern: &str, edits_line: bool) -> bool {
    match (pattern.strip_prefix('*'), edits_line) {
        (Some(end), true) => row.contains(end),
        (Some(end), false) => row.ends_with(end),
        (None, true) => row.starts_with(pattern),
        (None, false) => row == pattern,
    }
}

/// Returns whether the row is a word and `>`, as in many interpreters.
pub(super) fn is_word_prompt(row: &str) -> bool {
    let word = row.strip_suffix("> ");
    word.is_some_and(|word| word.len() <= 60 && !word.contains(char::is_whitespace))
}

pub(super) const PDB: &[&str] = &["(Pdb) ", "((Pdb)) ", "(Pdb++) ", "ipdb> ", "(IPdb) "];

pub(super) const PYTHON: &[&str] = &[">>> ", "... "];

/// Returns whether the row has a prompt of IPython, which numbers its inputs.
pub(super) fn is_ipython_prompt(row: &str, edits_line: bool) -> bool {
    matches(&IPYTHON, row) && (edits_line || row.ends_with(": "))
}

/// Returns whether the row is the last row of a waiting pager.
pub(super) fn is_pager_prompt(row: &str) -> bool {
    let row = row.trim_end();
    row == ":"
        || row.ends_with("(END)")
        || row.contains("--More--")
        || row.contains("(press h for help or q to quit)")
        || row.starts_with("HELP -- ")
        || matches(&SYSTEMD_PAGER, row)
}

/// Returns whether the row is a yes/no question.
pub(super) fn is_confirmation(row: &str) -> bool {
    let row = row.trim();
    matches(&YES_NO, row) || matches(&QUESTION, row) && !matches(&OPEN_QUESTION, row)
}

/// Returns whether the row looks like another question.
pub(super) fn is_question(row: &str) -> bool {
    row.trim_end().ends_with([':', '?'])
}

static IPYTHON: Pattern = LazyLock::new(|| Regex::new(r"^(In \[\d+\]|\s*\.\.\.): "));

/// The status line of `less` as systemd configures it.
static SYSTEMD_PAGER: Pattern = LazyLock::new(|| Regex::new(r"^lines \d+-\d+"));

/// Ends with the possible answers: `[Y/n]`, `(yes/no)?`, `y/n:`,
/// `[y]es, [n]o:`.
static YES_NO: Pattern = LazyLock::new(|| {
    Regex::new(
        r"(?xi)
        (
          [\[(] \s* (y|n|yes|no) \s* ([/,|] [^\s\])]* \s* )* [\])]+
          ( \s* \[default=\w*\] )?
        | \b (y|yes) \s? / \s? (n|no)
        | \[y\]es \b .* \[n\]o \b .*
        )
        \s* [:?>]* $",
    )
});

/// Asks whether to do something.
static QUESTION: Pattern = LazyLock::new(|| {
    Regex::new(
        r"(?xi)
        \b (
          abort | accept | agree | apply | confirm | continue | correct | delete
        | install | ok | okay | overwrite | proceed | really | remove | replace | retry | save
        | sure | you \s (want|wish|like) \s to
        ) \b [^?]* \? $",
    )
});

/// Can be answered with more than yes or no.
static OPEN_QUESTION: Pattern =
    LazyLock::new(|| Regex::new(r"(?i)\b(how|what|when|where|which|who|why)\b"));

type Pattern = LazyLock<Result<Regex, regex::Error>>;

fn matches(pattern: &Pattern, row: &str) -> bool {
    pattern.as_ref().is_ok_and(|pattern| pattern.is_match(row))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentage_is_no_prompt() {
        for row in ["loading 40%", "100%", "0.5%"] {
            assert!(!is_shell_prompt(row), "{row}");
        }
        for row in ["% ", "%", "host%", "web1% ", "40% $ "] {
            assert!(is_shell_prompt(row), "{row}");
        }
    }

    #[test]
    fn the_patterns_are_valid() {
        for pattern in [&IPYTHON, &SYSTEMD_PAGER, &YES_NO, &QUESTION, &OPEN_QUESTION] {
            assert!(pattern.is_ok(), "{:?}", pattern.as_ref().err());
        }
    }
}
