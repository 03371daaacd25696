//! `vmcell shell`: connects the user's terminal to one in a guest.

mod arguments;
mod detach_key;
mod display;
mod keyboard;
mod raw_mode;
mod session;
mod window;

pub(crate) use arguments::ShellArguments;
pub(crate) use keyboard::Keyboard;
pub(crate) use raw_mode::RawMode;
pub(crate) use window::{WindowWatcher, size as terminal_size};

use anyhow::ensure;
use arguments::ProgramOptions;
use detach_key::DetachKey;
use session::End;
use vmcell::{
    Command, Error, ExecFailureKind, Vm,
    terminal::{Terminal, TerminalOptions},
};
use vmcell_cli::signals::Signals;
use vmcell_rootfs::oci::Defaults;

use crate::{
    environment,
    exit_code::{TERMINAL_GONE, of_exit},
    failure::report,
    files::{Pushes, WORKSPACE},
    new_vm::{NewVm, VmOptions},
    runtime::block_on,
    secret::{SecretOptions, SecretVariables},
    start_options::Variable,
    target,
    vm_source::VmSource,
};

pub(crate) fn shell(arguments: ShellArguments) -> anyhow::Result<u8> {
    RawMode::check_terminal()?;
    let ShellArguments {
        vm,
        environment,
        disk,
        source,
        id,
        vcpu_count,
        mem_mib,
        disk_mib,
        machine,
        quotas,
        network,
        push,
        tag,
        detach_key,
        record,
        mut program,
    } = arguments;
    let pushes = Pushes::check(push)?;
    if !pushes.is_empty() {
        program.set_default_directory(WORKSPACE);
    }
    let mut boot = environment;
    if vm.is_none() && !source.is_saved() {
        let found = environment::find(&boot)?;
        program.set_defaults(&found.defaults);
        boot = found.image.into();
    }
    let secrets = std::mem::take(&mut program.secrets);
    let mut options = program.into_options(network.variables());
    if let Some(size) = window::size() {
        options = options.size(size);
    }
    if let Some(folder) = record {
        options = options.record(folder);
    }
    let mut request = TerminalRequest {
        options,
        tag,
        detach_key,
    };
    if let Some(id) = vm {
        ensure!(
            !machine.is_set(),
            "--backend, --link, --confinement and --allow-host-compat need a new VM: omit {id}"
        );
        ensure!(
            !quotas.is_set(),
            "--layer-max, --cpu-seconds, --vm-cpus, --disk-rate and --link-rate need a new VM: omit {id}"
        );
        ensure!(
            !network.is_set(),
            "--network, --allow, --deny, --resolve and --proxy need a new VM: omit {id}"
        );
        return block_on(request.run_in_existing_vm(&id, &secrets));
    }
    request.grant(secrets.load()?);
    let options = VmOptions {
        id,
        vcpu_count,
        mem_mib,
        machine,
        quotas: quotas.quotas(),
        network: network.policy(false)?,
        pushes,
        time_to_live: None,
    };
    let source = VmSource::prepare(&boot, disk, disk_mib, &source)?;
    block_on(request.run_in_new_vm(NewVm { source, options }))
}

/// Fails if we are not connected to a terminal.
pub(crate) fn check_terminal() -> anyhow::Result<()> {
    RawMode::check_terminal()
}

/// Runs a command on a new terminal, connected to the user's, until it ends.
/// Returns the exit code.
pub(crate) async fn run_command(
    vm: &Vm,
    command: Command,
    signals: &mut Signals,
) -> anyhow::Result<u8> {
    let mut options = TerminalOptions::command(command);
    if let Some(size) = window::size() {
        options = options.size(size);
    }
    let terminals = vm.terminals();
    let terminal = tokio::select! {
        terminal = terminals.open(options) => terminal?,
        code = signals.next() => return Ok(code),
    };
    Ok(exit_code(
        session::run(&terminal, &DetachKey::none(), signals).await?,
    ))
}

fn exit_code(end: End) -> u8 {
    match end {
        End::Exited(exit) => of_exit(&exit),
        End::Detached => 0,
        End::Signalled(code) => code,
        End::HungUp => TERMINAL_GONE,
    }
}

impl ProgramOptions {
    /// Sets the working directory, unless the user has chosen one.
    fn set_default_directory(&mut self, directory: &str) {
        self.cwd.get_or_insert_with(|| directory.into());
    }

    /// Sets what the user has not chosen.
    fn set_defaults(&mut self, defaults: &Defaults) {
        self.user = self.user.take().or_else(|| defaults.user.clone());
        let directory = defaults.working_dir.as_ref();
        self.cwd = self.cwd.take().or(directory.map(Into::into));
        let variables = defaults.variables().map(|(name, value)| Variable {
            name: name.to_owned(),
            value: value.to_owned(),
        });
        // The last one counts.
        self.variables.splice(..0, variables);
    }

    /// Returns the options of a terminal whose program has these environment variables,
    /// unless the user has chosen others.
    fn into_options(self, variables: &[(&str, &str)]) -> TerminalOptions {
        let mut options = match self.command.is_empty() {
            true => TerminalOptions::new(),
            false => TerminalOptions::command(Command::from_argv(self.command)),
        };
        for (name, value) in variables {
            options = options.env(*name, *value);
        }
        for Variable { name, value } in self.variables {
            options = options.env(name, value);
        }
        if let Some(user) = self.user {
            options = options.user(user);
        }
        if let Some(directory) = self.cwd {
            options = options.current_dir(directory);
        }
        options
    }
}

/// The terminal to attach to or open.
struct TerminalRequest {
    options: TerminalOptions,
    tag: Option<String>,
    detach_key: DetachKey,
}

/// A terminal that exists.
struct ConnectedTerminal {
    terminal: Terminal,
    tag: String,
    /// Whether we have opened it.
    is_new: bool,
}

impl TerminalRequest {
    /// Grants secrets to the program of a new terminal.
    fn grant(&mut self, variables: SecretVariables) {
        for (name, secret) in variables {
            self.options = self.options.clone().secret_env(name, &secret);
        }
    }

    /// Runs the terminal in a new VM, which ends with it.
    async fn run_in_new_vm(self, new: NewVm) -> anyhow::Result<u8> {
        let mut signals = Signals::all()?;
        let work = async |vm: &Vm, signals: &mut Signals| {
            let connected = tokio::select! {
                connected = self.find_or_open(vm) => connected?,
                code = signals.next() => return Ok(code.into()),
            };
            let end = session::run(&connected.terminal, &self.detach_key, signals).await?;
            Ok(exit_code(end).into())
        };
        new.run(&mut signals, work).await
    }

    /// Runs the terminal in another program's VM, where it keeps running after
    /// a detach.
    async fn run_in_existing_vm(mut self, id: &str, secrets: &SecretOptions) -> anyhow::Result<u8> {
        let mut signals = Signals::all()?;
        let connecting = async {
            let vm = target::attach(id).await?;
            self.grant(secrets.load_for(&vm).await?);
            self.find_or_open(&vm).await
        };
        let connected = tokio::select! {
            connected = connecting => connected?,
            code = signals.next() => return Ok(code),
        };
        let end = session::run(&connected.terminal, &self.detach_key, &mut signals).await?;
        if let End::Exited(exit) = end {
            if connected.is_new {
                // Nobody else uses it; this frees its tag.
                let _ = connected.terminal.forget().await;
            }
            return Ok(of_exit(&exit));
        }
        if session::stderr_is_writable() {
            let tag = connected.tag;
            report(&format!(
                "the terminal keeps running: `vmcell shell {id} --tag {tag}` attaches to it"
            ));
        }
        Ok(exit_code(end))
    }

    async fn find_or_open(&self, vm: &Vm) -> anyhow::Result<ConnectedTerminal> {
        let existing = match &self.tag {
            None => None,
            Some(tag) => attach(vm, tag, &self.options).await?,
        };
        let is_new = existing.is_none();
        let terminal = match (existing, &self.tag) {
            (Some(terminal), _) => terminal,
            // Another program may have opened it just now.
            (None, Some(tag)) => vm.terminals().session(tag, self.options.clone()).await?,
            (None, None) => vm.terminals().open(self.options.clone()).await?,
        };
        let info = terminal.info().await?;
        if let Some(exit) = info.exit.filter(|_| !is_new) {
            let (id, tag) = (vm.id(), info.tag);
            anyhow::bail!(
                "the terminal {tag:?} has ended ({}): `vmcell screen {id} {tag}` shows its last \
                 screen, and another --tag opens a new terminal",
                exit.cause
            );
        }
        Ok(ConnectedTerminal {
            terminal,
            tag: info.tag,
            is_new,
        })
    }
}

/// Returns the terminal with this tag, if there is one.
async fn attach(vm: &Vm, tag: &str, options: &TerminalOptions) -> Result<Option<Terminal>, Error> {
    match vm.terminals().attach_with(tag, options.clone()).await {
        Ok(terminal) => Ok(Some(terminal)),
        Err(Error::Exec(failure)) if failure.kind == ExecFailureKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}
