//! Quoting for `/bin/sh`.

use std::{ffi::OsString, os::unix::ffi::OsStrExt};

/// Appends words to a shell command line, quoted so that the shell does not
/// interpret them.
pub(super) fn quoted_line(words: &[OsString]) -> Vec<u8> {
    let mut line = Vec::new();
    for (index, word) in words.iter().enumerate() {
        if index == 0 {
            line.extend_from_slice(word.as_bytes());
        } else {
            line.push(b' ');
            quote(word.as_bytes(), &mut line);
        }
    }
    line
}

/// Between single quotes nothing is special but the quote itself.
fn quote(word: &[u8], line: &mut Vec<u8>) {
    line.push(b'\'');
    for &byte in word {
        match byte {
            b'\'' => line.extend_from_slice(br"'\''"),
            _ => line.push(byte),
        }
    }
    line.push(b'\'');
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        /// Compares with what a real shell does.
        #[test]
        fn a_shell_takes_words_as_they_are(words in prop::collection::vec("[^\0]{0,20}", 0..5)) {
            let mut all = vec![OsString::from(r"printf '%s\0'")];
            all.extend(words.iter().map(OsString::from));
            let line = quoted_line(&all);
            let output = Command::new("/bin/sh")
                .arg("-c")
                .arg(std::ffi::OsStr::from_bytes(&line))
                .output()
                .unwrap();
            let mut expected = words.join("\0");
            expected.push('\0');
            prop_assert_eq!(output.stdout, expected.into_bytes());
        }
    }
}
