use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, Seek as _, SeekFrom, Write as _},
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
};

use rustix::process::geteuid;

use super::{
    Receipt, ReceiptEntry, ReceiptError, ReceiptId, ReceiptPublicKey, Verification,
    head::Head,
    key::{ReceiptKey, signed_digest},
    lines::{Line, Lines, MAX_LINE},
    verification,
};
use crate::locate;

/// The receipts of a user, below a folder: see the [module](super). Its methods block on the
/// disk for a moment.
#[derive(Clone, Debug)]
pub struct ReceiptLog {
    folder: PathBuf,
}

const LOG: &str = "log";
const HEAD: &str = "head";
const KEY: &str = "key";
const LOCK: &str = "lock";
/// How the names of files begin that have parts of lines.
const TORN: &str = "torn-";

impl ReceiptLog {
    /// Opens the log of this user: `$XDG_STATE_HOME/vmcell/receipts`, or
    /// `~/.local/state/vmcell/receipts`.
    ///
    /// # Errors
    /// [`ReceiptError::NoFolder`] if there is neither, and as for [`at`](Self::at).
    pub fn open() -> Result<Self, ReceiptError> {
        let state = locate::state_folder().ok_or(ReceiptError::NoFolder)?;
        Self::at(state.join("receipts"))
    }

    /// Opens the log in a folder, which is created if it is not there.
    ///
    /// # Errors
    /// [`ReceiptError::Io`] if it cannot be created, or belongs to another user.
    pub fn at(folder: impl Into<PathBuf>) -> Result<Self, ReceiptError> {
        let folder = folder.into();
        let failed = |error| ReceiptError::io("use the folder", &folder)(error);
        let folder = std::path::absolute(&folder).map_err(failed)?;
        let mut builder = DirBuilder::new();
        let created = builder.recursive(true).mode(0o700).create(&folder);
        created.map_err(failed)?;
        match fs::metadata(&folder).map_err(failed)?.uid() == geteuid().as_raw() {
            true => Ok(Self { folder }),
            false => Err(failed(io::Error::other("it belongs to another user"))),
        }
    }

    /// Returns its folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Makes the signing key of this installation, unless there is one. Receipts are signed
    /// from then on. Returns the public key.
    ///
    /// # Errors
    /// [`ReceiptError::Key`] if there is one that cannot be used, [`ReceiptError::Damaged`]
    /// if the log is.
    pub fn create_key(&self) -> Result<ReceiptPublicKey, ReceiptError> {
        let _lock = self.lock()?;
        let known = ReceiptKey::read(&self.path(KEY))?;
        let (mut head, _) = self.end(known.as_ref())?;
        let key = ReceiptKey::create(&self.folder, &self.path(KEY))?;
        let next = head.count.saturating_add(1);
        head.signed_from.get_or_insert(next);
        head.write(&self.folder, HEAD, Some(&key))?;
        Ok(key.public())
    }

    /// Returns the public key of this installation, if it has one.
    ///
    /// # Errors
    /// [`ReceiptError::Key`] if it cannot be used.
    pub fn public_key(&self) -> Result<Option<ReceiptPublicKey>, ReceiptError> {
        let key = ReceiptKey::read(&self.path(KEY))?;
        Ok(key.map(|key| key.public()))
    }

    /// Checks that a receipt could be appended.
    ///
    /// # Errors
    /// As for [`append`](Self::append).
    pub fn check(&self) -> Result<(), ReceiptError> {
        let _lock = self.lock()?;
        let key = ReceiptKey::read(&self.path(KEY))?;
        self.end(key.as_ref()).map(drop)
    }

    /// Appends a receipt. When this returns, it is on the disk.
    ///
    /// # Errors
    /// [`ReceiptError::Damaged`] if the log is shorter than it was, or has lines that do not
    /// follow the others; [`ReceiptError::Io`] if it cannot be written.
    pub fn append(&self, receipt: &Receipt) -> Result<ReceiptId, ReceiptError> {
        let _lock = self.lock()?;
        let key = ReceiptKey::read(&self.path(KEY))?;
        let (mut head, mut file) = self.end(key.as_ref())?;
        let sequence = head.count.saturating_add(1);
        let mut entry = ReceiptEntry::new(sequence, head.digest, receipt)?;
        if let Some(key) = &key {
            entry.signature = Some(key.sign(&signed_digest(&entry.digest)));
            head.signed_from.get_or_insert(sequence);
        }
        let mut line = entry.line()?;
        if line.len() > MAX_LINE {
            return Err(ReceiptError::TooLong { limit: MAX_LINE });
        }
        line.push('\n');
        let written = file
            .seek(SeekFrom::Start(head.bytes))
            .and_then(|_| file.write_all(line.as_bytes()))
            .and_then(|()| file.sync_data());
        written.map_err(ReceiptError::io("write", self.path(LOG)))?;
        let head = Head {
            count: sequence,
            bytes: head.bytes.saturating_add(line.len() as u64),
            digest: entry.digest.clone(),
            ..head
        };
        head.write(&self.folder, HEAD, key.as_ref())?;
        Ok(entry.id())
    }

    /// Calls `each` with the receipts, the oldest first, until it returns false. Lines that
    /// cannot be read are left out: [`verify`](Self::verify) finds them.
    ///
    /// # Errors
    /// [`ReceiptError::Io`] if the log cannot be read.
    pub fn for_each(&self, mut each: impl FnMut(ReceiptEntry) -> bool) -> Result<(), ReceiptError> {
        let Some(mut lines) = self.lines()? else {
            return Ok(());
        };
        let failed = || ReceiptError::io("read", self.path(LOG));
        while let Some(line) = lines.next().map_err(failed())? {
            if let Line::Whole(line) = line
                && let Some(entry) = ReceiptEntry::parse(&line)
                && !each(entry)
            {
                break;
            }
        }
        Ok(())
    }

    /// Returns the last receipt with this number, audit id or digest: see
    /// [`ReceiptEntry::matches`].
    ///
    /// # Errors
    /// [`ReceiptError::Io`] if the log cannot be read.
    pub fn find(&self, wanted: &str) -> Result<Option<ReceiptEntry>, ReceiptError> {
        let mut found = None;
        self.for_each(|entry| {
            if entry.matches(wanted) {
                found = Some(entry);
            }
            true
        })?;
        Ok(found)
    }

    /// Checks all receipts, with the key of this installation or another one. Reads the log
    /// once, in bounded memory.
    ///
    /// # Errors
    /// [`ReceiptError::Io`] if it cannot be read. That something is wrong with the receipts
    /// is no error: see [`Verification::problem`].
    pub fn verify(&self, key: Option<&ReceiptPublicKey>) -> Result<Verification, ReceiptError> {
        let _lock = self.lock()?;
        let key = match key {
            Some(key) => Some(*key),
            None => self.public_key()?,
        };
        let head = Head::read(&self.path(HEAD));
        verification::verify(self.lines()?, head, key)
            .map_err(ReceiptError::io("read", self.path(LOG)))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    fn lines(&self) -> Result<Option<Lines>, ReceiptError> {
        let path = self.path(LOG);
        match File::open(&path) {
            Ok(file) => Ok(Some(Lines::new(file))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(ReceiptError::io("read", path)(error)),
        }
    }

    /// Waits until nobody else uses the log.
    fn lock(&self) -> Result<LockedFile, ReceiptError> {
        let path = self.path(LOCK);
        let file = open(&path).and_then(|file| file.lock().map(|()| LockedFile(file)));
        file.map_err(ReceiptError::io("lock", path))
    }

    /// Returns the head as it should be and the log. Counts lines that a crash has left after
    /// the head, and sets aside a part of one. The caller has the lock.
    fn end(&self, key: Option<&ReceiptKey>) -> Result<(Head, File), ReceiptError> {
        let damaged = |reason: &str| ReceiptError::Damaged {
            folder: self.folder.clone(),
            reason: reason.to_owned(),
        };
        let head = Head::read(&self.path(HEAD));
        let head = head.map_err(|_| damaged("its head cannot be read"))?;
        let path = self.path(LOG);
        let io_error = || ReceiptError::io("read", &path);
        let mut file = open(&path).map_err(io_error())?;
        let length = file.metadata().map_err(io_error())?.len();
        let mut head = match head {
            Some(head) => head,
            // Before the first line, so that it is never missing because of a crash.
            None if length == 0 => {
                let head = Head {
                    signed_from: key.map(|_| 1),
                    ..Head::default()
                };
                head.clone().write(&self.folder, HEAD, key)?;
                head
            }
            None => return Err(damaged("its head is missing")),
        };
        if length < head.bytes {
            return Err(damaged("lines at its end are missing"));
        }
        if length == head.bytes {
            return Ok((head, file));
        }
        file.seek(SeekFrom::Start(head.bytes)).map_err(io_error())?;
        let mut lines = Lines::new(file.try_clone().map_err(io_error())?);
        while let Some(line) = lines.next().map_err(io_error())? {
            match line {
                Line::Whole(line) => {
                    let entry = ReceiptEntry::parse(&line);
                    let next = entry.filter(|entry| {
                        entry.sequence == head.count.saturating_add(1)
                            && entry.previous == head.digest
                            && entry.computed_digest().is_ok_and(|it| it == entry.digest)
                    });
                    let Some(entry) = next else {
                        return Err(damaged("it has lines that do not follow the last one"));
                    };
                    head.count = entry.sequence;
                    head.digest = entry.digest;
                    head.bytes = head.bytes.saturating_add(line.len() as u64 + 1);
                }
                Line::Torn(rest) => {
                    self.set_aside(&head, &rest)?;
                    file.set_len(head.bytes).map_err(io_error())?;
                    break;
                }
            }
        }
        Ok((head, file))
    }

    fn set_aside(&self, head: &Head, rest: &[u8]) -> Result<(), ReceiptError> {
        let path = self.path(&format!("{TORN}{}", head.count.saturating_add(1)));
        tracing::warn!(path = %path.display(), "a receipt was not finished, and is set aside");
        let mut options = OpenOptions::new();
        let options = options.create(true).append(true).mode(0o600);
        let written = options
            .open(&path)
            .and_then(|mut file| file.write_all(rest).and_then(|()| file.sync_data()));
        written.map_err(ReceiptError::io("write", path))
    }
}

/// A file that this program has locked.
struct LockedFile(File);

impl Drop for LockedFile {
    fn drop(&mut self) {
        // Closing it is not enough: a process that was just forked has it, too.
        if let Err(error) = self.0.unlock() {
            tracing::warn!(%error, "cannot release the lock of the receipts");
        }
    }
}

fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    options.mode(0o600).open(path)
}
