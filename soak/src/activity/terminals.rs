//! Terminals.

use std::time::Duration;

use anyhow::{Result, ensure};
use vmcell::{
    Vm,
    terminal::{Status, TerminalOptions, TerminalSize},
};

use super::VmEnded;
use crate::random::Random;

/// Longer than a shell takes on a busy machine.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(120);

/// Types calculations to a shell and reads the results.
pub(super) async fn calculate(vm: &Vm, random: &mut Random) -> Result<()> {
    let options = TerminalOptions::new()
        .tag(format!("terminal-{}", random.name()))
        .timeout(ANSWER_TIMEOUT);
    let terminal = vm.terminals().open(options).await?;
    terminal.expect_prompt().await?;
    for _ in 0..random.below(5) + 1 {
        let (one, other) = (random.below(1 << 30), random.below(1 << 30));
        let line = format!("echo result=$(({one} + {other}))");
        let reply = terminal.run(&line).await?;
        ensure!(reply.status != Status::Eof, VmEnded);
        let expected = format!("result={}", one + other);
        ensure!(
            reply.text.contains(&expected),
            "{expected} is not in {reply:?}"
        );
        if random.one_in(3) {
            let size = TerminalSize {
                columns: random.below(200) as u16 + 20,
                rows: random.below(60) as u16 + 5,
            };
            terminal.resize(size).await?;
        }
        ensure!(!terminal.screen().text().is_empty(), "the screen is empty");
    }
    terminal.terminate().await?;
    terminal.forget().await?;
    Ok(())
}
