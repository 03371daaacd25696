//! A workspace through all its states, with kills of those who run it.

use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use vmcell::{
    Command, Error,
    workspace::{BASELINE, Workspace},
};

use crate::{processes, random::Random, setup::Setup, step::Step};

/// What the workspace must have, and what may be done with it.
struct Life {
    workspace: Workspace,
    /// What was synced.
    number: Option<u64>,
    /// Numbers of snapshots, by their names.
    snapshots: Vec<(String, Option<u64>)>,
}

/// The most time between a change and the kill of who makes it.
const LONGEST_DELAY: Duration = Duration::from_secs(3);

pub(super) async fn live_through(setup: &Setup, random: &mut Random) -> Result<()> {
    let workspaces = setup.workspaces()?;
    let workspace = match random.one_in(2) {
        true => workspaces.create(setup.new_workspace()).await?,
        false => workspaces.create_stopped(setup.new_workspace()).await?,
    };
    let mut life = Life {
        workspace: workspace.clone(),
        number: None,
        snapshots: Vec::new(),
    };
    let lived = life.live(setup, random).await;
    let deleted = workspace.delete().await;
    lived?;
    Ok(deleted?)
}

impl Life {
    async fn live(&mut self, setup: &Setup, random: &mut Random) -> Result<()> {
        for _ in 0..random.below(8) + 2 {
            self.change(setup, random).await?;
        }
        self.check().await.context("at the end")
    }

    async fn change(&mut self, setup: &Setup, random: &mut Random) -> Result<()> {
        let step = random.choose(&[
            "write", "write", "write", "stop", "pause", "snapshot", "snapshot", "reset", "fork",
            "diff", "kill",
        ]);
        self.perform(step, setup, random)
            .await
            .with_context(|| format!("step {step}"))
    }

    async fn perform(&mut self, step: &str, setup: &Setup, random: &mut Random) -> Result<()> {
        let workspace = self.workspace.clone();
        let _step = Step::begin(format_args!("{step} of {}", workspace.id()));
        match step {
            "write" => {
                let number = random.number();
                workspace.start().await?;
                let line = format!("echo {number} > count && sync");
                let output = workspace.exec(Command::shell(line)).await?;
                ensure!(output.success(), "{output:?}");
                self.number = Some(number);
            }
            "stop" => workspace.stop().await?,
            "pause" => {
                workspace.start().await?;
                workspace.pause().await?;
                ensure!(
                    self.read().await? == self.number,
                    "it is another one after a pause"
                );
            }
            "snapshot" => {
                workspace.start().await?;
                let name = random.name();
                workspace.snapshot(&name).await?;
                self.snapshots.push((name, self.number));
                if self.snapshots.len() > 3 {
                    let (name, _) = self.snapshots.remove(0);
                    workspace.delete_snapshot(&name).await?;
                }
            }
            "reset" => {
                let mut all = self.snapshots.clone();
                all.push((BASELINE.to_owned(), None));
                let (name, number) = all[random.below(all.len() as u64) as usize].clone();
                workspace.reset(&name).await?;
                self.number = number;
                self.check().await?;
            }
            "fork" => {
                let Some((name, number)) = self.snapshots.last().cloned() else {
                    return Ok(());
                };
                let fork = workspace.fork(&name, |new| new).await?;
                let mut fork = Self {
                    workspace: fork,
                    number,
                    snapshots: Vec::new(),
                };
                fork.check().await?;
                fork.number = None;
                fork.workspace.delete().await?;
            }
            "diff" => {
                workspace.diff(BASELINE).await?;
            }
            "kill" => self.kill(setup, random).await?,
            _ => bail!("no such step"),
        }
        Ok(())
    }

    /// Kills the keeper or the VMM while something is written.
    async fn kill(&mut self, setup: &Setup, random: &mut Random) -> Result<()> {
        let workspace = self.workspace.clone();
        workspace.start().await?;
        let number = random.number();
        let line = format!("echo {number} > count && sync; sleep 1000");
        let work = async { workspace.exec(Command::shell(line)).await };
        let delay = random.time_below(LONGEST_DELAY);
        let kill = async {
            tokio::time::sleep(delay).await;
            let id = workspace.id();
            let mut processes = processes::started();
            processes.retain(|process| is_of_workspace(process, id, setup));
            let victim = random.below(processes.len().max(1) as u64) as usize;
            if let Some(process) = processes.get(victim) {
                process.kill();
            }
            !processes.is_empty()
        };
        tokio::select! {
            outcome = work => ensure!(outcome.is_err(), "it ended: {outcome:?}"),
            killed = kill => ensure!(killed, "no process runs a workspace"),
        }
        // Either number is right: nobody has said that the second one was synced.
        let found = self.read().await?;
        ensure!(
            found == self.number || found == Some(number),
            "{found:?} in place of {:?} or {number}",
            self.number
        );
        self.number = found;
        Ok(())
    }

    async fn check(&self) -> Result<()> {
        let found = self.read().await?;
        ensure!(
            found == self.number,
            "{found:?} in place of {:?}",
            self.number
        );
        Ok(())
    }

    /// Returns the number on its disk.
    async fn read(&self) -> Result<Option<u64>> {
        let output = loop {
            self.workspace.start().await?;
            let command = Command::shell("cat count || true");
            match self.workspace.exec(command).await {
                // What ran it was killed before, and that was not noticed by the start.
                Err(Error::Gone(_)) => {}
                Err(error) if error.code() == "workspace-state" => {}
                output => break output?,
            }
        };
        let text = output.stdout_text();
        match text.trim() {
            "" => Ok(None),
            number => Ok(Some(number.parse()?)),
        }
    }
}

fn is_of_workspace(process: &processes::Process, id: &str, setup: &Setup) -> bool {
    let line = process.command_line();
    line.contains(id) || (line.contains("keeper") && process.has_open(&setup.folder, id))
}
