//! Checks an image with `e2fsck`.

use std::path::Path;

use crate::tools::one_line;
use crate::{Error, Tools};

/// Runs a full check (`-f`) that changes nothing (`-n`).
pub(crate) fn check(tools: &Tools, image: &Path) -> Result<(), Error> {
    let mut tool = tools.e2fsprogs("e2fsck")?;
    tool.command.args(["-f", "-n", "--"]).arg(image);
    let output = tool
        .command
        .output()
        .map_err(|source| tool.unusable(source))?;
    if output.status.success() {
        return Ok(());
    }
    Err(Error::Damaged {
        output: one_line(&[output.stdout, output.stderr].concat()),
    })
}
