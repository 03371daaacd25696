//! Terminals.

use super::{
    check::{CheckResult, ensure, ensure_eq},
    context::CheckContext,
    suite::CHECK_TIMEOUT,
};
use crate::{
    process::{Cause, Command},
    terminal::{TerminalOptions, TerminalSize},
};

pub(super) async fn terminal(context: CheckContext) -> CheckResult {
    let size = TerminalSize::new(100, 20)?;
    let options = TerminalOptions::command(Command::new("sh")).size(size);
    let terminal = context.vm.terminals().open(options).await?;
    terminal.run("test -t 0 && echo $((6 * 7))").await?;
    // On a slow machine the reply may end before the answer.
    let answer = terminal.expect("(?m)^42$")?.timeout(CHECK_TIMEOUT).await?;
    ensure(answer.found.is_some(), || format!("got {:?}", answer.reply))?;
    let info = terminal.info().await?;
    ensure_eq("the size", (info.size.columns, info.size.rows), (100, 20))?;
    ensure(terminal.screen().text().contains("42"), || {
        format!("the screen shows {:?}", terminal.screen().text())
    })?;
    terminal.run("exit 7").await?;
    ensure_eq("how it ended", terminal.wait().await?.cause, Cause::Code(7))?;
    Ok(terminal.forget().await?)
}
