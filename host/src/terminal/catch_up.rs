use super::Terminal;
use crate::error::Error;

impl Terminal {
    /// Waits until all that the program has printed so far was received. A handle that was
    /// just attached receives it piece by piece.
    ///
    /// # Errors
    /// [`Error::Transport`] if it does not arrive.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn catch_up(&self) -> Result<(), Error> {
        let list = self.core().vm.terminals().list().await?;
        let info = list.iter().find(|info| info.id == self.id());
        // If it was forgotten meanwhile, there is nothing to wait for.
        let end = info.map_or(0, |info| info.stdout.end);
        let mut position = 0;
        while position < end {
            let reply = self.poll_output().await?;
            if reply.timed_out {
                let received = format!("{} of {end} bytes of terminal output", reply.end);
                return Err(Error::Transport(format!("received only {received}")));
            }
            position = reply.end;
            if reply.raw.is_empty() && self.exit().is_some() {
                // The program has ended, and there is no more output.
                break;
            }
        }
        Ok(())
    }
}
