//! The contents of an image, as a tree of entries.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::ops::Bound;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use crate::scratch::ScratchFolder;
use crate::script::fits_on_a_line;
use crate::{Content, Error, Kind, Node, Owner, PathProblem};

/// `NAME_MAX` of ext4.
const NAME_MAX: usize = 255;
/// `PATH_MAX` of Linux, without its NUL.
const MAX_PATH: usize = 4095;
/// The largest major or minor number that `mknod` of `debugfs` accepts.
const MAX_DEVICE_NUMBER: u32 = 65535;
/// What an image may take in memory while it is built: some 300,000 files with usual names.
const MAX_WEIGHT: usize = 80 << 20;
/// What a node takes, besides its names and attributes: measured.
const NODE_WEIGHT: usize = 256;
/// What an attribute takes, besides its texts.
const ATTRIBUTE_WEIGHT: usize = 128;
/// A name with a line break takes no memory to speak of, but programs of its own: see `script.rs`.
const LINE_BREAK_WEIGHT: usize = 64 << 10;
/// The directory that `mke2fs` creates.
pub(crate) const LOST_AND_FOUND: &str = "lost+found";

/// The contents of an image: entries by path, in sorted order.
///
/// Paths are absolute in the image; a leading slash is optional. Missing parents are added as
/// directories owned by root with mode 0755. Nothing is created on the host, so setuid programs,
/// device nodes and other owners need no privileges.
///
/// ```
/// use vmcell_rootfs::{Owner, Tree};
///
/// # fn main() -> Result<(), vmcell_rootfs::Error> {
/// let mut tree = Tree::new();
/// tree.file("/etc/hostname", 0o644, "box\n")?;
/// tree.directory("/home/ann", 0o700)?;
/// tree.symlink("/home/ann/name", "../../etc/hostname")?;
/// tree.set_owner("/home/ann", Owner { uid: 1000, gid: 1000 })?;
/// assert_eq!(tree.get("/home").unwrap().owner, Owner::ROOT);
/// assert_eq!(tree.get("/home/ann/name").unwrap().owner.uid, 1000);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Tree {
    /// Keyed by relative path; the root is the empty path. `Path` orders by components, so a
    /// directory comes right before everything in it.
    nodes: BTreeMap<PathBuf, Box<Stored>>,
    /// About how much memory the nodes take.
    weight: usize,
    /// The layer of a container's image that is being added.
    layer: u32,
    /// The folder with contents read from an archive. It lives as long as the tree.
    _contents: Option<Arc<ScratchFolder>>,
}

/// A node, and the layer that it is from.
#[derive(Clone, Debug)]
struct Stored {
    node: Node,
    layer: u32,
}

/// Two trees are equal if their entries are.
impl PartialEq for Tree {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for Tree {}

impl Default for Tree {
    fn default() -> Self {
        let mut tree = Self {
            nodes: BTreeMap::new(),
            weight: 0,
            layer: 0,
            _contents: None,
        };
        tree.put(PathBuf::new(), Node::new(Kind::Directory, 0o755));
        tree
    }
}

impl Tree {
    /// Returns a tree with only `/`.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns an empty tree that keeps the folder with the contents of its files alive.
    pub(crate) fn with_contents_in(folder: Arc<ScratchFolder>) -> Self {
        Self {
            _contents: Some(folder),
            ..Self::new()
        }
    }

    /// Adds an entry, or replaces the one at this path. Replacing a directory by a directory keeps
    /// its entries.
    ///
    /// ```
    /// use vmcell_rootfs::{Kind, Node, Tree};
    ///
    /// # fn main() -> Result<(), vmcell_rootfs::Error> {
    /// let mut tree = Tree::new();
    /// tree.insert("/run/queue", Node::new(Kind::Fifo, 0o600))?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Path`], with the reason.
    pub fn insert(&mut self, path: impl AsRef<Path>, node: Node) -> Result<(), Error> {
        let given = path.as_ref();
        let refuse = |problem| Error::Path {
            path: given.to_owned(),
            problem,
        };
        let path = normalize(given).map_err(refuse)?;
        self.check(&path, &node).map_err(refuse)?;
        for parent in path.ancestors().skip(1) {
            if self.nodes.contains_key(parent) {
                break;
            }
            self.put(parent.to_owned(), Node::new(Kind::Directory, 0o755));
        }
        self.put(path, node);
        Ok(())
    }

    fn put(&mut self, path: PathBuf, node: Node) {
        self.weight += weight(&path, &node);
        let layer = self.layer;
        let replaced = self
            .nodes
            .insert(path.clone(), Box::new(Stored { node, layer }));
        if let Some(replaced) = replaced {
            self.weight = self.weight.saturating_sub(weight(&path, &replaced.node));
        }
    }

    /// Begins a layer: see [`is_of_this_layer`](Self::is_of_this_layer).
    pub(crate) fn begin_layer(&mut self) {
        self.layer += 1;
    }

    /// Returns whether an entry was added since the layer began. The path is normal.
    pub(crate) fn is_of_this_layer(&self, path: &Path) -> bool {
        let found = self.nodes.get(path);
        found.is_some_and(|stored| stored.layer == self.layer)
    }

    /// Returns whether it has so many or such long names that it takes too much memory, or that
    /// an image of it would take too long.
    pub(crate) fn is_too_heavy(&self) -> bool {
        self.weight > MAX_WEIGHT
    }

    /// Adds an empty directory, or replaces the metadata of an existing one.
    ///
    /// ```
    /// # fn main() -> Result<(), vmcell_rootfs::Error> {
    /// let mut tree = vmcell_rootfs::Tree::new();
    /// tree.directory("/tmp", 0o1777)?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Path`], with the reason.
    pub fn directory(&mut self, path: impl AsRef<Path>, mode: u16) -> Result<(), Error> {
        self.insert(path, Node::new(Kind::Directory, mode))
    }

    /// Adds a regular file.
    ///
    /// ```
    /// use vmcell_rootfs::{Content, Tree};
    ///
    /// # fn main() -> Result<(), vmcell_rootfs::Error> {
    /// let mut tree = Tree::new();
    /// tree.file("/etc/hostname", 0o644, "box\n")?;
    /// tree.file("/usr/bin/tool", 0o755, Content::HostFile("target/release/tool".into()))?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Path`], with the reason.
    pub fn file(
        &mut self,
        path: impl AsRef<Path>,
        mode: u16,
        content: impl Into<Content>,
    ) -> Result<(), Error> {
        self.insert(path, Node::new(Kind::File(content.into()), mode))
    }

    /// Adds a symbolic link with this target.
    ///
    /// ```
    /// # fn main() -> Result<(), vmcell_rootfs::Error> {
    /// let mut tree = vmcell_rootfs::Tree::new();
    /// tree.symlink("/var/run", "../run")?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Path`], with the reason.
    pub fn symlink(
        &mut self,
        path: impl AsRef<Path>,
        target: impl Into<PathBuf>,
    ) -> Result<(), Error> {
        self.insert(path, Node::new(Kind::Symlink(target.into()), 0o777))
    }

    /// Sets the owner of a path and of everything beneath it. As with `chown -R`, the owner of a
    /// hard link's target changes too.
    ///
    /// ```
    /// use vmcell_rootfs::{Owner, Tree};
    ///
    /// # fn main() -> Result<(), vmcell_rootfs::Error> {
    /// let mut tree = Tree::new();
    /// tree.directory("/workspace", 0o755)?;
    /// tree.set_owner("/workspace", Owner { uid: 1000, gid: 1000 })?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Path`] if the tree has no such path.
    pub fn set_owner(&mut self, path: impl AsRef<Path>, owner: Owner) -> Result<(), Error> {
        let given = path.as_ref();
        let refuse = |problem| Error::Path {
            path: given.to_owned(),
            problem,
        };
        let top = normalize(given).map_err(refuse)?;
        if !self.nodes.contains_key(&top) {
            return Err(refuse(PathProblem::Missing));
        }
        let mut linked = Vec::new();
        let beneath = self
            .nodes
            .range_mut(top.clone()..)
            .take_while(|(path, _)| path.starts_with(&top));
        for (_, Stored { node, .. }) in beneath.map(|(path, stored)| (path, &mut **stored)) {
            node.owner = owner;
            if let Kind::HardLink(target) = &node.kind {
                linked.extend(normalize(target).ok());
            }
        }
        for target in linked {
            if let Some(node) = self.node_mut(&target) {
                node.owner = owner;
            }
        }
        Ok(())
    }

    /// Removes a path and everything beneath it, if it exists. Removing `/` leaves it as an empty
    /// directory.
    ///
    /// ```
    /// # fn main() -> Result<(), vmcell_rootfs::Error> {
    /// let mut tree = vmcell_rootfs::Tree::new();
    /// tree.file("/usr/share/doc/tool/README", 0o644, "long\n")?;
    /// tree.remove("/usr/share/doc")?;
    /// assert!(tree.get("/usr/share").is_some() && tree.get("/usr/share/doc/tool").is_none());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Path`] if the path is invalid.
    pub fn remove(&mut self, path: impl AsRef<Path>) -> Result<(), Error> {
        let given = path.as_ref();
        let top = normalize(given).map_err(|problem| Error::Path {
            path: given.to_owned(),
            problem,
        })?;
        for path in self.beneath(&top) {
            self.take(&path);
        }
        if !top.as_os_str().is_empty() {
            self.take(&top);
        }
        Ok(())
    }

    /// Returns the paths of all entries beneath one, in order. The path is normal.
    pub(crate) fn beneath(&self, top: &Path) -> Vec<PathBuf> {
        let from = (Bound::Excluded(top), Bound::Unbounded);
        let entries = self.nodes.range::<Path, _>(from);
        entries
            .map(|(path, _)| path)
            .take_while(|path| path.starts_with(top))
            .cloned()
            .collect()
    }

    /// Returns the entry at a path that is normal.
    pub(crate) fn node(&self, path: &Path) -> Option<&Node> {
        self.nodes.get(path).map(|stored| &stored.node)
    }

    pub(crate) fn node_mut(&mut self, path: &Path) -> Option<&mut Node> {
        self.nodes.get_mut(path).map(|stored| &mut stored.node)
    }

    /// Removes one entry, and nothing beneath it.
    pub(crate) fn take(&mut self, path: &Path) -> Option<Node> {
        let stored = self.nodes.remove(path)?;
        self.weight = self.weight.saturating_sub(weight(path, &stored.node));
        Some(stored.node)
    }

    /// Returns the entry at a path.
    ///
    /// ```
    /// assert!(vmcell_rootfs::Tree::new().get("/").is_some());
    /// ```
    #[must_use]
    pub fn get(&self, path: impl AsRef<Path>) -> Option<&Node> {
        self.node(&normalize(path.as_ref()).ok()?)
    }

    /// Iterates over all entries, each directory right before its entries. Paths are relative to
    /// `/`, which comes first, as the empty path.
    ///
    /// ```
    /// # fn main() -> Result<(), vmcell_rootfs::Error> {
    /// let mut tree = vmcell_rootfs::Tree::new();
    /// tree.directory("/a/b", 0o755)?;
    /// let paths: Vec<_> = tree.iter().map(|(path, _)| path.to_str().unwrap()).collect();
    /// assert_eq!(paths, ["", "a", "a/b"]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn iter(&self) -> impl Iterator<Item = (&Path, &Node)> {
        let nodes = self.nodes.iter();
        nodes.map(|(path, stored)| (path.as_path(), &stored.node))
    }

    fn check(&self, path: &Path, node: &Node) -> Result<(), PathProblem> {
        let is_directory = node.kind == Kind::Directory;
        if !is_directory && path == Path::new(LOST_AND_FOUND) {
            return Err(PathProblem::Reserved);
        }
        let replaced = self.node(path);
        if !is_directory && replaced.is_some_and(|old| old.kind == Kind::Directory) {
            return Err(PathProblem::IsDirectory);
        }
        let nearest = path
            .ancestors()
            .skip(1)
            .find_map(|parent| self.node(parent));
        if nearest.is_some_and(|parent| parent.kind != Kind::Directory) {
            return Err(PathProblem::ParentNotDirectory);
        }
        if let Kind::Symlink(target) = &node.kind {
            check_bytes(target.as_os_str())?;
            if target.as_os_str().len() > MAX_PATH {
                return Err(PathProblem::TooLong);
            }
        }
        if let Kind::CharDevice { major, minor } | Kind::BlockDevice { major, minor } = node.kind
            && major.max(minor) > MAX_DEVICE_NUMBER
        {
            return Err(PathProblem::DeviceNumber);
        }
        let line_break_or_nul = |byte: &u8| matches!(byte, b'\n' | b'\r' | 0);
        if node
            .xattrs
            .keys()
            .any(|name| name.as_bytes().iter().any(line_break_or_nul))
        {
            return Err(PathProblem::AttributeName);
        }
        Ok(())
    }
}

/// Returns about how much memory a node takes while an image is built.
fn weight(path: &Path, node: &Node) -> usize {
    let length = path.as_os_str().len();
    let kind = match &node.kind {
        Kind::Symlink(target) => target.as_os_str().len(),
        // Names of the same file know each other.
        Kind::HardLink(target) => NODE_WEIGHT + length + 2 * target.as_os_str().len(),
        Kind::File(Content::Bytes(bytes)) => bytes.len(),
        _ => 0,
    };
    let attribute =
        |(name, value): (&OsString, &Vec<u8>)| ATTRIBUTE_WEIGHT + length + name.len() + value.len();
    let attributes: usize = node.xattrs.iter().map(attribute).sum();
    let name = path.file_name().unwrap_or_default();
    let line_break = match fits_on_a_line(name.as_bytes()) {
        true => 0,
        false => LINE_BREAK_WEIGHT,
    };
    NODE_WEIGHT + length + kind + attributes + line_break
}

/// Returns the path as the tree stores it: relative, without `.` and repeated slashes.
pub(crate) fn normalize(path: &Path) -> Result<PathBuf, PathProblem> {
    let mut normal = PathBuf::new();
    for component in path.components() {
        match component {
            Component::RootDir | Component::CurDir => {}
            Component::Prefix(_) | Component::ParentDir => {
                return Err(PathProblem::ParentComponent);
            }
            Component::Normal(name) => {
                check_bytes(name)?;
                if name.len() > NAME_MAX {
                    return Err(PathProblem::TooLong);
                }
                normal.push(name);
            }
        }
    }
    // The limit includes the leading slash.
    if normal.as_os_str().len() >= MAX_PATH {
        return Err(PathProblem::TooLong);
    }
    Ok(normal)
}

fn check_bytes(text: &OsStr) -> Result<(), PathProblem> {
    if text.is_empty() || text.as_bytes().contains(&0) {
        return Err(PathProblem::EmptyOrNul);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(result: Result<(), Error>) -> PathProblem {
        match result {
            Err(Error::Path { problem, .. }) => problem,
            other => panic!("expected a path problem, got {other:?}"),
        }
    }

    #[test]
    fn paths_that_ext4_cannot_hold_are_refused() {
        let mut tree = Tree::new();
        assert_eq!(
            problem(tree.directory("/a/../b", 0o755)),
            PathProblem::ParentComponent
        );
        assert_eq!(
            problem(tree.directory("a".repeat(256), 0o755)),
            PathProblem::TooLong
        );
        assert_eq!(
            problem(tree.directory("a/".repeat(2048), 0o755)),
            PathProblem::TooLong
        );
        assert_eq!(
            problem(tree.directory("a\0b", 0o755)),
            PathProblem::EmptyOrNul
        );
        assert_eq!(problem(tree.symlink("/link", "")), PathProblem::EmptyOrNul);
        assert_eq!(
            problem(tree.symlink("/link", "x".repeat(4096))),
            PathProblem::TooLong
        );
        assert_eq!(
            problem(tree.file("/lost+found", 0o644, "")),
            PathProblem::Reserved
        );
        assert_eq!(problem(tree.file("/", 0o644, "")), PathProblem::IsDirectory);
        tree.file("/f", 0o644, "").unwrap();
        assert_eq!(
            problem(tree.file("/f/g/h", 0o644, "")),
            PathProblem::ParentNotDirectory
        );
        assert_eq!(
            tree.iter().count(),
            2,
            "a refused entry leaves nothing behind"
        );
    }

    #[test]
    fn an_attribute_name_cannot_smuggle_in_a_command() {
        let mut node = Node::new(Kind::Fifo, 0o600);
        node.xattrs
            .insert("user.x\nrm /etc/passwd".into(), Vec::new());
        assert_eq!(
            problem(Tree::new().insert("/p", node)),
            PathProblem::AttributeName
        );
    }

    #[test]
    fn owners_reach_beneath_and_not_beside() {
        let ann = Owner { uid: 7, gid: 8 };
        let mut tree = Tree::new();
        for path in ["/a", "/a/x", "/a/x/y", "/a b", "/ab"] {
            tree.directory(path, 0o755).unwrap();
        }
        tree.set_owner("/a", ann).unwrap();
        let owned: Vec<_> = tree
            .iter()
            .filter(|(_, n)| n.owner == ann)
            .map(|(p, _)| p)
            .collect();
        assert_eq!(owned, ["a", "a/x", "a/x/y"].map(Path::new));
        assert_eq!(problem(tree.set_owner("/b", ann)), PathProblem::Missing);
    }
}
