//! Helpers that create images and compare them, with QEMU's own tools.

use std::{
    ffi::OsStr,
    fs,
    io::Write as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use super::super::{Image, ImageError, OpenOptions};

/// The compression types that this crate was compiled with, by QEMU's names.
pub(super) const COMPRESSION_TYPES: &[&str] = if cfg!(feature = "zstd") {
    &["zlib", "zstd"]
} else {
    &["zlib"]
};

/// A temporary directory. Its path has no symlinks.
pub(super) struct Folder {
    folder: tempfile::TempDir,
}

impl Folder {
    pub(super) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self { folder }
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join(name)
    }

    /// Creates a file.
    pub(super) fn file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, content).unwrap();
        path
    }

    /// Creates a qcow2 image.
    pub(super) fn qcow2(&self, name: &str, options: &[&str], size: u64) -> PathBuf {
        let path = self.path(name);
        qemu_img(create(options, &path).arg(size.to_string()));
        path
    }

    /// Creates a qcow2 image with a backing file.
    pub(super) fn qcow2_above(&self, name: &str, base: (&str, &str), options: &[&str]) -> PathBuf {
        let path = self.path(name);
        let (base, format) = base;
        qemu_img(create(options, &path).args(["-b", base, "-F", format]));
        path
    }

    /// Returns the sorted names in the directory.
    pub(super) fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.folder.path()).unwrap();
        let name = |entry: fs::DirEntry| entry.file_name().into_string().unwrap();
        let mut names: Vec<_> = entries.map(|entry| name(entry.unwrap())).collect();
        names.sort();
        names
    }
}

fn create(options: &[&str], path: &Path) -> Command {
    let mut command = Command::new("qemu-img");
    command.args(["create", "-q", "-f", "qcow2"]);
    for option in options {
        command.args(["-o", option]);
    }
    command.arg(path);
    command
}

/// Runs `qemu-img` and returns its output.
pub(super) fn qemu_img(command: &mut Command) -> String {
    let output = command.stdin(Stdio::null()).output();
    let output = output.unwrap_or_else(|error| panic!("{command:?} (of qemu-utils): {error}"));
    assert!(output.status.success(), "{command:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Returns the contents of an image, as `qemu-img convert` reads them.
pub(super) fn converted(folder: &Folder, image: &Path) -> Vec<u8> {
    let raw = folder.path("converted.raw");
    let mut command = Command::new("qemu-img");
    qemu_img(command.args(["convert", "-O", "raw"]).args([image, &raw]));
    let content = fs::read(&raw).unwrap();
    fs::remove_file(raw).unwrap();
    content
}

/// Runs `qemu-io` commands on an image.
pub(super) fn qemu_io<T: AsRef<OsStr>>(image: &Path, commands: impl IntoIterator<Item = T>) {
    let mut command = Command::new("qemu-io");
    command.args(["-f", "qcow2"]).arg(image);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command
        .spawn()
        .unwrap_or_else(|error| panic!("qemu-io (of qemu-utils): {error}"));
    let mut input = child.stdin.take().unwrap();
    for line in commands {
        input.write_all(line.as_ref().as_encoded_bytes()).unwrap();
        input.write_all(b"\n").unwrap();
    }
    drop(input);
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && !text.contains("failed"),
        "{text}"
    );
}

/// Opens an image with the default options.
pub(super) fn open(path: &Path) -> Result<Image, ImageError> {
    Image::open(path, OpenOptions::new())
}

/// Reads the whole disk, `piece` bytes at a time.
pub(super) fn read_all(image: &Image, piece: usize) -> Vec<u8> {
    let mut disk = vec![0xee; image.size() as usize];
    let offsets = (0..).step_by(piece);
    for (offset, piece) in offsets.zip(disk.chunks_mut(piece)) {
        image.read_at(offset, piece).unwrap();
    }
    disk
}

/// A deterministic random number generator (SplitMix64). Its bytes are
/// incompressible.
pub(super) struct Rng(u64);

impl Rng {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut value = self.0;
        value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        value ^ (value >> 31)
    }

    pub(super) fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    pub(super) fn bytes(&mut self, count: usize) -> Vec<u8> {
        let words = (0..count.div_ceil(8)).flat_map(|_| self.next().to_le_bytes());
        words.take(count).collect()
    }
}
