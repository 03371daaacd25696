//! Forwards a source to the standard input of a command in the guest.

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
pub(crate) enum StdinSource {
    /// Our own standard input.
    Inherited,
    /// Nothing: standard input is empty.
    Empty,
    /// A file.
    File(PathBuf),
}

/// An open source.
pub(crate) type Reader = Box<dyn Read + Send>;

impl StdinSource {
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        match text {
            "" => Err("expected a file or `none`".to_owned()),
            "inherit" | "-" => Ok(Self::Inherited),
            "none" => Ok(Self::Empty),
            path => Ok(Self::File(path.into())),
        }
    }

    /// Opens the source. Returns `None` if there is nothing to read.
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

/// Copies a source to the command's standard input until either of them ends.
///
/// A separate thread reads: a blocking read from a terminal cannot be
/// cancelled, and must not keep the program from exiting.
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
                // The command sees end of file, so report that the input was
                // cut short.
                Err(error) => return failure::report(&format!("standard input: {error}")),
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
