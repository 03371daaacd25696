//! Paths of files in a guest.

use super::names::shown;

/// The longest path.
const MAX_PATH: usize = 1024;

/// The longest name of a file.
const MAX_COMPONENT: usize = 255;

/// Checks that a path is absolute, plain and below one of the roots, so that it means the
/// same to everybody who reads it.
///
/// # Errors
/// What is wrong with it.
pub(super) fn check(path: &str, roots: &[String]) -> Result<(), String> {
    check_plain(path)?;
    let is_below = |root: &String| {
        let rest = path.strip_prefix(root.as_str());
        rest.is_some_and(|rest| rest.starts_with('/'))
    };
    match roots.iter().any(is_below) {
        true => Ok(()),
        false => Err(format!(
            "the path {} is not below {}: only these folders of the guest can be used",
            shown(path),
            roots.join(", ")
        )),
    }
}

/// Same as [`check`], and allows the roots themselves.
pub(super) fn check_folder(path: &str, roots: &[String]) -> Result<(), String> {
    match roots.iter().any(|root| root == path) {
        true => Ok(()),
        false => check(path, roots),
    }
}

/// Checks that a path is absolute, without `.`, `..` and empty components, and printable.
///
/// # Errors
/// What is wrong with it.
pub(super) fn check_plain(path: &str) -> Result<(), String> {
    let wrong = |what: &str| Err(format!("the path {} {what}", shown(path)));
    let Some(rest) = path.strip_prefix('/') else {
        return wrong("is not absolute: use a path in the guest, such as /work/main.py");
    };
    if path.len() > MAX_PATH {
        return wrong("is too long");
    }
    let is_plain = |character: char| crate::is_printable(character) && !character.is_control();
    if !path.chars().all(is_plain) {
        return wrong("has control characters");
    }
    for component in rest.split('/') {
        match component {
            "" => return wrong("has an empty component"),
            "." | ".." => return wrong("has a component `.` or `..`"),
            _ if component.len() > MAX_COMPONENT => {
                return wrong("has a component that is too long");
            }
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_paths_below_a_root_are_permitted() {
        let roots = ["/work".to_owned(), "/tmp".to_owned()];
        for path in ["/work/a", "/tmp/a b/ä.txt", "/work/...", "/work/.hidden"] {
            assert_eq!(check(path, &roots), Ok(()), "{path}");
        }
        let long = format!("/work/{}", "a".repeat(256));
        let deep = format!("/work{}", "/a".repeat(600));
        for path in [
            "",
            "a",
            "work/a",
            "/",
            "/work",
            "/work/",
            "/worker/a",
            "/etc/passwd",
            "//work/a",
            "/work//a",
            "/work/../etc/passwd",
            "/work/a/..",
            "/work/./a",
            "/work/a\0",
            "/work/a\n",
            "/work/\u{202e}a",
            "~/a",
            "C:\\a",
            &long,
            &deep,
        ] {
            assert!(check(path, &roots).is_err(), "{path:?}");
        }
        assert_eq!(check_folder("/work", &roots), Ok(()));
        assert!(check_folder("/", &roots).is_err());
    }
}
