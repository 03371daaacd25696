//! What secrets and calls of the tool cost.
//!
//! Prints a table; the figures of one run are in `benches/README.md`.

mod brokered;
mod masking;
#[allow(dead_code, clippy::unwrap_used)]
#[path = "../../../host/tests/vm/broker/server.rs"]
mod server;
mod tool_calls;

use anyhow::Result;
use tokio::runtime::Runtime;
use vmcell_benches::summary::head;

fn main() -> Result<()> {
    let runtime = Runtime::new()?;
    head();
    masking::measure(&runtime)?;
    tool_calls::measure(&runtime)?;
    brokered::measure(&runtime)
}
