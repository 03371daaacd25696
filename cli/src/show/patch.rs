//! Prints and counts the lines of a patch.

use std::io::{self, Write};

use vmcell::printable;

use super::safe_stdout::RESET_STYLE;

/// A part of a patch. The same line means something else in a hunk.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Header,
    Hunk,
}

/// Returns the lines of a patch, each with its part.
fn lines(patch: &[u8]) -> impl Iterator<Item = (Part, &[u8])> {
    let lines = patch.split_inclusive(|byte| *byte == b'\n');
    lines.scan(Part::Header, |part, line| {
        *part = match line {
            [b'@', ..] => Part::Hunk,
            [b' ' | b'+' | b'-' | b'\\', ..] => *part,
            _ => Part::Header,
        };
        Some((*part, line))
    })
}

/// Writes a patch, with control characters replaced.
///
/// # Errors
/// If it cannot be written.
pub fn write(patch: &[u8], coloured: bool, out: &mut impl Write) -> io::Result<()> {
    for (part, line) in lines(patch) {
        let colour = match (part, line) {
            _ if !coloured => "",
            (Part::Header, _) => "\x1b[1m",
            (Part::Hunk, [b'@', ..]) => "\x1b[36m",
            (Part::Hunk, [b'+', ..]) => "\x1b[32m",
            (Part::Hunk, [b'-', ..]) => "\x1b[31m",
            (Part::Hunk, _) => "",
        };
        let end = if colour.is_empty() { "" } else { RESET_STYLE };
        let text = printable(line);
        let text = text.strip_suffix('\n').unwrap_or(&text);
        writeln!(out, "{colour}{text}{end}")?;
    }
    Ok(())
}

/// Returns how many lines a patch adds and removes.
pub fn count(patch: &[u8]) -> (usize, usize) {
    let (mut added, mut removed) = (0, 0);
    for line in lines(patch) {
        match line {
            (Part::Hunk, [b'+', ..]) => added += 1,
            (Part::Hunk, [b'-', ..]) => removed += 1,
            _ => {}
        }
    }
    (added, removed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(patch: &str, coloured: bool) -> String {
        let mut out = Vec::new();
        write(patch.as_bytes(), coloured, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    const PATCH: &str =
        "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n same\r\n--- y\n+\x1b[2J\n";

    #[test]
    fn lines_of_a_hunk_are_not_taken_for_headers() {
        let bold = |text: &str| format!("\x1b[1m{text}\x1b[0m\n");
        let expected = [
            bold("diff --git a/x b/x"),
            bold("--- a/x"),
            bold("+++ b/x"),
            "\x1b[36m@@ -1,2 +1,2 @@\x1b[0m\n".to_owned(),
            " same\n".to_owned(),
            "\x1b[31m--- y\x1b[0m\n".to_owned(),
            "\x1b[32m+\u{fffd}[2J\x1b[0m\n".to_owned(),
        ];
        assert_eq!(written(PATCH, true), expected.concat());
    }

    #[test]
    fn without_colours_there_is_no_escape_at_all() {
        let text = written(PATCH, false);
        assert!(!text.contains('\x1b'), "{text:?}");
        assert_eq!(text.lines().count(), 7);
    }

    #[test]
    fn lines_that_come_and_go_are_counted_in_hunks_only() {
        assert_eq!(count(PATCH.as_bytes()), (1, 1));
        assert_eq!(count(b""), (0, 0));
    }
}
