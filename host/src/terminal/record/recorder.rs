use std::{
    fs::File,
    io::{self, BufWriter, ErrorKind, Write},
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
};

use tempfile::NamedTempFile;

use super::{Interaction, Session, folder::NewFolder};

/// Writes the records of a session.
///
/// Drop it after the first error: what was written before is consistent, and
/// nothing may follow a gap.
#[derive(Debug)]
pub(crate) struct Recorder {
    folder: PathBuf,
    transcript: BufWriter<File>,
    /// The length of the transcript, including what is buffered.
    transcript_length: u64,
    interactions: File,
    /// The length of all complete lines of the interactions.
    interactions_length: u64,
}

/// Why records could not be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum RecordError {
    /// The folder holds the records of another session.
    #[error("{} holds the records of another session: name another folder", folder.display())]
    FolderInUse {
        /// The folder.
        folder: PathBuf,
    },
    /// A file or folder cannot be written.
    #[error("cannot write {}: {source}", path.display())]
    Write {
        /// The file or folder.
        path: PathBuf,
        /// The error of the write.
        source: io::Error,
    },
}

const TRANSCRIPT: &str = "transcript.log";
const INTERACTIONS: &str = "interaction.jsonl";
const SESSION: &str = "session.json";

impl Recorder {
    /// Starts records in a folder, which is created if it does not exist. Fails
    /// if it holds records already.
    ///
    /// On failure, all that was created is removed.
    pub(crate) fn create(folder: &Path, session: &Session) -> Result<Self, RecordError> {
        let at = |name: &str| {
            let path = folder.join(name);
            move |source: io::Error| match source.kind() {
                ErrorKind::AlreadyExists => RecordError::FolderInUse {
                    folder: folder.to_owned(),
                },
                _ => RecordError::Write { path, source },
            }
        };
        let mut new = NewFolder::create(folder).map_err(|source| RecordError::Write {
            path: folder.to_owned(),
            source,
        })?;
        let transcript = new.create_file(TRANSCRIPT).map_err(at(TRANSCRIPT))?;
        let interactions = new.create_file(INTERACTIONS).map_err(at(INTERACTIONS))?;
        let recorder = Self {
            folder: folder.to_owned(),
            transcript: BufWriter::with_capacity(64 * 1024, transcript),
            transcript_length: 0,
            interactions,
            interactions_length: 0,
        };
        let file = recorder.session_file(session).map_err(at(SESSION))?;
        file.persist_noclobber(recorder.folder.join(SESSION))
            .map_err(|error| at(SESSION)(error.error))?;
        new.keep();
        Ok(recorder)
    }

    /// Appends output. It is written at the latest with the next
    /// [`Recorder::flush`].
    pub(crate) fn append_output(&mut self, bytes: &[u8]) -> Result<(), RecordError> {
        let written = self.transcript.write_all(bytes);
        self.transcript_length += u64::try_from(bytes.len()).unwrap_or(0);
        written.map_err(self.write_error(TRANSCRIPT))
    }

    /// Overwrites `count` bytes of the transcript, starting `back` bytes before
    /// its end.
    pub(crate) fn mask(&mut self, back: u64, count: u64, mask: u8) -> Result<(), RecordError> {
        self.flush()?;
        let start = self.transcript_length.saturating_sub(back);
        let count = count.min(self.transcript_length - start);
        let masks = vec![mask; usize::try_from(count).unwrap_or(0)];
        let written = self.transcript.get_ref().write_all_at(&masks, start);
        written.map_err(self.write_error(TRANSCRIPT))
    }

    /// Writes buffered output.
    pub(crate) fn flush(&mut self) -> Result<(), RecordError> {
        let written = self.transcript.flush();
        written.map_err(self.write_error(TRANSCRIPT))
    }

    /// Appends an interaction.
    pub(crate) fn log(&mut self, interaction: &Interaction) -> Result<(), RecordError> {
        let written = self.append_line(interaction);
        written.map_err(self.write_error(INTERACTIONS))
    }

    /// Replaces the session file.
    pub(crate) fn save(&self, session: &Session) -> Result<(), RecordError> {
        let saved = self.session_file(session).and_then(|file| {
            file.persist(self.folder.join(SESSION))
                .map_err(|error| error.error)
        });
        saved.map(drop).map_err(self.write_error(SESSION))
    }

    fn append_line(&mut self, interaction: &Interaction) -> io::Result<()> {
        let mut line = serde_json::to_vec(interaction)?;
        line.push(b'\n');
        if let Err(error) = self.interactions.write_all(&line) {
            // Removes the incomplete line, which would be invalid JSON.
            let _ = self.interactions.set_len(self.interactions_length);
            return Err(error);
        }
        self.interactions_length += u64::try_from(line.len()).unwrap_or(0);
        Ok(())
    }

    /// Writes a temporary session file, which can then be renamed atomically.
    fn session_file(&self, session: &Session) -> io::Result<NamedTempFile> {
        let mut file = NamedTempFile::new_in(&self.folder)?;
        serde_json::to_writer_pretty(&mut file, session)?;
        file.write_all(b"\n")?;
        Ok(file)
    }

    fn write_error(&self, name: &str) -> impl FnOnce(io::Error) -> RecordError + use<> {
        let path = self.folder.join(name);
        move |source| RecordError::Write { path, source }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::OpenOptions;

    use super::*;

    #[test]
    fn a_full_disk_is_told() {
        let full = || OpenOptions::new().write(true).open("/dev/full").unwrap();
        let mut recorder = Recorder {
            folder: PathBuf::from("/records"),
            transcript: BufWriter::new(full()),
            transcript_length: 0,
            interactions: full(),
            interactions_length: 0,
        };
        recorder.append_output(b"little").unwrap();
        for failed in [recorder.flush(), recorder.log(&Interaction::run("ls"))] {
            let error = failed.unwrap_err().to_string();
            assert!(error.contains("No space left on device"), "{error}");
        }
    }
}
