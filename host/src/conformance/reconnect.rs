//! Links that break.

use super::{
    scene::Scene,
    unmet::{Seen, Unmet, demand, same},
};
use crate::process::{Command, ExecEvent};

/// How often the link is dropped at most, and at least: an event may be as large
/// as the window, of which all output is several.
const DROPS: std::ops::RangeInclusive<usize> = 2..=20;

pub(super) async fn stream(scene: Scene) -> Seen {
    const NUMBERS: usize = 600_000;
    let command = Command::from_argv(["seq".to_owned(), NUMBERS.to_string()]);
    let mut stream = scene.vm.exec_stream(command)?;
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
                    scene.vm.reconnect();
                }
            }
            ExecEvent::Exited(exit) => same("the code", exit.code(), Some(0))?,
            other => return Err(Unmet::failed(format!("it tells {other:?}"))),
        }
    }
    same("how often it started", starts, 1)?;
    demand(DROPS.contains(&drops), || {
        format!("the link was dropped {drops} times")
    })?;
    demand(received == expected.as_bytes(), || {
        format!("{} bytes came, of {}", received.len(), expected.len())
    })
}
