use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ffi::OsString;
use std::fs;
use std::path::{Component, Path, PathBuf};

use crate::{Content, Error, Kind, Node, PathProblem, Tree};

/// How many symbolic links may lead to a directory, as in Linux.
const MAX_LINKS: usize = 40;

/// A tree in which entries are replaced and removed as in a file system: a file stays while it
/// has a name, and the parents of a path may be symbolic links.
pub(super) struct LinkedTree {
    tree: Tree,
    /// Where the contents of its files are that nothing else needs.
    contents: PathBuf,
    /// The other names of files that have several, by the name whose node is the file.
    links: BTreeMap<PathBuf, BTreeSet<PathBuf>>,
}

impl LinkedTree {
    pub(super) fn new(tree: Tree, contents: &Path) -> Self {
        Self {
            tree,
            contents: contents.to_owned(),
            links: BTreeMap::new(),
        }
    }

    pub(super) fn into_tree(self) -> Tree {
        self.tree
    }

    /// Begins a layer.
    pub(super) fn begin_layer(&mut self) {
        self.tree.begin_layer();
    }

    /// Returns whether an entry was added since the layer began.
    pub(super) fn is_of_this_layer(&self, path: &Path) -> bool {
        self.tree.is_of_this_layer(path)
    }

    /// Returns whether it takes too much memory.
    pub(super) fn is_too_heavy(&self) -> bool {
        self.tree.is_too_heavy()
    }

    pub(super) fn kind(&self, path: &Path) -> Option<&Kind> {
        self.tree.node(path).map(|node| &node.kind)
    }

    pub(super) fn beneath(&self, path: &Path) -> Vec<PathBuf> {
        self.tree.beneath(path)
    }

    /// Returns where a path leads, whose parents may be symbolic links. None leads out of the
    /// tree.
    pub(super) fn resolve(&self, path: &Path) -> Result<PathBuf, PathProblem> {
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return Ok(PathBuf::new());
        };
        let names = |path: &Path| -> Vec<OsString> {
            let names = path.components().filter_map(|component| match component {
                Component::Normal(name) => Some(name.to_owned()),
                Component::ParentDir => Some("..".into()),
                _ => None,
            });
            names.collect()
        };
        let mut real = PathBuf::new();
        let mut rest = VecDeque::from(names(parent));
        let mut links = 0;
        while let Some(name) = rest.pop_front() {
            if name == ".." {
                real.pop();
                continue;
            }
            real.push(name);
            match self.kind(&real) {
                None | Some(Kind::Directory) => {}
                Some(Kind::Symlink(target)) => {
                    links += 1;
                    if links > MAX_LINKS {
                        return Err(PathProblem::ParentNotDirectory);
                    }
                    match target.is_absolute() {
                        true => real.clear(),
                        false => drop(real.pop()),
                    }
                    for name in names(target).into_iter().rev() {
                        rest.push_front(name);
                    }
                }
                Some(_) => return Err(PathProblem::ParentNotDirectory),
            }
        }
        real.push(name);
        Ok(real)
    }

    /// Returns the file that a hard link to this path refers to.
    pub(super) fn hard_link_target(&self, path: &Path) -> Option<PathBuf> {
        self.tree.hard_link_target(&self.resolve(path).ok()?)
    }

    /// Adds an entry at a path that [leads](Self::resolve) there, where nothing is but a
    /// directory that becomes this one.
    pub(super) fn insert(&mut self, path: &Path, node: Node) -> Result<(), Error> {
        let target = match &node.kind {
            Kind::HardLink(target) => Some(target.clone()),
            _ => None,
        };
        self.tree.insert(path, node)?;
        if let Some(target) = target {
            self.links
                .entry(target)
                .or_default()
                .insert(path.to_owned());
        }
        Ok(())
    }

    /// Removes an entry, and all that is beneath it.
    pub(super) fn remove(&mut self, path: &Path) {
        for path in self.beneath(path).iter().rev() {
            self.remove_one(path);
        }
        if !path.as_os_str().is_empty() {
            self.remove_one(path);
        }
    }

    /// Removes an entry with nothing beneath it.
    pub(super) fn remove_one(&mut self, path: &Path) {
        let Some(node) = self.tree.take(path) else {
            return;
        };
        match (&node.kind, self.links.remove(path)) {
            (Kind::HardLink(target), _) => {
                if let Some(names) = self.links.get_mut(target) {
                    names.remove(path);
                }
            }
            (_, Some(names)) => self.rename(node, names),
            (Kind::File(Content::HostFile(content)), None)
                if content.starts_with(&self.contents) =>
            {
                // It is removed with the folder otherwise.
                let _ = fs::remove_file(content);
            }
            _ => {}
        }
    }

    /// Keeps a file that has lost the name of its node.
    fn rename(&mut self, node: Node, mut names: BTreeSet<PathBuf>) {
        let Some(first) = names.pop_first() else {
            return;
        };
        for name in &names {
            if let Some(link) = self.tree.node_mut(name) {
                link.kind = Kind::HardLink(first.clone());
            }
        }
        if let Some(link) = self.tree.node_mut(&first) {
            *link = node;
        }
        if !names.is_empty() {
            self.links.insert(first, names);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree() -> LinkedTree {
        let mut tree = Tree::new();
        tree.directory("/usr/lib", 0o755).unwrap();
        tree.symlink("/lib", "usr/lib").unwrap();
        tree.symlink("/up", "../../../usr").unwrap();
        tree.symlink("/usr/absolute", "/lib").unwrap();
        tree.symlink("/loop", "loop").unwrap();
        tree.file("/file", 0o644, "text").unwrap();
        LinkedTree::new(tree, Path::new("/nowhere"))
    }

    #[test]
    fn links_to_directories_lead_within_the_tree() {
        let tree = tree();
        for (path, real) in [
            ("lib/a", "usr/lib/a"),
            ("up/lib/a", "usr/lib/a"),
            ("usr/absolute/a/b", "usr/lib/a/b"),
            ("new/a", "new/a"),
            ("lib", "lib"),
            ("", ""),
        ] {
            assert_eq!(tree.resolve(Path::new(path)), Ok(real.into()), "{path}");
        }
        for path in ["loop/a", "file/a", "up/../file/a"] {
            let refused = tree.resolve(Path::new(path));
            assert_eq!(refused, Err(PathProblem::ParentNotDirectory), "{path}");
        }
    }

    #[test]
    fn a_file_stays_while_it_has_a_name() {
        let mut tree = tree();
        for name in ["b", "c"] {
            let target = tree.hard_link_target(Path::new("file")).unwrap();
            let link = Node::new(Kind::HardLink(target), 0);
            tree.insert(Path::new(name), link).unwrap();
        }
        tree.remove(Path::new("file"));
        let first = Some(&Kind::File("text".into()));
        assert_eq!(tree.kind(Path::new("b")), first);
        assert_eq!(tree.kind(Path::new("c")), Some(&Kind::HardLink("b".into())));
        tree.remove(Path::new("b"));
        assert_eq!(tree.kind(Path::new("c")), first);
        tree.remove(Path::new("c"));
        assert_eq!(tree.kind(Path::new("c")), None);
        assert!(tree.links.values().all(BTreeSet::is_empty));
    }
}
