//! What the statements of a Dockerfile mean.

mod command_form;
mod copy;
mod flags;
mod from;
mod ports;
mod run;

pub(crate) use command_form::CommandForm;
pub(crate) use copy::{CopyFrom, CopyInstruction, CopySource};
pub(crate) use from::FromInstruction;
pub(crate) use ports::parse_ports;
pub(crate) use run::{RunInstruction, Script};

use flags::Flags;

use crate::{
    BuildError,
    syntax::{Statement, pairs, words},
};

/// An instruction. Variables are not expanded yet.
#[derive(Clone, Debug)]
pub(crate) enum Instruction {
    From(FromInstruction),
    Run(RunInstruction),
    Copy(CopyInstruction),
    Env(Vec<(String, String)>),
    Arg(Vec<(String, Option<String>)>),
    Label(Vec<(String, String)>),
    Expose(Vec<String>),
    WorkDirectory(String),
    User(String),
    Entrypoint(CommandForm),
    Command(CommandForm),
}

/// An instruction with its place.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub(crate) line: usize,
    /// As it is written, on one line.
    pub(crate) text: String,
    pub(crate) instruction: Instruction,
}

impl Step {
    pub(crate) fn parse(statement: Statement, escape: char) -> Result<Self, BuildError> {
        let line = statement.line;
        let text = format!("{} {}", statement.keyword, statement.arguments);
        let instruction = Instruction::parse(statement, escape);
        Ok(Self {
            line,
            text,
            instruction: instruction.map_err(|problem| BuildError::at(line, problem))?,
        })
    }
}

impl Instruction {
    fn parse(statement: Statement, escape: char) -> Result<Self, String> {
        let keyword = statement.keyword;
        let (flags, arguments) = Flags::split(&statement.arguments)?;
        if arguments.is_empty() {
            return Err(format!("{keyword} needs an argument"));
        }
        let documents = statement.here_documents;
        match keyword.as_str() {
            "FROM" => return FromInstruction::parse(flags, arguments).map(Self::From),
            "RUN" => return RunInstruction::parse(flags, arguments, documents).map(Self::Run),
            "COPY" | "ADD" => {
                let copy = CopyInstruction::parse(&keyword, flags, arguments, documents);
                return copy.map(Self::Copy);
            }
            _ => flags.finish(&keyword)?,
        }
        let text = || arguments.to_owned();
        let argument = |word: &str| match word.split_once('=') {
            Some((name, value)) => (name.to_owned(), Some(value.to_owned())),
            None => (word.to_owned(), None),
        };
        Ok(match keyword.as_str() {
            "ENV" => Self::Env(pairs(arguments, escape)?),
            "LABEL" => Self::Label(pairs(arguments, escape)?),
            "ARG" => Self::Arg(words(arguments, escape).into_iter().map(argument).collect()),
            "EXPOSE" => Self::Expose(arguments.split_whitespace().map(str::to_owned).collect()),
            "WORKDIR" => Self::WorkDirectory(text()),
            "USER" => Self::User(text()),
            "ENTRYPOINT" => Self::Entrypoint(CommandForm::parse(arguments)),
            "CMD" => Self::Command(CommandForm::parse(arguments)),
            _ => return Err(format!("the instruction {keyword} is not known here")),
        })
    }
}
