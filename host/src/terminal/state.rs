//! What a terminal waits for, from all that is known of it.

use super::{
    Prompt, Status, Terminal,
    look::Look,
    model::Over,
    status::{Evidence, Foreground, Life, Tty, infer},
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
        if core.shared.model().over.is_some() {
            return Ok(self.infer(None));
        }
        let look = Look::at(&core.vm, core.id).await?;
        Ok(self.infer(look.as_ref()))
    }

    /// What it waits for, if this is how it looks in the guest.
    pub(super) fn infer(&self, look: Option<&Look>) -> (Status, Prompt) {
        let core = self.core();
        let mut model = core.shared.model();
        if let Some(look) = look
            && look.size != model.size
        {
            // Somebody else has changed it.
            model.resized(look.size);
        }
        let (before, after) = model.emulator.cursor_row();
        let foreground = look.and_then(|look| look.foreground.as_ref());
        infer(&Evidence {
            life: match model.over {
                Some(Over::Ended(exit)) if exit.cause == Cause::Killed => Life::Terminated,
                Some(_) => Life::Ended,
                None => Life::Alive,
            },
            before: &before,
            after: &after,
            alternate: model.emulator.is_alternate(),
            foreground: foreground.map(|foreground| Foreground {
                command: &foreground.command,
                first: foreground.pid == core.pid,
            }),
            tty: look.map(|look| Tty {
                echo: look.echo,
                canonical: look.canonical,
            }),
            prompt: model.prompt.as_ref(),
            unanswered: model.unanswered(),
        })
    }
}
