use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use super::EnvironmentName;
use crate::Error;
use crate::oci::Defaults;

/// What is written down about an environment that was imported.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Record {
    /// Of this file.
    pub(super) version: u32,
    /// Where it is from.
    pub(super) source: String,
    /// The digest of the image of the container.
    pub(super) digest: String,
    /// The name of the disk image.
    pub(super) image: String,
    /// Seconds since 1970.
    pub(super) made: u64,
    /// The digests of what was pulled for it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) blobs: Vec<String>,
    /// The names of the layers of its steps.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) layers: Vec<String>,
    #[serde(default)]
    pub(super) defaults: Defaults,
}

/// The version of records.
pub(super) const VERSION: u32 = 1;

/// The largest record: labels and variables can be long.
const MAX_BYTES: u64 = 8 << 20;

const SUFFIX: &str = ".json";

/// A folder of records, by the name of the environment.
#[derive(Clone, Debug)]
pub(super) struct Records(PathBuf);

impl Records {
    pub(super) fn at(folder: PathBuf) -> Self {
        Self(folder)
    }

    fn path(&self, name: &EnvironmentName) -> PathBuf {
        self.0.join(format!("{name}{SUFFIX}"))
    }

    /// Returns all records, by name.
    pub(super) fn all(&self) -> Result<Vec<(EnvironmentName, Record)>, Error> {
        let entries = match fs::read_dir(&self.0) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(source) => return Err(read_error(&self.0, source)),
        };
        let mut names: Vec<_> = entries
            .filter_map(|entry| {
                let name = entry.ok()?.file_name();
                EnvironmentName::parse(name.to_str()?.strip_suffix(SUFFIX)?)
            })
            .collect();
        names.sort();
        let mut records = Vec::new();
        for name in names {
            // It may be removed meanwhile.
            if let Some(record) = self.get(&name)? {
                records.push((name, record));
            }
        }
        Ok(records)
    }

    pub(super) fn get(&self, name: &EnvironmentName) -> Result<Option<Record>, Error> {
        let path = self.path(name);
        let read = || {
            use std::io::Read as _;
            let mut text = Vec::new();
            File::open(&path)?.take(MAX_BYTES).read_to_end(&mut text)?;
            let record: Record = serde_json::from_slice(&text).map_err(io::Error::other)?;
            match record.version {
                VERSION => Ok(record),
                _ => Err(io::Error::other("it is of another version of vmcell")),
            }
        };
        match read() {
            Ok(record) => Ok(Some(record)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(read_error(&path, source)),
        }
    }

    /// Writes a record, or replaces it.
    pub(super) fn put(&self, name: &EnvironmentName, record: &Record) -> Result<(), Error> {
        let path = self.path(name);
        let write = || {
            fs::create_dir_all(&self.0)?;
            let mut file = tempfile::NamedTempFile::new_in(&self.0)?;
            serde_json::to_writer_pretty(&mut file, record).map_err(io::Error::other)?;
            file.write_all(b"\n")?;
            file.as_file().sync_all()?;
            file.persist(&path).map_err(|error| error.error)?;
            Ok(())
        };
        write().map_err(|source| Error::Write {
            path: path.clone(),
            source,
        })
    }

    pub(super) fn remove(&self, name: &EnvironmentName) -> Result<(), Error> {
        let path = self.path(name);
        fs::remove_file(&path).map_err(|source| Error::Write { path, source })
    }
}

pub(super) fn seconds(time: SystemTime) -> u64 {
    let since = time.duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}

fn read_error(path: &Path, source: io::Error) -> Error {
    Error::Read {
        path: path.to_owned(),
        source,
    }
}
