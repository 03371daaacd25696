//! One command in a new VM.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::time::timeout_at;
use vmcell::Vm;

use super::{
    exec::{default_max_output, default_timeout},
    new_vm::{PolicyName, check_size, default_environment, default_mem_mib, default_vcpu_count},
};
use crate::{
    call::Call,
    command_line::CommandLine,
    environment,
    execution::{self, Execution, Limits},
    failure::Failure,
    hints::Hints,
    tool::Tool,
};

pub(super) struct VmRun;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    /// `base` (small, fast), `debian`, or `debian-dev` (compilers, git, npm).
    #[serde(default = "default_environment")]
    environment: String,
    /// A line for `sh -c`, or a program and its arguments.
    command: CommandLine,
    #[serde(default = "default_vcpu_count")]
    vcpu_count: u32,
    #[serde(default = "default_mem_mib")]
    mem_mib: u32,
    /// After this time the command is killed.
    #[serde(default = "default_timeout")]
    timeout_seconds: f64,
    /// After this time the VM is ended, whatever it does.
    #[serde(default = "default_ttl")]
    ttl_seconds: u64,
    /// Whether programs may reach public hosts.
    #[serde(default)]
    network: bool,
    /// Run on the host's kernel if no VM can run on this machine. That isolates less.
    #[serde(default)]
    allow_host_compat: bool,
    /// How much of each output is returned; more is cut in the middle.
    #[serde(default = "default_max_output")]
    max_output_bytes: usize,
}

pub(super) fn default_ttl() -> u64 {
    600
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Output {
    environment: String,
    #[serde(flatten)]
    execution: Execution,
}

impl Tool for VmRun {
    const NAME: &'static str = "vm_run";
    const TITLE: &'static str = "Run a command in a new VM";
    const DESCRIPTION: &'static str = "\
Boot a new microVM, run one command in it, return what it prints and how it ended, and delete the \
VM: nothing stays. A command that ends with another code than 0 is no error of this tool. For work \
in several steps use workspace_create.";
    const HINTS: Hints = Hints::RUNS;
    type Input = Input;
    type Output = Output;

    async fn run(call: Call, input: Input) -> Result<Output, Failure> {
        let limits = Limits::new(input.timeout_seconds, input.max_output_bytes)?;
        check_size(input.vcpu_count, input.mem_mib)?;
        let command = limits.apply_to(input.command.into_command()?);
        let found = environment::find(&input.environment, call.progress.clone()).await?;
        let command = found.apply_to(command);
        let policy = match input.network {
            true => PolicyName::Egress.policy(),
            false => PolicyName::Off.policy(),
        };
        let mut vm = Vm::builder()
            .image(found.image)
            .vcpus(input.vcpu_count)
            .memory_mib(input.mem_mib)
            .network(policy);
        if input.allow_host_compat {
            vm = vm.allow_host_compat();
        }
        let deadline = tokio::time::Instant::now() + Duration::from_secs(input.ttl_seconds);
        let running = async {
            call.progress.set("booting the VM");
            let vm = vm.start().await?;
            let stream = vm.exec_stream(command)?;
            let execution = execution::wait(&call, stream, limits).await;
            // Dropping it would do, but then something could be left of it for a moment.
            vm.kill().await?;
            execution
        };
        let execution = timeout_at(deadline, running).await.map_err(|_| {
            let message = format!("the VM was ended after {} s", input.ttl_seconds);
            Failure::new("timeout", message).with_remedy("ask for more ttl_seconds")
        })??;
        Ok(Output {
            environment: input.environment,
            execution,
        })
    }
}
