//! Collects the evidence from which a terminal's status is inferred.

use super::{
    Status, Terminal,
    model::EndReason,
    status::{Evidence, Foreground, Inference, Liveness, TtyModes, infer},
    tty_state::TtyState,
};
use crate::{error::Error, process::Cause};

impl Status {
    /// Returns whether the program clearly waits for input, or has ended. An
    /// editor or a pager may still be processing its last input.
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
    /// Queries the guest for the TTY state, and infers the status.
    pub(super) async fn status(&self) -> Result<Inference, Error> {
        let core = self.core();
        if core.shared.model().ended.is_some() {
            return Ok(self.infer(None));
        }
        let tty = TtyState::query(&core.vm, core.id).await?;
        Ok(self.infer(tty.as_ref()))
    }

    /// Infers the status from the TTY state and the screen.
    pub(super) fn infer(&self, tty: Option<&TtyState>) -> Inference {
        let core = self.core();
        let mut model = core.shared.model();
        if let Some(tty) = tty
            && tty.size != model.size
        {
            // Another program has resized it.
            model.resized(tty.size);
        }
        let (before, after) = model.emulator.split_cursor_row();
        let foreground = tty.and_then(|tty| tty.foreground.as_ref());
        let evidence = Evidence {
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
            is_read: tty.and_then(|tty| tty.is_read),
            prompt: model.prompt.as_ref(),
            unanswered: model.unanswered(),
        };
        let (status, prompt) = infer(&evidence);
        Inference {
            status,
            prompt,
            is_busy: status == Status::Running && evidence.is_busy(),
            edits_line: !evidence.alternate && evidence.edits_line(),
        }
    }
}
