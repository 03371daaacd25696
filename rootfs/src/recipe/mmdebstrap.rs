//! Installs a Debian with `mmdebstrap`.

use std::convert::Infallible;
use std::env;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use rustix::process::geteuid;

use super::apt::{Apt, source_files};
use crate::scratch::ScratchFolder;
use crate::tools::{Tool, one_line};
use crate::{Error, Tools, Tree};

/// A hook of `mmdebstrap` that makes `/bin` a link before it has any files. Merging afterwards
/// would require a package that depends on all of Perl.
const MERGED_USR_HOOK: &str = "/usr/share/mmdebstrap/hooks/merged-usr";

/// The messages with which `mmdebstrap` begins its steps, and the fraction of its work that is
/// done by then.
const STEPS: [(&str, f32); 8] = [
    ("I: running apt-get update", 0.02),
    ("I: downloading packages", 0.1),
    ("I: extracting archives", 0.3),
    ("I: installing essential packages", 0.4),
    ("I: installing remaining packages", 0.65),
    ("I: cleaning package lists", 0.92),
    ("I: creating tarball", 0.93),
    ("I: done", 0.99),
];

/// The variables of our environment that are passed on: the proxies.
const PROXY_VARIABLES: [&str; 3] = ["http_proxy", "https_proxy", "no_proxy"];

/// How often the messages are read for progress.
const REPORT_INTERVAL: Duration = Duration::from_millis(100);

/// A run of `mmdebstrap`.
#[derive(Debug)]
pub(super) struct Mmdebstrap<'a> {
    pub(super) tools: &'a Tools,
    pub(super) suite: &'a str,
    pub(super) packages: &'a [&'a str],
    /// The package mirror; `None` uses the host's package sources.
    pub(super) mirror: Option<&'a str>,
    /// Newer modification times are clamped to this.
    pub(super) epoch: u32,
}

impl Mmdebstrap<'_> {
    /// Downloads and installs the packages, and reports the fraction (0 to 1) that is done.
    ///
    /// `mmdebstrap` unpacks in a temporary folder that it removes, and writes an archive to its
    /// stdout. If this process is killed, writing to the closed pipe fails, and `mmdebstrap` cleans
    /// up and exits.
    pub(super) fn run(&self, progress: &mut dyn FnMut(f32)) -> Result<Tree, Error> {
        let scratch = ScratchFolder::new()?;
        let mut messages = Messages::new(&scratch.path().join("messages"))?;
        let mut tool = self.command(&scratch)?;
        tool.command
            .stdout(Stdio::piped())
            .stderr(messages.writer()?);
        let mut child = tool
            .command
            .spawn()
            .map_err(|source| tool.unusable(source))?;
        let archive = child.stdout.take();
        let tree = thread::scope(|scope| {
            // Nothing is sent: the end of the thread is the end of the channel.
            let (until_unpacked, unpacked) = mpsc::channel::<Infallible>();
            let unpacking = scope.spawn(move || {
                let _until_unpacked = until_unpacked;
                unpack(archive)
            });
            while unpacked.recv_timeout(REPORT_INTERVAL) == Err(RecvTimeoutError::Timeout) {
                messages.report(progress);
            }
            unpacking.join()
        });
        let status = child.wait().map_err(|source| tool.unusable(source))?;
        messages.report(progress);
        if !status.success() {
            return Err(Error::BootstrapFailed {
                output: one_line(messages.failure_text()),
            });
        }
        tree.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }

    fn command(&self, scratch: &ScratchFolder) -> Result<Tool, Error> {
        let apt = Apt::of_host(self.tools);
        let variables = PROXY_VARIABLES.map(|name| Some((name, env::var_os(name)?)));
        let mut tool = self.tools.tool("mmdebstrap", "mmdebstrap")?;
        if geteuid().is_root() {
            // As root, `mmdebstrap` creates no namespace. So that nothing is left behind if it is
            // killed, it gets its own mount namespace and unpacks in our scratch folder.
            if let Some(mut unshare) = self.unshare_mounts() {
                unshare.arg(&tool.path);
                tool.command = unshare;
            }
            tool.command.env("TMPDIR", scratch.path());
        } else if let Some(folder) = env::var_os("TMPDIR") {
            tool.command.env("TMPDIR", folder);
        }
        tool.command
            .env("PATH", self.tools.path())
            .env("SOURCE_DATE_EPOCH", self.epoch.to_string())
            .envs(variables.into_iter().flatten())
            .envs(apt.proxies)
            .arg("--variant=essential")
            .arg("--format=tar")
            .arg("--skip=output/dev")
            .arg("--dpkgopt=force-unsafe-io")
            .arg(format!("--hook-dir={MERGED_USR_HOOK}"))
            .arg(format!("--include={}", self.packages.join(",")))
            .args(
                apt.options
                    .iter()
                    .map(|option| format!("--aptopt={option}")),
            )
            .args(["--", self.suite, "-"]);
        match self.mirror {
            Some(mirror) => tool.command.arg(mirror),
            None => tool.command.args(source_files(self.suite)),
        };
        Ok(tool)
    }

    /// Returns an `unshare` command that runs its arguments in a new mount namespace; `None` if
    /// that is not permitted, as in a container, where root cannot mount anything either.
    fn unshare_mounts(&self) -> Option<Command> {
        let unshare = || {
            let mut tool = self.tools.tool("util-linux", "unshare").ok()?;
            tool.command.args(["--mount", "--"]);
            Some(tool.command)
        };
        let attempt = unshare()?.arg("true").output().ok()?;
        attempt.status.success().then(unshare)?
    }
}

/// Reads the archive to its end even if it is rejected, so that `mmdebstrap` does not fail with a
/// broken pipe and its exit status reflects its own work.
fn unpack(archive: Option<impl Read>) -> Result<Tree, Error> {
    let mut archive = archive.map(BufReader::new);
    let mut reader: &mut dyn Read = match &mut archive {
        Some(archive) => archive,
        None => &mut io::empty(),
    };
    let tree = Tree::from_tar(&mut reader);
    let _ = io::copy(&mut reader, &mut io::sink());
    tree
}

/// The messages of `mmdebstrap`. They go to a file and not through a pipe: if this process were
/// killed, a broken pipe would stop the cleanup.
struct Messages {
    path: PathBuf,
    reader: File,
    unfinished: Vec<u8>,
    errors: Vec<u8>,
    last: Vec<u8>,
}

impl Messages {
    fn new(path: &Path) -> Result<Self, Error> {
        let path = path.to_owned();
        match File::create_new(&path).and_then(|_| File::open(&path)) {
            Ok(reader) => Ok(Self {
                path,
                reader,
                unfinished: Vec::new(),
                errors: Vec::new(),
                last: Vec::new(),
            }),
            Err(source) => Err(Error::Write { path, source }),
        }
    }

    fn writer(&self) -> Result<File, Error> {
        let writer = File::options().append(true).open(&self.path);
        writer.map_err(|source| Error::Write {
            path: self.path.clone(),
            source,
        })
    }

    /// Reads new messages and reports progress. Ignores read errors.
    fn report(&mut self, progress: &mut dyn FnMut(f32)) {
        let _ = self.reader.read_to_end(&mut self.unfinished);
        while let Some(end) = self.unfinished.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.unfinished.drain(..=end).collect();
            let step = STEPS
                .iter()
                .find(|(begin, _)| line.starts_with(begin.as_bytes()));
            if let Some((_, part)) = step {
                progress(*part);
            }
            if line.starts_with(b"E: ") {
                self.errors.extend_from_slice(&line);
            }
            self.last = line;
        }
    }

    /// Returns the text for an error message: the errors if there are any, else the last line.
    fn failure_text(&self) -> &[u8] {
        if self.errors.is_empty() {
            &self.last
        } else {
            &self.errors
        }
    }
}
