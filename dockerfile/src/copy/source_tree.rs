use std::path::{Component, Path, PathBuf};

use vmcell_wire::pattern::Glob;

use super::entry::CopyEntry;

/// Files that can be copied.
pub(super) trait SourceTree {
    /// What it is called in errors.
    const NAME: &'static str;

    /// Returns the entry at a path, and follows it if it is a link. `None` if there is none.
    fn entry(&self, path: &Path) -> Result<Option<CopyEntry>, String>;

    /// Returns all below a directory, each directory before what is in it. Names are below it.
    fn beneath(&self, directory: &Path) -> Result<Vec<CopyEntry>, String>;

    /// Returns the paths that a pattern names, relative to the root.
    fn matches(&self, pattern: &str) -> Result<Vec<PathBuf>, String> {
        let path = relative(pattern)?;
        let missing = || format!("{pattern:?} is not in {}", Self::NAME);
        if !pattern.contains(['*', '?', '[']) {
            return match self.entry(&path)? {
                Some(_) => Ok(vec![path]),
                None => Err(missing()),
            };
        }
        let glob = Glob::new(path.as_os_str().as_encoded_bytes());
        let glob = glob.map_err(|error| format!("{pattern:?}: {error}"))?;
        let all = self.beneath(Path::new(""))?.into_iter();
        let found = all.filter(|entry| glob.matches(entry.name.as_os_str().as_encoded_bytes()));
        let found: Vec<_> = found.map(|entry| entry.name).collect();
        match found.is_empty() {
            true => Err(missing()),
            false => Ok(found),
        }
    }
}

/// Returns a path without `.`, and without the slash at its beginning.
fn relative(path: &str) -> Result<PathBuf, String> {
    let mut relative = PathBuf::new();
    for component in Path::new(path).components() {
        match component {
            Component::Normal(name) => relative.push(name),
            Component::CurDir | Component::RootDir => {}
            _ => return Err(format!("{path:?} has `..` in it")),
        }
    }
    Ok(relative)
}
