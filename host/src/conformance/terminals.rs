//! Programs on terminals.

use super::{
    scene::Scene,
    suite::CHECK_TIMEOUT,
    unmet::{Seen, demand, same},
};
use crate::{
    process::{Cause, Command},
    terminal::{TerminalOptions, TerminalSize},
};

pub(super) async fn terminal(scene: Scene) -> Seen {
    let size = TerminalSize::new(100, 20)?;
    let options = TerminalOptions::command(Command::new("sh")).size(size);
    let terminal = scene.vm.terminals().open(options).await?;
    terminal.run("test -t 0 && echo $((6 * 7))").await?;
    // On a slow machine the reply may end before the answer.
    let answer = terminal.expect("(?m)^42$")?.timeout(CHECK_TIMEOUT).await?;
    demand(answer.found.is_some(), || {
        format!("it says {:?}", answer.reply)
    })?;
    let info = terminal.info().await?;
    same("the size", (info.size.columns, info.size.rows), (100, 20))?;
    demand(terminal.screen().text().contains("42"), || {
        format!("the screen shows {:?}", terminal.screen().text())
    })?;
    terminal.run("exit 7").await?;
    same("how it ended", terminal.wait().await?.cause, Cause::Code(7))?;
    Ok(terminal.forget().await?)
}
