/// A command as a list (`["ls", "-l"]`), or as a line for a shell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CommandForm {
    List(Vec<String>),
    Line(String),
}

impl CommandForm {
    pub(super) fn parse(text: &str) -> Self {
        match list(text) {
            Some(list) => Self::List(list),
            None => Self::Line(text.to_owned()),
        }
    }

    /// Returns the program and its arguments.
    pub(crate) fn argv(&self) -> Vec<String> {
        match self {
            Self::List(argv) => argv.clone(),
            Self::Line(line) => shell(line),
        }
    }
}

/// Returns the strings of a JSON list. What is none is meant for a shell.
pub(super) fn list(text: &str) -> Option<Vec<String>> {
    let is_list = text.starts_with('[');
    is_list.then(|| serde_json::from_str(text).ok()).flatten()
}

/// Returns the command that runs a line.
pub(super) fn shell(line: &str) -> Vec<String> {
    ["/bin/sh", "-c", line].map(str::to_owned).to_vec()
}
