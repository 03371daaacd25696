//! What was run in a workspace: a file for each command, with a line when it begins and
//! one when it has ended. The program that runs the command has the file locked.

use std::{
    fs::{self, DirBuilder, File},
    io::{self, Write as _},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::{
    command_record::{CommandRecord, CommandState, RecordedOutput},
    lock::FileLock,
    timestamp::Timestamp,
};
use crate::{
    error::Error,
    hex,
    process::{Command, Output, Truncation},
};

/// The history of a workspace.
#[derive(Clone, Debug)]
pub(super) struct History {
    folder: PathBuf,
}

/// The first line.
#[derive(Debug, Serialize, Deserialize)]
struct Beginning {
    argv: Vec<String>,
    cwd: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    user: Option<String>,
    began: Timestamp,
}

/// The second line.
#[derive(Debug, Serialize, Deserialize)]
struct Ending {
    ended: Timestamp,
    /// Without it, `error` says why it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cause: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    code: Option<u8>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    stdout: OutputRecord,
    stderr: OutputRecord,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct OutputRecord {
    text: String,
    bytes: u64,
    sha256: String,
}

/// A command that is being recorded.
#[derive(Debug)]
pub(super) struct Recording {
    file: File,
    _lock: FileLock,
}

/// How many commands may run at once, for [`History::has_running`].
const LAST: usize = 100;

/// The size of the largest file that is read.
const MAX_SIZE: u64 = 4 << 20;

impl History {
    pub(super) fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// Records that a command begins.
    pub(super) fn begin(&self, command: &Command) -> io::Result<Recording> {
        let (argv, cwd, user) = command.summary();
        let beginning = Beginning {
            argv,
            cwd,
            user,
            began: Timestamp::now(),
        };
        let created = DirBuilder::new().mode(0o700).create(&self.folder);
        match created {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        let mut number = self.numbers().max().unwrap_or(0) + 1;
        loop {
            let path = self.path(number);
            let mut options = File::options();
            let created = options
                .append(true)
                .create_new(true)
                .mode(0o600)
                .open(&path);
            let mut file = match created {
                // Another program was faster.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    number += 1;
                    continue;
                }
                created => created?,
            };
            // Readers take a file that is not locked for that of a program that has died.
            let lock = FileLock::try_take(&path)?.ok_or(io::ErrorKind::WouldBlock)?;
            file.write_all(&line(&beginning)?)?;
            return Ok(Recording { file, _lock: lock });
        }
    }

    /// Returns all commands, the oldest first.
    pub(super) fn list(&self) -> Vec<CommandRecord> {
        let mut numbers: Vec<_> = self.numbers().collect();
        numbers.sort_unstable();
        numbers
            .into_iter()
            .filter_map(|number| self.read(number))
            .collect()
    }

    /// Returns how many commands there are.
    pub(super) fn count(&self) -> u64 {
        self.numbers().count() as u64
    }

    /// Returns whether one of the last commands runs.
    pub(super) fn has_running(&self) -> bool {
        let mut numbers: Vec<_> = self.numbers().collect();
        numbers.sort_unstable();
        let mut last = numbers.into_iter().rev().take(LAST);
        last.any(|number| FileLock::is_held(&self.path(number)).unwrap_or(false))
    }

    /// Forgets everything.
    pub(super) fn clear(&self) -> io::Result<()> {
        match fs::remove_dir_all(&self.folder) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    fn path(&self, number: u64) -> PathBuf {
        self.folder.join(format!("{number:08}.json"))
    }

    fn numbers(&self) -> impl Iterator<Item = u64> {
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        entries.filter_map(|entry| {
            let name = entry.file_name();
            name.to_str()?.strip_suffix(".json")?.parse().ok()
        })
    }

    /// Returns a command; `None` if nothing was written yet.
    fn read(&self, number: u64) -> Option<CommandRecord> {
        let path = self.path(number);
        // First: a command that ends meanwhile has its second line then.
        let is_running = FileLock::is_held(&path).unwrap_or(false);
        let text = read_bounded(&path).ok()?;
        let mut lines = text.split_inclusive(|byte| *byte == b'\n');
        let mut next = || lines.next().filter(|line| line.ends_with(b"\n"));
        let beginning: Beginning = serde_json::from_slice(next()?).ok()?;
        let ending = next().and_then(|line| serde_json::from_slice::<Ending>(line).ok());
        let mut record = CommandRecord {
            number,
            argv: beginning.argv,
            cwd: beginning.cwd,
            user: beginning.user,
            began: beginning.began.time(),
            ended: None,
            state: match is_running {
                true => CommandState::Running,
                false => CommandState::Interrupted,
            },
            stdout: RecordedOutput::default(),
            stderr: RecordedOutput::default(),
        };
        if let Some(ending) = ending {
            record.ended = Some(ending.ended.time());
            record.state = match (ending.cause, ending.error) {
                (Some(cause), _) => CommandState::Ended {
                    cause,
                    code: ending.code,
                },
                (None, error) => CommandState::Failed(error.unwrap_or_default()),
            };
            record.stdout = ending.stdout.into();
            record.stderr = ending.stderr.into();
        }
        Some(record)
    }
}

impl Recording {
    /// Records how the command ended.
    pub(super) fn finish(mut self, result: &Result<Output, Error>) -> io::Result<()> {
        let output = match result {
            Ok(output) => Some(output),
            Err(Error::ExecTimeout { partial, .. } | Error::OutputLimit { partial, .. }) => {
                Some(&**partial)
            }
            Err(_) => None,
        };
        let cause = match result {
            Ok(output) => output.exit.map(|exit| exit.cause),
            Err(error) => error.cause(),
        };
        let ending = Ending {
            ended: Timestamp::now(),
            cause: cause.map(|cause| cause.name().to_owned()),
            code: output.and_then(Output::code),
            error: match result {
                Ok(_) => None,
                Err(error) => Some(error.to_string()),
            },
            stdout: output.map_or_else(OutputRecord::default, |output| {
                OutputRecord::new(&output.stdout, output.stdout_truncation)
            }),
            stderr: output.map_or_else(OutputRecord::default, |output| {
                OutputRecord::new(&output.stderr, output.stderr_truncation)
            }),
        };
        self.file.write_all(&line(&ending)?)
    }
}

impl OutputRecord {
    fn new(bytes: &[u8], truncation: Option<Truncation>) -> Self {
        let missing = truncation.map_or(0, |truncation| truncation.bytes);
        let start = bytes.len().saturating_sub(RecordedOutput::MAX);
        let end = bytes.get(start..).unwrap_or_default();
        Self {
            text: String::from_utf8_lossy(end).into_owned(),
            bytes: missing.saturating_add(bytes.len() as u64),
            sha256: hex::encode(&Sha256::digest(bytes)),
        }
    }
}

impl From<OutputRecord> for RecordedOutput {
    fn from(record: OutputRecord) -> Self {
        Self {
            text: record.text,
            bytes: record.bytes,
            sha256: record.sha256,
        }
    }
}

fn line(value: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    Ok(line)
}

fn read_bounded(path: &Path) -> io::Result<Vec<u8>> {
    match fs::metadata(path)?.len() {
        0..=MAX_SIZE => fs::read(path),
        _ => Err(io::ErrorKind::FileTooLarge.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_running_until_it_has_ended_or_its_recorder_is_gone() {
        let folder = tempfile::tempdir().unwrap();
        let history = History::new(folder.path().join("history"));
        assert!(history.list().is_empty());
        let command = Command::from_argv(["echo", "a b"])
            .env("SECRET", "hidden")
            .user("me");
        let first = history.begin(&command).unwrap();
        let second = history.begin(&Command::shell("true")).unwrap();
        let list = history.list();
        assert_eq!(list[0].argv, ["echo", "a b"]);
        assert_eq!(list[0].user.as_deref(), Some("me"));
        assert_eq!((list[0].number, list[1].number), (1, 2));
        assert!(list.iter().all(|it| it.state == CommandState::Running));
        assert!(history.has_running());
        first.finish(&Err(Error::Paused)).unwrap();
        drop(second);
        let list = history.list();
        assert!(matches!(list[0].state, CommandState::Failed(_)), "{list:?}");
        assert_eq!(list[1].state, CommandState::Interrupted);
        assert!(!history.has_running());
        let text = fs::read_to_string(history.path(1)).unwrap();
        assert!(!text.contains("hidden"), "{text}");
        assert_eq!(history.count(), 2);
        history.clear().unwrap();
        history.clear().unwrap();
        assert_eq!(history.count(), 0);
    }

    #[test]
    fn of_a_long_output_the_end_is_kept() {
        let long = [b"a".repeat(RecordedOutput::MAX), b"end".to_vec()].concat();
        let gap = Truncation { at: 0, bytes: 5 };
        let output = RecordedOutput::from(OutputRecord::new(&long, Some(gap)));
        assert!(output.text.ends_with("end") && output.is_cut());
        assert_eq!(output.text.len(), RecordedOutput::MAX);
        assert_eq!(output.bytes, long.len() as u64 + 5);
    }

    #[test]
    fn a_line_that_is_not_whole_is_not_read() {
        let folder = tempfile::tempdir().unwrap();
        let history = History::new(folder.path().to_owned());
        drop(history.begin(&Command::new("true")).unwrap());
        let mut file = File::options().append(true).open(history.path(1)).unwrap();
        file.write_all(b"{\"ended\":1,\"cause\":\"code\"").unwrap();
        assert_eq!(history.list()[0].state, CommandState::Interrupted);
        fs::write(history.path(2), "{").unwrap();
        assert_eq!(history.list().len(), 1);
    }
}
