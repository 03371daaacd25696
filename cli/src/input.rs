//! The command's standard input, on its way to the guest.

use std::{
    fs::File,
    io::{self, ErrorKind, Read},
    path::PathBuf,
    thread,
};

use bytes::Bytes;
use tokio::sync::mpsc;
use vmcell::{Error, ExecInput};

use crate::failure;

/// Where a command's standard input comes from.
#[derive(Clone, Debug)]
pub(crate) enum Source {
    /// From ours.
    Inherited,
    /// From nowhere: it is empty.
    Empty,
    /// From a file.
    File(PathBuf),
}

/// A source that is open.
pub(crate) type Reader = Box<dyn Read + Send>;

impl Source {
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        match text {
            "" => Err("name a file, or `none`".to_owned()),
            "inherit" | "-" => Ok(Self::Inherited),
            "none" => Ok(Self::Empty),
            path => Ok(Self::File(path.into())),
        }
    }

    /// What to read from. None if there is nothing to read.
    pub(crate) fn open(&self) -> Result<Option<Reader>, Error> {
        match self {
            Self::Inherited => Ok(Some(Box::new(io::stdin()))),
            Self::Empty => Ok(None),
            Self::File(path) => {
                let file = File::open(path).and_then(|file| match file.metadata()?.is_dir() {
                    true => Err(ErrorKind::IsADirectory.into()),
                    false => Ok(file),
                });
                let file = file.map_err(|error| Error::BadFile {
                    what: "standard input",
                    path: path.clone(),
                    reason: error.to_string(),
                })?;
                Ok(Some(Box::new(file)))
            }
        }
    }
}

/// Copies a source to the command's standard input, until one of them ends.
///
/// A thread of its own reads it: a read from a terminal cannot be taken back,
/// and must not keep the program from ending.
pub(crate) fn forward(mut reader: Reader, input: ExecInput) {
    let (sender, mut receiver) = mpsc::channel::<Bytes>(1);
    thread::spawn(move || {
        let mut buffer = vec![0; 64 * 1024];
        loop {
            match reader.read(&mut buffer) {
                Ok(0) => return,
                Ok(count) => {
                    let bytes = Bytes::copy_from_slice(&buffer[..count]);
                    if sender.blocking_send(bytes).is_err() {
                        return;
                    }
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // The command gets an end, so somebody must be told that it
                // is not the real one.
                Err(error) => return failure::say(&format!("standard input: {error}")),
            }
        }
    });
    tokio::spawn(async move {
        while let Some(bytes) = receiver.recv().await {
            if !input.write(bytes).await {
                return;
            }
        }
        input.end();
    });
}
