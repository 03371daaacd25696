//! Putting a Debian together with `mmdebstrap`.

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

use super::apt::{Apt, sources_of};
use crate::scratch::Scratch;
use crate::tools::{Tool, one_line};
use crate::{Error, Tools, Tree};

/// Comes with `mmdebstrap`. Makes `/bin` a link before there is anything in it; done afterwards, it
/// would take a package that needs all of Perl.
const MERGED_USR: &str = "/usr/share/mmdebstrap/hooks/merged-usr";

/// What it says when it begins with something, and the part of its work that is done then.
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

/// What of our environment decides how it gets out.
const VARIABLES: [&str; 3] = ["http_proxy", "https_proxy", "no_proxy"];

/// How often we look whether there is something to report.
const BETWEEN_REPORTS: Duration = Duration::from_millis(100);

/// A run of `mmdebstrap`.
#[derive(Debug)]
pub(super) struct Mmdebstrap<'a> {
    pub(super) tools: &'a Tools,
    pub(super) suite: &'a str,
    pub(super) packages: &'a [&'a str],
    /// Where packages come from; else from where this machine's do.
    pub(super) mirror: Option<&'a str>,
    /// What is newer is dated to this.
    pub(super) epoch: u32,
}

impl Mmdebstrap<'_> {
    /// Downloads and unpacks, and reports the part (0 to 1) that is done.
    ///
    /// It unpacks in a folder of its own, which it removes itself; what we get is an archive. If
    /// we are killed it soon ends too, when nobody takes that, and still cleans up.
    pub(super) fn run(&self, progress: &mut dyn FnMut(f32)) -> Result<Tree, Error> {
        let scratch = Scratch::new()?;
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
            while unpacked.recv_timeout(BETWEEN_REPORTS) == Err(RecvTimeoutError::Timeout) {
                messages.report(progress);
            }
            unpacking.join()
        });
        let status = child.wait().map_err(|source| tool.unusable(source))?;
        messages.report(progress);
        if !status.success() {
            return Err(Error::BootstrapFailed {
                output: one_line(messages.complaint()),
            });
        }
        tree.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }

    fn command(&self, scratch: &Scratch) -> Result<Tool, Error> {
        let apt = Apt::of_this_machine(self.tools);
        let variables = VARIABLES.map(|name| Some((name, env::var_os(name)?)));
        let mut tool = self.tools.tool_of("mmdebstrap", "mmdebstrap")?;
        if geteuid().is_root() {
            // As root it has no namespace to itself. Nothing shall be left whatever happens, so
            // nobody else sees what it mounts, and it unpacks in a folder of ours.
            if let Some(mut unshare) = self.private_mounts() {
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
            .arg(format!("--hook-dir={MERGED_USR}"))
            .arg(format!("--include={}", self.packages.join(",")))
            .args(
                apt.options
                    .iter()
                    .map(|option| format!("--aptopt={option}")),
            )
            .args(["--", self.suite, "-"]);
        match self.mirror {
            Some(mirror) => tool.command.arg(mirror),
            None => tool.command.args(sources_of(self.suite)),
        };
        Ok(tool)
    }

    /// The beginning of a command that gives the rest mounts of its own. In a container root may
    /// not do that; but neither can it mount then.
    fn private_mounts(&self) -> Option<Command> {
        let unshare = || {
            let mut tool = self.tools.tool_of("util-linux", "unshare").ok()?;
            tool.command.args(["--mount", "--"]);
            Some(tool.command)
        };
        let attempt = unshare()?.arg("true").output().ok()?;
        attempt.status.success().then(unshare)?
    }
}

/// Reads the archive to its very end even if it is refused, so that how `mmdebstrap` ends says
/// something about itself.
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

/// What it prints. It goes to a file and not through a pipe: if we were killed, the pipe would break
/// and with it what cleans up.
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

    /// Makes reports of what is new. Without them the work goes on as well.
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

    /// What says best what went wrong: the errors if there are any, else the last line.
    fn complaint(&self) -> &[u8] {
        if self.errors.is_empty() {
            &self.last
        } else {
            &self.errors
        }
    }
}
