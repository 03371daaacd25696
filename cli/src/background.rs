//! `--detach`: a program in the background that owns the VM.
//!
//! There is no daemon, so the program starts itself again. The new one reports
//! on its standard output that the VM, or the command in it, runs; until then
//! its messages are passed on.

use std::{
    env,
    fs::File,
    io::{self, BufRead, BufReader, Write},
    process::{Command, Stdio},
    thread,
};

use anyhow::Context;
use rustix::{
    process::setsid,
    stdio::{dup2_stderr, dup2_stdout},
};
use vmcell::Vm;

use crate::exit_code::TOOL_FAILED;

/// Starts this program again with the same arguments, and returns when it has
/// reported that it runs, or when it has failed. The ID of the VM is printed by
/// `print`.
pub(crate) fn start(
    subcommand: &str,
    print: impl FnOnce(&str) -> io::Result<()>,
) -> anyhow::Result<u8> {
    // The first one is the subcommand.
    let arguments = env::args_os().skip(2);
    let mut child = Command::new(env::current_exe()?)
        .args([subcommand, "--background"])
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .context("cannot start the program that owns the VM")?;
    let (Some(stdout), Some(mut stderr)) = (child.stdout.take(), child.stderr.take()) else {
        anyhow::bail!("the program that owns the VM has no outputs");
    };
    let messages = thread::spawn(move || io::copy(&mut stderr, &mut io::stderr()));
    let mut id = String::new();
    BufReader::new(stdout).read_line(&mut id)?;
    // It ends when the other program detaches, or fails.
    let _ = messages.join();
    if id.is_empty() {
        let status = child.wait()?;
        let code = status.code().and_then(|code| u8::try_from(code).ok());
        return Ok(code.unwrap_or(TOOL_FAILED));
    }
    print(id.trim_end())?;
    Ok(0)
}

/// Leaves the user's session, so that its end does not end this program.
pub(crate) fn enter() -> anyhow::Result<()> {
    setsid().context("cannot leave the session")?;
    Ok(())
}

/// Reports that the VM runs, and detaches from the outputs.
pub(crate) fn detach(vm: &Vm) -> anyhow::Result<()> {
    writeln!(io::stdout(), "{}", vm.id())?;
    let nowhere = File::options().write(true).open("/dev/null")?;
    dup2_stdout(&nowhere)?;
    dup2_stderr(&nowhere)?;
    Ok(())
}
