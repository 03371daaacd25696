//! What a terminal waits for, from all that is known of it.

use super::{
    Prompt, Status, Terminal,
    model::EndReason,
    status::{Evidence, Foreground, Liveness, TtyModes, infer},
    tty_state::TtyState,
};
use crate::{error::Error, process::Cause};

impl Status {
    /// Whether a program plainly waits for somebody to type, or there is none
    /// any more. An editor or a pager may still be at what it was told.
    pub(super) fn is_settled(self) -> bool {
        match self {
            Self::Ready
            | Self::Repl
            | Self::Password
            | Self::Confirm
            | Self::Eof
            | Self::Terminated => true,
            Self::Running | Self::Editor | Self::Pager | Self::Unknown => false,
        }
    }
}

impl Terminal {
    /// Asks the guest who uses the terminal, and says what it waits for.
    pub(super) async fn status(&self) -> Result<(Status, Prompt), Error> {
        let core = self.core();
        if core.shared.model().ended.is_some() {
            return Ok(self.infer(None));
        }
        let tty = TtyState::query(&core.vm, core.id).await?;
        Ok(self.infer(tty.as_ref()))
    }

    /// What it waits for, if this is how it looks in the guest.
    pub(super) fn infer(&self, tty: Option<&TtyState>) -> (Status, Prompt) {
        let core = self.core();
        let mut model = core.shared.model();
        if let Some(tty) = tty
            && tty.size != model.size
        {
            // Somebody else has changed it.
            model.resized(tty.size);
        }
        let (before, after) = model.emulator.split_cursor_row();
        let foreground = tty.and_then(|tty| tty.foreground.as_ref());
        infer(&Evidence {
            liveness: match model.ended {
                Some(EndReason::Exited(exit)) if exit.cause == Cause::Killed => {
                    Liveness::Terminated
                }
                Some(_) => Liveness::Exited,
                None => Liveness::Running,
            },
            before: &before,
            after: &after,
            alternate: model.emulator.is_alternate(),
            foreground: foreground.map(|foreground| Foreground {
                command: &foreground.command,
                is_initial: foreground.pid == core.pid,
            }),
            modes: tty.map(|tty| TtyModes {
                echo: tty.echo,
                canonical: tty.canonical,
            }),
            prompt: model.prompt.as_ref(),
            unanswered: model.unanswered(),
        })
    }
}
