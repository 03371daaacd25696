//! What secrets cost: masking them in what programs print.
//!
//! Prints a table; the figures of one run are in `benches/README.md`.

mod masking;

use anyhow::Result;
use tokio::runtime::Runtime;
use vmcell_benches::summary::head;

fn main() -> Result<()> {
    let runtime = Runtime::new()?;
    head();
    masking::measure(&runtime)
}
