use std::{io, path::PathBuf};

use vmcell::{
    Exit,
    disk::{DiskError, image::ImageError},
    printable,
};

/// Why an environment was not built.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// Something in the Dockerfile is wrong, or not known.
    #[error("line {line}: {problem}")]
    Line {
        /// The number of the line.
        line: usize,
        /// What is wrong, and what to do.
        problem: String,
    },

    /// A command of a RUN failed. What it printed was reported while it ran.
    #[error("line {line}: `{command}` failed: {}", .exit.cause)]
    Command {
        /// The number of the line.
        line: usize,
        /// The command.
        command: String,
        /// How it ended.
        exit: Box<Exit>,
    },

    /// The VM of a step failed.
    #[error("line {line}: {source}")]
    Vm {
        /// The number of the line.
        line: usize,
        /// The error of the VM.
        source: Box<vmcell::Error>,
    },

    /// A file of the host could not be read.
    #[error("cannot read {}: {source}", .path.display())]
    Read {
        /// Its path.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },

    /// An argument is not declared by any ARG.
    #[error(
        "no ARG declares {name:?}: check its name, or add `ARG {name}` to the stage that uses it"
    )]
    UnknownArgument {
        /// The name.
        name: String,
    },

    /// There is no stage with this name.
    #[error("there is no stage {name:?}: `FROM … AS NAME` gives names")]
    NoStage {
        /// The name.
        name: String,
    },

    /// An image that was to be built on was not given.
    #[error("the image {name:?} was not given")]
    NoImage {
        /// The name.
        name: String,
    },

    /// The layer of a step could not be made.
    #[error(transparent)]
    Layer(#[from] ImageError),

    /// The disk of another stage could not be read.
    #[error(transparent)]
    Disk(#[from] DiskError),

    /// The result could not be stored.
    #[error(transparent)]
    Store(#[from] vmcell_rootfs::Error),
}

impl BuildError {
    pub(crate) fn at(line: usize, problem: impl Into<String>) -> Self {
        Self::Line {
            line,
            // It may quote words of the file, whatever those have.
            problem: printable(problem.into().as_bytes()).into_owned(),
        }
    }

    pub(crate) fn vm(line: usize) -> impl Fn(vmcell::Error) -> Self {
        move |source| Self::Vm {
            line,
            source: Box::new(source),
        }
    }

    pub(crate) fn read(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Read { path, source }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instruction_with_control_characters_cannot_drive_a_terminal() {
        let error = BuildError::at(2, "the instruction AR\x1b[2J is not known here");
        let text = error.to_string();
        assert_eq!(
            text,
            "line 2: the instruction AR\u{fffd}[2J is not known here"
        );
    }
}
