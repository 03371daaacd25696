use vmcell_tree::is_hidden;

/// How many characters of a title are kept.
const MAX_LENGTH: usize = 256;

/// How many titles a program can save.
const MAX_SAVED: usize = 8;

/// The window title. Programs can set, save and restore it, but not query it:
/// otherwise anyone who controls a program's output could control its input.
#[derive(Debug, Default)]
pub(super) struct Title {
    text: String,
    saved: Vec<String>,
}

impl Title {
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn set(&mut self, bytes: &[u8]) {
        let text = String::from_utf8_lossy(bytes);
        let shown = text
            .chars()
            .filter(|character| !character.is_control() && !is_hidden(*character));
        self.text = shown.take(MAX_LENGTH).collect();
    }

    /// Returns the current title and all saved ones.
    pub(super) fn texts_mut(&mut self) -> impl Iterator<Item = &mut String> {
        std::iter::once(&mut self.text).chain(&mut self.saved)
    }

    pub(super) fn save(&mut self) {
        if self.saved.len() < MAX_SAVED {
            self.saved.push(self.text.clone());
        }
    }

    pub(super) fn restore(&mut self) {
        if let Some(saved) = self.saved.pop() {
            self.text = saved;
        }
    }
}
