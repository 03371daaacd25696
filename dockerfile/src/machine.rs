use std::{
    io,
    path::{Path, PathBuf},
};

use tokio::task::spawn_blocking;
use vmcell::{
    Command, ExecEvent, Vm, VmBuilder,
    disk::{Disk, EntryKind},
    files::{FileFailureKind, FileOwner, WriteOptions},
    network::NetworkPolicy,
};

use crate::{
    BuildError, BuildEvent,
    copy::{Packing, Selection, send},
    instruction::Script,
};

/// What is done in a VM for a step.
pub(crate) enum Work {
    /// Directories are made.
    Nothing,
    Run(Run),
    Copy(Box<Copy>),
}

/// A command of a RUN.
pub(crate) struct Run {
    pub(crate) script: Script,
    pub(crate) variables: Vec<(String, String)>,
    pub(crate) user: Option<String>,
    pub(crate) directory: String,
    pub(crate) is_offline: bool,
    /// As it is written.
    pub(crate) text: String,
}

/// The files of a COPY.
pub(crate) struct Copy {
    pub(crate) selection: Selection,
    pub(crate) disk: Option<Disk>,
    /// Absolute.
    pub(crate) destination: String,
    /// Whether the destination ends with a slash.
    pub(crate) into_directory: bool,
    pub(crate) owner: Option<String>,
    pub(crate) mode: Option<u32>,
}

/// Where a script that names its interpreter is while it runs. It is not on the disk.
const SCRIPT: &str = "/run/vmcell-build-script";

/// A VM that is used for one step.
pub(crate) struct Machine {
    vm: Vm,
    line: usize,
}

impl Machine {
    /// Starts a VM that writes to a disk.
    pub(crate) async fn start(
        builder: VmBuilder,
        disk: &Path,
        backing: Vec<PathBuf>,
        work: &Work,
        line: usize,
    ) -> Result<Self, BuildError> {
        let mut builder = backing
            .into_iter()
            .fold(builder.disk(disk), VmBuilder::allow_backing);
        if matches!(work, Work::Run(run) if run.is_offline) {
            builder = builder.network(NetworkPolicy::off());
        }
        let vm = builder.start().await.map_err(BuildError::vm(line))?;
        Ok(Self { vm, line })
    }

    /// Makes directories that do not exist.
    pub(crate) async fn make_directories(&self, paths: &[String]) -> Result<(), BuildError> {
        for path in paths {
            self.make_directory(path, FileOwner::user("0:0")).await?;
        }
        Ok(())
    }

    async fn make_directory(&self, path: &str, owner: FileOwner) -> Result<(), BuildError> {
        let is_directory = self.is_directory(path).await?;
        if !is_directory {
            let files = self.vm.files().owned_by(owner);
            let made = files.make_directory(path).await;
            made.map_err(BuildError::vm(self.line))?;
        }
        Ok(())
    }

    /// Does the work.
    pub(crate) async fn perform(
        &self,
        work: Work,
        events: &mut impl AsyncFnMut(BuildEvent<'_>),
    ) -> Result<(), BuildError> {
        match work {
            Work::Nothing => Ok(()),
            Work::Run(run) => self.run(run, events).await,
            Work::Copy(copy) => self.copy(*copy).await,
        }
    }

    /// Shuts the VM down, which writes everything to its disk.
    pub(crate) async fn stop(self) -> Result<(), BuildError> {
        self.vm.stop().await.map_err(BuildError::vm(self.line))
    }

    /// Ends the VM, whose disk nobody wants.
    pub(crate) async fn kill(self) {
        // It has ended if this fails.
        let _ = self.vm.kill().await;
    }

    async fn run(
        &self,
        run: Run,
        events: &mut impl AsyncFnMut(BuildEvent<'_>),
    ) -> Result<(), BuildError> {
        let argv = match run.script {
            Script::Command(argv) => argv,
            Script::File(text) => {
                let options = WriteOptions::new().mode(0o755);
                let files = self.vm.files();
                let written = files.write_with(SCRIPT, text, options).await;
                written.map_err(BuildError::vm(self.line))?;
                vec![SCRIPT.to_owned()]
            }
        };
        let mut command = Command::from_argv(argv)
            .envs(run.variables)
            .current_dir(run.directory);
        if let Some(user) = run.user {
            command = command.user(user);
        }
        let stream = self.vm.exec_stream(command);
        let mut stream = stream.map_err(BuildError::vm(self.line))?;
        while let Some(event) = stream.next().await.map_err(BuildError::vm(self.line))? {
            match event {
                ExecEvent::Stdout(bytes) => events(BuildEvent::Stdout(bytes)).await,
                ExecEvent::Stderr(bytes) => events(BuildEvent::Stderr(bytes)).await,
                ExecEvent::Exited(exit) if !exit.success() => {
                    return Err(BuildError::Command {
                        line: self.line,
                        command: run.text,
                        exit: Box::new(exit),
                    });
                }
                _ => {}
            }
        }
        Ok(())
    }

    async fn copy(&self, mut copy: Copy) -> Result<(), BuildError> {
        let owner = copy.owner.as_deref().map(FileOwner::user);
        let mut directory = copy.destination.clone();
        let names_a_file = copy.selection.is_one_file() && !copy.into_directory;
        if names_a_file && !self.is_directory(&directory).await? {
            let path = Path::new(&copy.destination);
            copy.selection
                .rename(Path::new(path.file_name().unwrap_or_default()));
            let parent = path.parent().and_then(Path::to_str).unwrap_or("/");
            directory = parent.to_owned();
        }
        let new_owner = owner.clone().unwrap_or_else(|| FileOwner::user("0:0"));
        self.make_directory(&directory, new_owner).await?;
        let owner = owner.unwrap_or(FileOwner::OfSource);
        for archive in &copy.selection.archives {
            let push = self.vm.files().push_archive(archive, &directory);
            let push = push.map_err(BuildError::vm(self.line))?;
            let pushed = push.owner(owner.clone()).run().await;
            pushed.map_err(BuildError::vm(self.line))?;
        }
        if copy.selection.entries.is_empty() {
            return Ok(());
        }
        let packing = Packing {
            entries: copy.selection.entries,
            disk: copy.disk,
            mode: copy.mode,
        };
        let broken = |error: io::Error| BuildError::at(self.line, error.to_string());
        let (reader, writer) = io::pipe().map_err(broken)?;
        let sending = spawn_blocking(move || send(packing, writer));
        let push = self
            .vm
            .files()
            .push_archive_from(reader, "COPY", &directory);
        let pushed = push.owner(owner).run().await;
        match (sending.await.map_err(io::Error::other), pushed) {
            // The reader has gone: why, is said by the other side.
            (Ok(Err(error)), Err(_)) if error.kind() != io::ErrorKind::BrokenPipe => {
                Err(broken(error))
            }
            (_, Err(error)) => Err(BuildError::vm(self.line)(error)),
            (Ok(sent), Ok(_)) => sent.map_err(broken),
            (Err(error), Ok(_)) => Err(broken(error)),
        }
    }

    async fn is_directory(&self, path: &str) -> Result<bool, BuildError> {
        match self.vm.files().stat(path).await {
            Ok(entry) => Ok(entry.kind == EntryKind::Directory),
            Err(vmcell::Error::File(failure)) if failure.kind == FileFailureKind::NotFound => {
                Ok(false)
            }
            Err(error) => Err(BuildError::vm(self.line)(error)),
        }
    }
}
