use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io::Read;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use super::linked_tree::LinkedTree;
use crate::contents::Contents;
use crate::tree::normalize;
use crate::unpacker::{Unpacked, Unpacker};
use crate::{ArchiveProblem, Error, Kind, Node, PathProblem, Tree};

/// The beginning of the names of files that hide what lower layers have.
const WHITEOUT: &[u8] = b".wh.";
/// The name of the one that hides all in its directory.
const OPAQUE: &[u8] = b".wh..wh..opq";
/// The beginning of names that only matter to the programs that write layers.
const RESERVED: &[u8] = b".wh..wh.";

/// How much may follow the end of an archive: programs fill up their last block.
const MAX_PADDING: u64 = 16 << 20;

/// The tree of an image, from its layers.
pub(super) struct LayeredTree {
    tree: LinkedTree,
    contents: Contents,
}

impl LayeredTree {
    pub(super) fn new() -> Result<Self, Error> {
        let contents = Contents::new()?;
        Ok(Self {
            tree: LinkedTree::new(contents.tree(), contents.folder()),
            contents,
        })
    }

    pub(super) fn into_tree(self) -> Tree {
        self.tree.into_tree()
    }

    /// Adds a directory, if nothing is there.
    pub(super) fn add_directory(&mut self, path: &str) -> Result<(), Error> {
        let refuse = |problem| Error::Path {
            path: path.into(),
            problem,
        };
        let path = normalize(Path::new(path)).map_err(refuse)?;
        let path = self.tree.resolve(&path).map_err(refuse)?;
        match self.tree.kind(&path) {
            Some(_) => Ok(()),
            None => self.tree.insert(&path, Node::new(Kind::Directory, 0o755)),
        }
    }

    /// Adds a layer, an uncompressed tar archive, on top. It is read to its end.
    pub(super) fn add(&mut self, archive: impl Read) -> Result<(), Error> {
        self.tree.begin_layer();
        let mut layer = Layer {
            tree: &mut self.tree,
        };
        let mut unpacker = Unpacker::new(archive, &mut self.contents).with_optional_end();
        while let Some(unpacked) = unpacker.next()? {
            layer.add(&mut unpacker, unpacked)?;
        }
        // What follows the archive belongs to the layer, and to its digest.
        let mut padding = unpacker.archive().take(MAX_PADDING + 1);
        let read = std::io::copy(&mut padding, &mut std::io::sink());
        let read = read.and_then(|read| match read > MAX_PADDING {
            true => Err(std::io::Error::other("too much follows the archive")),
            false => Ok(()),
        });
        read.map_err(|source| Error::ArchiveUnreadable { source })
    }
}

/// A layer that is being added.
struct Layer<'a> {
    tree: &'a mut LinkedTree,
}

impl Layer<'_> {
    fn add<R: Read>(
        &mut self,
        unpacker: &mut Unpacker<'_, R>,
        unpacked: Unpacked,
    ) -> Result<(), Error> {
        let given = unpacked.path.clone();
        let refuse = |problem| Error::Path {
            path: given.clone(),
            problem,
        };
        let path = normalize(&given).map_err(refuse)?;
        let path = self.tree.resolve(&path).map_err(refuse)?;
        let name = path.file_name().unwrap_or_default().as_bytes();
        if let Some(hidden) = name.strip_prefix(WHITEOUT) {
            let directory = path.parent().unwrap_or(Path::new(""));
            match name {
                OPAQUE => self.hide(directory, false),
                _ if name.starts_with(RESERVED) => {}
                _ if hidden.is_empty() => return Err(refuse(PathProblem::EmptyOrNul)),
                _ => self.hide(&directory.join(OsStr::from_bytes(hidden)), true),
            }
            return Ok(());
        }
        let is_directory = unpacked.is_directory();
        match self.tree.kind(&path) {
            None => {}
            Some(Kind::Directory) if is_directory => {}
            Some(_) if path.as_os_str().is_empty() => return Err(refuse(PathProblem::IsDirectory)),
            Some(_) => self.tree.remove(&path),
        }
        let tree = &self.tree;
        let node = unpacker.node(unpacked, |target| tree.hard_link_target(target))?;
        self.tree.insert(&path, node)?;
        match self.tree.is_too_heavy() {
            true => Err(Error::Archive {
                path: given,
                problem: ArchiveProblem::TooManyNames,
            }),
            false => Ok(()),
        }
    }

    /// Removes what lower layers have beneath a path, and there.
    fn hide(&mut self, top: &Path, also_top: bool) {
        // Directories that what this layer has added is in.
        let mut needed = BTreeSet::new();
        let mut paths = self.tree.beneath(top);
        if also_top && !top.as_os_str().is_empty() {
            paths.insert(0, top.to_owned());
        }
        // What is in a directory comes before it.
        for path in paths.iter().rev() {
            // What this layer has added is not hidden by it.
            if self.tree.is_of_this_layer(path) || needed.contains(path.as_path()) {
                needed.extend(path.parent());
            } else {
                self.tree.remove_one(path);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An archive with directories (`a/`), files (`a=text`), and links (`a->b`, `a=>b` if hard).
    fn archive(entries: &[&str]) -> Vec<u8> {
        let mut archive = tar::Builder::new(Vec::new());
        for entry in entries {
            let mut header = tar::Header::new_gnu();
            header.set_mode(0o755);
            header.set_mtime(1);
            header.set_size(0);
            let mut append = |kind: tar::EntryType, path: &str, text: &str| {
                header.set_entry_type(kind);
                if matches!(kind, tar::EntryType::Symlink | tar::EntryType::Link) {
                    archive.append_link(&mut header, path, text).unwrap();
                } else {
                    header.set_size(text.len() as u64);
                    let text = text.as_bytes();
                    archive.append_data(&mut header, path, text).unwrap();
                }
            };
            if let Some((path, target)) = entry.split_once("->") {
                append(tar::EntryType::Symlink, path, target);
            } else if let Some((path, target)) = entry.split_once("=>") {
                append(tar::EntryType::Link, path, target);
            } else if let Some((path, text)) = entry.split_once('=') {
                append(tar::EntryType::Regular, path, text);
            } else {
                append(tar::EntryType::Directory, entry, "");
            }
        }
        archive.into_inner().unwrap()
    }

    /// The tree of some layers, in the notation of [`archive`].
    fn layered(layers: &[&[&str]]) -> Vec<String> {
        let mut tree = LayeredTree::new().unwrap();
        for layer in layers {
            tree.add(&archive(layer)[..]).unwrap();
        }
        let tree = tree.into_tree();
        let shown = tree.iter().skip(1).map(|(path, node)| {
            let path = path.display();
            match &node.kind {
                Kind::Directory => format!("{path}/"),
                Kind::File(crate::Content::HostFile(file)) => {
                    format!("{path}={}", std::fs::read_to_string(file).unwrap())
                }
                Kind::Symlink(target) => format!("{path}->{}", target.display()),
                Kind::HardLink(target) => format!("{path}=>{}", target.display()),
                other => format!("{path}: {other:?}"),
            }
        });
        shown.collect()
    }

    #[test]
    fn upper_layers_replace_and_hide_what_is_below() {
        let below: &[&str] = &["d/", "d/a=1", "d/b=2", "d/s/", "d/s/c=3", "f=4", "g=5"];
        for (above, expected) in [
            (
                &["d/a=new"][..],
                &["d/", "d/a=new", "d/b=2", "d/s/", "d/s/c=3", "f=4", "g=5"][..],
            ),
            (
                &["d/.wh.a=", ".wh.g="],
                &["d/", "d/b=2", "d/s/", "d/s/c=3", "f=4"],
            ),
            (&[".wh.d="], &["f=4", "g=5"]),
            (&[".wh.nothing=", "x/.wh.y="], below),
            // A whiteout hides what is below, wherever it is in the layer.
            (
                &["d/.wh..wh..opq=", "d/n=6"],
                &["d/", "d/n=6", "f=4", "g=5"],
            ),
            (
                &["d/n=6", "d/.wh..wh..opq="],
                &["d/", "d/n=6", "f=4", "g=5"],
            ),
            (
                &["d/s/n=6", "d/.wh..wh..opq="],
                &["d/", "d/s/", "d/s/n=6", "f=4", "g=5"],
            ),
            (&[".wh..wh..opq=", "n=6"], &["n=6"]),
            (&[".wh.d=", "d/", "d/n=6"], &["d/", "d/n=6", "f=4", "g=5"]),
            (&[".wh..wh.plnk=", ".wh..wh.aufs="], below),
            // Other kinds.
            (&["d=file"], &["d=file", "f=4", "g=5"]),
            (&["f/", "f/x=7", ".wh.d="], &["f/", "f/x=7", "g=5"]),
            (&["d->f", ".wh.g="], &["d->f", "f=4"]),
        ] {
            let mut tree = layered(&[below, above]);
            // Directories that a whiteout is in are made.
            tree.retain(|entry| entry != "x/");
            assert_eq!(tree, expected, "{above:?}");
        }
    }

    #[test]
    fn links_go_across_layers() {
        let below: &[&str] = &["usr/lib/", "lib->usr/lib", "a=1", "b=>a"];
        for (above, expected) in [
            (
                &["lib/x=2"][..],
                &[
                    "a=1",
                    "b=>a",
                    "lib->usr/lib",
                    "usr/",
                    "usr/lib/",
                    "usr/lib/x=2",
                ][..],
            ),
            (
                &["c=>b"],
                &["a=1", "b=>a", "c=>a", "lib->usr/lib", "usr/", "usr/lib/"],
            ),
            (
                &["a=new"],
                &["a=new", "b=1", "lib->usr/lib", "usr/", "usr/lib/"],
            ),
            (&[".wh.a="], &["b=1", "lib->usr/lib", "usr/", "usr/lib/"]),
            (
                &[".wh.a=", "c=>b"],
                &["b=1", "c=>b", "lib->usr/lib", "usr/", "usr/lib/"],
            ),
            (
                &["lib/c=>a"],
                &[
                    "a=1",
                    "b=>a",
                    "lib->usr/lib",
                    "usr/",
                    "usr/lib/",
                    "usr/lib/c=>a",
                ],
            ),
            (&["lib/"], &["a=1", "b=>a", "lib/", "usr/", "usr/lib/"]),
        ] {
            assert_eq!(layered(&[below, above]), expected, "{above:?}");
        }
    }

    #[test]
    fn nothing_leads_out_of_the_tree() {
        // The crate `tar` refuses to write such names.
        let with_name = |name: &[u8]| {
            let mut header = tar::Header::new_gnu();
            header.set_entry_type(tar::EntryType::Regular);
            header.set_size(0);
            header.as_mut_bytes()[..name.len()].copy_from_slice(name);
            header.set_cksum();
            [header.as_bytes().as_slice(), &[0; 1024]].concat()
        };
        for name in [&b"../x"[..], b"a/../../x", b".wh.", b"f/x", b"out/../../x"] {
            let mut tree = LayeredTree::new().unwrap();
            tree.add(&archive(&["f=1", "out->/../../etc"])[..]).unwrap();
            let error = tree.add(&with_name(name)[..]).unwrap_err();
            assert!(matches!(error, Error::Path { .. }), "{error:?}");
        }
        let inside = layered(&[&["out->/../../etc"], &["out/x=1", "y=>out/x"]]);
        assert_eq!(inside, ["etc/", "etc/x=1", "out->/../../etc", "y=>etc/x"]);
    }
}
