use super::{
    CommandForm, Flags,
    command_form::{list, shell},
};
use crate::syntax::HereDocument;

/// `RUN COMMAND`
#[derive(Clone, Debug)]
pub(crate) struct RunInstruction {
    /// Whether the command reaches nothing, whatever the policy allows.
    pub(crate) is_offline: bool,
    pub(crate) script: Script,
}

/// What is run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Script {
    Command(Vec<String>),
    /// A file that names its interpreter in its first line.
    File(String),
}

impl RunInstruction {
    pub(super) fn parse(
        mut flags: Flags,
        arguments: &str,
        documents: Vec<HereDocument>,
    ) -> Result<Self, String> {
        let is_offline = match flags.take("network")?.as_deref() {
            None | Some("default") => false,
            Some("none") => true,
            Some(other) => {
                return Err(format!(
                    "RUN --network={other} is not known here: the caller's policy decides"
                ));
            }
        };
        flags.finish("RUN")?;
        Ok(Self {
            is_offline,
            script: Script::parse(arguments, &documents),
        })
    }
}

impl Script {
    fn parse(arguments: &str, documents: &[HereDocument]) -> Self {
        if let Some(list) = list(arguments) {
            return Self::Command(list);
        }
        // The document is the script itself.
        if let ([document], false) = (documents, arguments.contains(char::is_whitespace)) {
            let text = document.text();
            return match text.starts_with("#!") {
                true => Self::File(text),
                false => Self::Command(shell(&text)),
            };
        }
        // The shell reads them as they are written.
        let mut line = arguments.to_owned();
        for document in documents {
            line.push('\n');
            line.push_str(&document.content);
            line.push_str(&document.name);
        }
        if !documents.is_empty() {
            line.push('\n');
        }
        Self::Command(CommandForm::Line(line).argv())
    }
}
