//! Broken links.

use super::{
    check::{CheckError, CheckResult, ensure, ensure_eq},
    context::CheckContext,
};
use crate::process::{Command, ExecEvent};

/// How often the link must be dropped at least and at most: one event may be as
/// large as the window, and the output is several windows.
const DROPS: std::ops::RangeInclusive<usize> = 2..=20;

pub(super) async fn stream(context: CheckContext) -> CheckResult {
    const NUMBERS: usize = 600_000;
    let command = Command::from_argv(["seq".to_owned(), NUMBERS.to_string()]);
    let mut stream = context.vm.exec_stream(command)?;
    let expected: String = (1..=NUMBERS).map(|number| format!("{number}\n")).collect();
    let mut received = Vec::new();
    let (mut drops, mut starts) = (0, 0);
    while let Some(event) = stream.next().await? {
        match event {
            ExecEvent::Started { .. } => starts += 1,
            ExecEvent::Stdout(bytes) => {
                received.extend(bytes);
                if drops < *DROPS.end() {
                    drops += 1;
                    context.vm.reconnect()?;
                }
            }
            ExecEvent::Exited(exit) => ensure_eq("the code", exit.code(), Some(0))?,
            other => return Err(CheckError::failed(format!("unexpected event {other:?}"))),
        }
    }
    ensure_eq("how often it started", starts, 1)?;
    ensure(DROPS.contains(&drops), || {
        format!("the link was dropped {drops} times")
    })?;
    ensure(received == expected.as_bytes(), || {
        format!("{} bytes came, of {}", received.len(), expected.len())
    })
}
