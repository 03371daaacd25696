//! `vmcell run`: one VM for one command.

use std::{
    io::{self, Write},
    process::ExitCode,
    time::Duration,
};

use anyhow::Context;
use serde_json::json;
use tokio::signal::unix::{SignalKind, signal};
use vmcell::{Command, Error, ExecEvent, Output, Vm};

use crate::{arguments::RunArguments, environment, exit_code, input, output::Writer};

pub(crate) fn run(arguments: RunArguments) -> ExitCode {
    let json = arguments.json;
    match start_runtime_and_run(arguments) {
        Ok(code) => code.into(),
        Err(error) => {
            let failure = error.downcast_ref::<Error>();
            let code = failure.map_or(exit_code::OUR_OWN, exit_code::of_error);
            if json {
                let kind = failure.map_or("environment", Error::code);
                let message = format!("{error:#}");
                print_json(&json!({ "error": { "code": kind, "message": message } }));
            } else {
                eprintln!("vmcell: {error:#}");
            }
            code.into()
        }
    }
}

fn start_runtime_and_run(arguments: RunArguments) -> anyhow::Result<u8> {
    let image = environment::image(&arguments.environment)?;
    let runtime = tokio::runtime::Runtime::new().context("the runtime does not start")?;
    let outcome = runtime.block_on(async {
        let mut interrupted = signal(SignalKind::interrupt())?;
        let mut terminated = signal(SignalKind::terminate())?;
        // Dropping the future that boots or runs ends the VM.
        tokio::select! {
            outcome = boot_and_run(arguments, image) => outcome,
            _ = interrupted.recv() => Ok(exit_code::SIGNALLED + 2),
            _ = terminated.recv() => Ok(exit_code::SIGNALLED + 15),
        }
    });
    // The thread that reads standard input may wait for a key forever.
    runtime.shutdown_background();
    outcome
}

async fn boot_and_run(arguments: RunArguments, image: std::path::PathBuf) -> anyhow::Result<u8> {
    let vm = Vm::builder()
        .image(image)
        .vcpus(arguments.vcpu_count)
        .memory_mib(arguments.mem_mib)
        .start()
        .await?;
    let timeout = arguments.timeout_seconds.map(Duration::from_secs);
    let mut command = Command::from_argv(arguments.command);
    for (name, value) in arguments.variables {
        command = command.env(name, value);
    }
    let code = if arguments.json {
        collect_as_json(&vm, command, timeout).await?
    } else {
        stream(&vm, command, timeout).await?
    };
    // The disk goes with the VM: there is nothing to make clean.
    vm.kill().await;
    Ok(code)
}

/// Connects the command's standard streams to ours.
async fn stream(vm: &Vm, command: Command, timeout: Option<Duration>) -> anyhow::Result<u8> {
    let copying = async {
        let mut events = vm.exec_stream(command.stdin_stream())?;
        input::forward(events.input());
        let stdout = Writer::start(io::stdout());
        let stderr = Writer::start(io::stderr());
        let mut code = exit_code::OUR_OWN;
        while let Some(event) = events.next().await? {
            let written = match event {
                ExecEvent::Stdout(bytes) => stdout.write(bytes).await,
                ExecEvent::Stderr(bytes) => stderr.write(bytes).await,
                ExecEvent::Exited(exit) => {
                    code = exit_code::of_exit(&exit);
                    true
                }
                _ => true,
            };
            if !written {
                break;
            }
        }
        for (name, writer) in [("standard output", stdout), ("standard error", stderr)] {
            match writer.finish().await {
                Ok(()) => {}
                // Whoever read it has seen enough.
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                    return Ok(exit_code::SIGNALLED + 13);
                }
                Err(error) => return Err(error).context(name),
            }
        }
        Ok(code)
    };
    match timeout {
        None => copying.await,
        Some(timeout) => match tokio::time::timeout(timeout, copying).await {
            Ok(outcome) => outcome,
            Err(_) => {
                eprintln!("vmcell: timed out after {} s", timeout.as_secs());
                Ok(exit_code::TIMED_OUT)
            }
        },
    }
}

async fn collect_as_json(
    vm: &Vm,
    command: Command,
    timeout: Option<Duration>,
) -> anyhow::Result<u8> {
    // A day is as long as it likes, and a number that cannot overflow.
    const FOREVER: Duration = Duration::from_secs(24 * 60 * 60);
    let command = command.stdin_stream().timeout(timeout.unwrap_or(FOREVER));
    let events = vm.exec_stream(command)?;
    input::forward(events.input());
    let (output, timed_out) = match events.wait_with_output().await {
        Ok(output) => (output, false),
        Err(Error::ExecTimeout { partial, .. }) => (*partial, true),
        Err(error) => return Err(error.into()),
    };
    print_json(&result(vm, &output, timed_out));
    Ok(match output.exit {
        _ if timed_out => exit_code::TIMED_OUT,
        Some(exit) => exit_code::of_exit(&exit),
        None => exit_code::OUR_OWN,
    })
}

fn result(vm: &Vm, output: &Output, timed_out: bool) -> serde_json::Value {
    json!({
        "sandbox_id": vm.id(),
        "exit_code": output.code(),
        "cause": output.exit.map(|exit| exit.cause.to_string()),
        "stdout": output.stdout_text(),
        "stderr": output.stderr_text(),
        "timed_out": timed_out,
        "wall_seconds": output.exit.map(|exit| exit.wall_time.as_secs_f64()),
        "peak_memory_bytes": output.exit.map(|exit| exit.peak_memory),
    })
}

fn print_json(value: &serde_json::Value) {
    // A reader that has gone away has seen enough.
    let _ = writeln!(io::stdout(), "{value:#}");
}
