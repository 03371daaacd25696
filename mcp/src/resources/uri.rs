use std::{fmt, os::unix::ffi::OsStrExt as _, path::Path};

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, percent_encode};

/// What a resource is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Uri {
    /// `vmcell://WORKSPACE/PATH`: a file below `/workspace`.
    File {
        workspace: String,
        /// Relative to `/workspace`.
        path: Vec<u8>,
    },
    /// `vmcell-screen://WORKSPACE/SHELL` or `vmcell-screen://WORKSPACE/SHELL.png`: the screen
    /// of a terminal, as text or as an image.
    Screen {
        workspace: String,
        shell: String,
        is_image: bool,
    },
}

const FILE: &str = "vmcell://";
const SCREEN: &str = "vmcell-screen://";
const IMAGE: &str = ".png";

/// What is not written as it is. A `/` separates folders.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'/')
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

impl Uri {
    pub(super) fn parse(text: &str) -> Option<Self> {
        if let Some(rest) = text.strip_prefix(FILE) {
            let (workspace, path) = rest.split_once('/').unwrap_or((rest, ""));
            return Some(Self::File {
                workspace: decode(workspace)?,
                path: percent_decode_str(path).collect(),
            });
        }
        let (workspace, shell) = text.strip_prefix(SCREEN)?.split_once('/')?;
        let (shell, is_image) = match shell.strip_suffix(IMAGE) {
            Some(shell) => (shell, true),
            None => (shell, false),
        };
        Some(Self::Screen {
            workspace: decode(workspace)?,
            shell: decode(shell)?,
            is_image,
        })
    }

    pub(super) fn file(workspace: &str, path: &Path) -> Self {
        Self::File {
            workspace: workspace.to_owned(),
            path: path.as_os_str().as_bytes().to_vec(),
        }
    }
}

fn decode(text: &str) -> Option<String> {
    let decoded = percent_decode_str(text).decode_utf8().ok()?;
    (!decoded.is_empty()).then(|| decoded.into_owned())
}

impl fmt::Display for Uri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { workspace, path } => {
                let workspace = percent_encode(workspace.as_bytes(), ESCAPED);
                write!(f, "{FILE}{workspace}/{}", percent_encode(path, ESCAPED))
            }
            Self::Screen {
                workspace,
                shell,
                is_image,
            } => {
                let workspace = percent_encode(workspace.as_bytes(), ESCAPED);
                let shell = percent_encode(shell.as_bytes(), ESCAPED);
                let image = if *is_image { IMAGE } else { "" };
                write!(f, "{SCREEN}{workspace}/{shell}{image}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uri_names_a_file_or_a_screen() {
        for text in [
            "vmcell://ws-1/src/main.rs",
            "vmcell://ws-1/a%20b/%C3%A9%FF%3F%23",
            "vmcell://ws-1/",
            "vmcell-screen://ws-1/shell-3",
            "vmcell-screen://ws-1/shell-3.png",
        ] {
            assert_eq!(Uri::parse(text).unwrap().to_string(), text);
        }
        let bytes = Uri::parse("vmcell://w/a%2Fb%00").unwrap();
        let path = b"a/b\0".to_vec();
        let workspace = "w".to_owned();
        assert_eq!(bytes, Uri::File { workspace, path });
        for text in [
            "",
            "vmcell:",
            "vmcell:///x",
            "file:///etc/passwd",
            "vmcell-screen://w",
            "vmcell-screen://w/",
            "vmcell://%FF/x",
        ] {
            assert_eq!(Uri::parse(text), None, "{text}");
        }
    }
}
