//! Path arguments: on this machine or in a VM.

use std::{
    ffi::OsStr,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use clap::builder::{OsStringValueParser, TypedValueParser};

/// The directory at which relative paths of a VM start.
pub(crate) const WORKSPACE: &str = "/workspace";

/// A path on this machine, or in a VM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PathArgument {
    Host(PathBuf),
    Guest { id: String, path: PathBuf },
}

impl PathArgument {
    pub(super) fn parser() -> impl TypedValueParser<Value = Self> {
        OsStringValueParser::new().try_map(|text| Self::parse(&text))
    }

    /// Parses `ID:PATH` if there is no slash before the colon, else a local
    /// path.
    fn parse(text: &OsStr) -> Result<Self, String> {
        let bytes = text.as_bytes();
        let host = || Ok(Self::Host(text.into()));
        let end = bytes.iter().position(|byte| matches!(byte, b':' | b'/'));
        let Some((id, [b':', path @ ..])) = end.map(|end| bytes.split_at(end)) else {
            return match bytes {
                b"" => Err("expected a path".to_owned()),
                _ => host(),
            };
        };
        match std::str::from_utf8(id) {
            Ok("") => Err("missing ID before the colon: write ID:PATH, or ./:PATH".to_owned()),
            Ok(id) => Ok(Self::Guest {
                id: id.to_owned(),
                path: Path::new(WORKSPACE).join(OsStr::from_bytes(path)),
            }),
            // VM ids are UTF-8.
            Err(_) => host(),
        }
    }
}

/// Returns an absolute path of a VM. Relative paths start at the workspace.
pub(crate) fn guest_path(text: &OsStr) -> PathBuf {
    normalized(&Path::new(WORKSPACE).join(text))
}

/// Removes `.` components and duplicate slashes.
pub(super) fn normalized(path: &Path) -> PathBuf {
    path.components().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<PathArgument, String> {
        PathArgument::parse(OsStr::new(text))
    }

    #[test]
    fn a_colon_before_any_slash_names_a_vm() {
        for (text, id, path) in [
            ("web:/etc/passwd", "web", "/etc/passwd"),
            ("web:src/main.rs", "web", "/workspace/src/main.rs"),
            ("web:", "web", "/workspace/"),
            ("web:a:b", "web", "/workspace/a:b"),
        ] {
            let expected = PathArgument::Guest {
                id: id.to_owned(),
                path: path.into(),
            };
            assert_eq!(parse(text), Ok(expected), "{text}");
        }
        for text in ["./web:x", "/web:x", "dir/web:x", "web", "."] {
            assert_eq!(parse(text), Ok(PathArgument::Host(text.into())), "{text}");
        }
        let odd = OsStr::from_bytes(b"\xff:x");
        assert_eq!(PathArgument::parse(odd), Ok(PathArgument::Host(odd.into())));
        for text in ["", ":", ":/x"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
