//! Files that hold environment variables (`--env-file`).

use std::{
    ffi::OsString,
    fs,
    os::unix::ffi::OsStringExt,
    path::{Path, PathBuf},
};

use vmcell::Error;

/// Returns the variables in a file, in their order.
pub(crate) fn read(path: &Path) -> Result<Vec<(OsString, OsString)>, Error> {
    let bad_file = |reason: String| Error::BadFile {
        what: "environment file",
        path: PathBuf::from(path),
        reason,
    };
    let contents = fs::read(path).map_err(|error| bad_file(error.to_string()))?;
    // The bad line itself is not printed: it may hold a secret.
    parse(&contents).map_err(|line| bad_file(format!("line {line}: expected NAME=value")))
}

/// Parses lines of the form NAME=value. Values are literal: quotes and spaces
/// belong to them. The error is the number of the first malformed line.
fn parse(contents: &[u8]) -> Result<Vec<(OsString, OsString)>, usize> {
    let mut variables = Vec::new();
    for (index, line) in contents.split(|byte| *byte == b'\n').enumerate() {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.trim_ascii().is_empty() || line.starts_with(b"#") {
            continue;
        }
        let equals = line.iter().position(|byte| *byte == b'=');
        let (name, value) = line.split_at(equals.ok_or(index + 1)?);
        // A space in a name means `export NAME=value` or an indented comment.
        let invalid_name = name.is_empty() || name.iter().any(u8::is_ascii_whitespace);
        if invalid_name || line.contains(&0) {
            return Err(index + 1);
        }
        let text = |bytes: &[u8]| OsString::from_vec(bytes.to_vec());
        variables.push((text(name), text(&value[1..])));
    }
    Ok(variables)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_taken_as_they_are() {
        let contents = b"# comment\n\nA=1\nB= \"two\" # 3 \r\n  \nC==\nD=\n_e.f=\xff\nA=last";
        let expected: [(&str, &[u8]); 6] = [
            ("A", b"1"),
            ("B", b" \"two\" # 3 "),
            ("C", b"="),
            ("D", b""),
            ("_e.f", b"\xff"),
            ("A", b"last"),
        ];
        let expected = expected.map(|(name, value)| {
            let value = OsString::from_vec(value.to_vec());
            (OsString::from(name), value)
        });
        assert_eq!(parse(contents), Ok(expected.to_vec()));
    }

    #[test]
    fn the_first_bad_line_is_told() {
        for (contents, line) in [
            ("NAME", 1),
            ("=value", 1),
            ("A=1\n\nexport B=2\nC", 3),
            ("A=1\n # B=2\n", 2),
            ("A=\0", 1),
        ] {
            assert_eq!(parse(contents.as_bytes()), Err(line), "{contents:?}");
        }
    }
}
