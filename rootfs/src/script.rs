//! Generates the `debugfs` commands that fill an image.
//!
//! `debugfs -f` reads one command per line. A double quote starts and ends a quoted word and is
//! doubled inside one, so a name may contain any byte except line breaks, which would end the
//! command. Names come from archives and other untrusted sources and must not inject commands.
//! Commands that do not fit on a line are run with `debugfs -R`, which takes one command as an
//! argument and has no such limits, one process each:
//!
//! - an entry with a line break in its *name* is created under a stand-in name and renamed at
//!   the very end, deepest first, so that all paths in between stay valid;
//! - a symbolic link with a line break in its *target* is created after everything else.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::io::{self, BufWriter, Write};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use crate::staging::Staging;
use crate::tree::{LOST_AND_FOUND, normalize};
use crate::{Error, Kind, Node, PathProblem, Timestamps, Tree};

/// `debugfs` reads lines into a buffer of `BUFSIZ` (8192) bytes.
const MAX_LINE: usize = 8000;

/// Returns whether text fits on one line of a command file.
pub(crate) fn fits_on_a_line(text: &[u8]) -> bool {
    text.len() <= MAX_LINE && !text.iter().any(|byte| matches!(byte, b'\n' | b'\r'))
}

/// The name of the file with the commands for `debugfs -f`.
pub(crate) const BATCH: &str = "batch";

/// The commands that fill one image: those of the batch, which were written to a file, and others.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Script {
    /// The number of commands in the batch.
    pub(crate) batch_commands: usize,
    /// Commands for one run of `debugfs -R` each, after the batch.
    pub(crate) singles: Vec<Vec<u8>>,
}

impl Script {
    /// Writes the batch into the folder of `staging`, and returns the rest.
    pub(crate) fn new(
        tree: &Tree,
        staging: &Staging,
        timestamps: Timestamps,
    ) -> Result<Self, Error> {
        let batch = BufWriter::new(staging.create(Path::new(BATCH))?);
        Self::write(tree, staging, timestamps, batch)
    }

    fn write(
        tree: &Tree,
        staging: &Staging,
        timestamps: Timestamps,
        batch: impl Write,
    ) -> Result<Self, Error> {
        let mut writer = ScriptWriter {
            batch,
            written: Ok(()),
            staging,
            timestamps,
            stand_ins: StandIns::new(tree),
            link_counts: link_counts(tree)?,
            directory: PathBuf::new(),
            deferred: BTreeSet::new(),
            script: Self::default(),
        };
        // A hard link may sort before its target.
        let is_link = |node: &Node| matches!(node.kind, Kind::HardLink(_));
        for (path, node) in tree.iter().filter(|(_, node)| !is_link(node)) {
            writer.entry(path, node);
        }
        for (path, node) in tree.iter().filter(|(_, node)| is_link(node)) {
            writer.entry(path, node);
        }
        writer.finish().map_err(|source| Error::Write {
            path: staging.folder().join(BATCH),
            source,
        })
    }
}

/// Returns the number of names of each hard-linked file. Rejects links with invalid targets.
fn link_counts(tree: &Tree) -> Result<BTreeMap<PathBuf, u32>, Error> {
    let mut counts = BTreeMap::new();
    for (path, node) in tree.iter() {
        let Kind::HardLink(target) = &node.kind else {
            continue;
        };
        let refused = || Error::Path {
            path: path.to_owned(),
            problem: PathProblem::BadHardLink,
        };
        let target = normalize(target).map_err(|_| refused())?;
        match tree.get(&target).map(|node| &node.kind) {
            None | Some(Kind::Directory | Kind::HardLink(_)) => return Err(refused()),
            Some(_) => *counts.entry(target).or_insert(1) += 1,
        }
    }
    Ok(counts)
}

/// Temporary names for entries with line breaks in their names, by the full path of the entry.
struct StandIns(BTreeMap<PathBuf, OsString>);

impl StandIns {
    fn new(tree: &Tree) -> Self {
        let mut names = BTreeMap::new();
        // One counter for the whole tree, so that stand-ins are unique.
        let mut candidates =
            (0_u64..).map(|number| OsString::from(format!("vmcell-stand-in-{number}")));
        for (path, _) in tree.iter() {
            let Some(name) = path.file_name() else {
                continue;
            };
            if fits_on_a_line(name.as_bytes()) {
                continue;
            }
            let stand_in = candidates.find(|name| tree.get(path.with_file_name(name)).is_none());
            names.extend(stand_in.map(|stand_in| (path.to_owned(), stand_in)));
        }
        Self(names)
    }

    /// Returns the path of an entry before the final renames.
    fn path(&self, path: &Path) -> PathBuf {
        let mut real = PathBuf::new();
        let mut temporary = PathBuf::new();
        for name in path {
            real.push(name);
            temporary.push(self.0.get(&real).map_or(name, OsString::as_os_str));
        }
        temporary
    }
}

struct ScriptWriter<'a, W> {
    batch: W,
    /// The first error, or none.
    written: io::Result<()>,
    staging: &'a Staging,
    timestamps: Timestamps,
    stand_ins: StandIns,
    link_counts: BTreeMap<PathBuf, u32>,
    /// The working directory of `debugfs` at the current end of the batch.
    directory: PathBuf,
    /// Entries that are created after the batch.
    deferred: BTreeSet<PathBuf>,
    script: Script,
}

impl<W: Write> ScriptWriter<'_, W> {
    fn push_line(&mut self, command: &[u8]) {
        if self.written.is_ok() {
            let written = self.batch.write_all(command);
            self.written = written.and_then(|()| self.batch.write_all(b"\n"));
        }
        self.script.batch_commands += 1;
    }

    /// Creates one entry and sets its attributes.
    fn entry(&mut self, path: &Path, node: &Node) {
        let temporary = self.stand_ins.path(path);
        let (Some(parent), Some(name)) = (temporary.parent(), temporary.file_name()) else {
            // The root exists already, as inode 2.
            for command in self.attributes(path, node, b"<2>") {
                self.push_line(&command);
            }
            return;
        };

        let create = self.create(path, node, name.as_bytes());
        let links_to_deferred = match &node.kind {
            Kind::HardLink(target) => {
                normalize(target).is_ok_and(|target| self.deferred.contains(&target))
            }
            _ => false,
        };
        if create
            .as_ref()
            .is_some_and(|command| !fits_on_a_line(command))
            || links_to_deferred
        {
            self.deferred.insert(path.to_owned());
            let absolute = absolute(&temporary);
            self.script
                .singles
                .extend(self.create(path, node, &absolute));
            let attributes = self.attributes(path, node, &quoted(&absolute));
            self.script.singles.extend(attributes);
            return;
        }

        self.change_directory(parent);
        // `debugfs` parses `<5>` as an inode number, but not `./<5>`.
        let reference = quoted(&[b"./", name.as_bytes()].concat());
        for command in create
            .into_iter()
            .chain(self.attributes(path, node, &reference))
        {
            self.push_line(&command);
        }
    }

    /// Returns the command that creates an entry under this name; `None` if `mke2fs` created it.
    fn create(&self, path: &Path, node: &Node, name: &[u8]) -> Option<Vec<u8>> {
        let name = quoted(name);
        let device = |letter: &str, major: &u32, minor: &u32| {
            [
                b"mknod ",
                &name[..],
                format!(" {letter} {major} {minor}").as_bytes(),
            ]
            .concat()
        };
        Some(match &node.kind {
            Kind::Directory if path == Path::new(LOST_AND_FOUND) => return None,
            Kind::Directory => [b"mkdir ", &name[..]].concat(),
            Kind::File(content) => {
                let source = self.staging.source(path, content)?;
                [
                    b"write ",
                    &quoted(source.as_os_str().as_bytes())[..],
                    b" ",
                    &name,
                ]
                .concat()
            }
            Kind::Symlink(target) => [
                b"symlink ",
                &name[..],
                b" ",
                &quoted(target.as_os_str().as_bytes()),
            ]
            .concat(),
            Kind::HardLink(target) => {
                let target = absolute(&self.stand_ins.path(&normalize(target).ok()?));
                [b"ln ", &quoted(&target)[..], b" ", &name].concat()
            }
            Kind::Fifo => [b"mknod ", &name[..], b" p"].concat(),
            Kind::CharDevice { major, minor } => device("c", major, minor),
            Kind::BlockDevice { major, minor } => device("b", major, minor),
        })
    }

    /// Returns the commands that set the attributes. A new entry is owned by root and dated to
    /// the epoch.
    fn attributes(&self, path: &Path, node: &Node, reference: &[u8]) -> Vec<Vec<u8>> {
        // inode(7): the type bits of a mode.
        let type_bits = match node.kind {
            Kind::HardLink(_) => return Vec::new(),
            Kind::Fifo => 0o010_000,
            Kind::CharDevice { .. } => 0o020_000,
            Kind::Directory => 0o040_000,
            Kind::BlockDevice { .. } => 0o060_000,
            Kind::File(_) => 0o100_000,
            Kind::Symlink(_) => 0o120_000,
        };
        let mut commands = Vec::new();
        let mut set = |field: &str, value: String| {
            commands.push([b"sif ", reference, format!(" {field} {value}").as_bytes()].concat());
        };
        if !matches!(node.kind, Kind::Symlink(_)) {
            set(
                "mode",
                format!("0{:o}", type_bits | u32::from(node.mode & 0o7777)),
            );
        }
        if node.owner.uid != 0 {
            set("uid", node.owner.uid.to_string());
        }
        if node.owner.gid != 0 {
            set("gid", node.owner.gid.to_string());
        }
        if let Some(modified) = self.timestamps.modified(node.modified) {
            set("mtime", format!("@{modified}"));
        }
        if let Some(count) = self.link_counts.get(path) {
            set("links_count", count.to_string());
        }
        for name in node.xattrs.keys() {
            let Some(file) = self.staging.attribute(path, name) else {
                continue;
            };
            let file = quoted(file.as_os_str().as_bytes());
            let name = quoted(name.as_bytes());
            commands.push([b"ea_set -f ", &file[..], b" ", reference, b" ", &name].concat());
        }
        commands
    }

    fn change_directory(&mut self, to: &Path) {
        while !to.starts_with(&self.directory) {
            self.directory.pop();
            self.push_line(b"cd ..");
        }
        let names: Vec<&OsStr> = to.iter().skip(self.directory.iter().count()).collect();
        for name in names {
            self.directory.push(name);
            self.push_line(&[b"cd ", &quoted(&[b"./", name.as_bytes()].concat())[..]].concat());
        }
    }

    /// Renames entries from their stand-ins to their real names.
    fn finish(mut self) -> io::Result<Script> {
        for path in self.stand_ins.0.keys().rev() {
            let temporary = self.stand_ins.path(path);
            let (Some(parent), Some(name)) = (temporary.parent(), path.file_name()) else {
                continue;
            };
            let stand_in = quoted(&absolute(&temporary));
            let real = quoted(&absolute(&parent.join(name)));
            self.script
                .singles
                .push([b"ln ", &stand_in[..], b" ", &real].concat());
            self.script
                .singles
                .push([b"unlink ", &stand_in[..]].concat());
        }
        self.written?;
        self.batch.flush()?;
        Ok(self.script)
    }
}

fn absolute(path: &Path) -> Vec<u8> {
    [b"/", path.as_os_str().as_bytes()].concat()
}

/// Quotes one word of a command.
fn quoted(word: &[u8]) -> Vec<u8> {
    let mut quoted = vec![b'"'];
    for byte in word {
        quoted.push(*byte);
        if *byte == b'"' {
            quoted.push(b'"');
        }
    }
    quoted.push(b'"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Owner;
    use proptest::prelude::*;

    /// Returns a script and its batch.
    fn script(tree: &Tree) -> (Script, Vec<u8>) {
        let staging = Staging::new(tree).unwrap();
        let mut batch = Vec::new();
        let script = Script::write(tree, &staging, Timestamps::default(), &mut batch).unwrap();
        (script, batch)
    }

    fn text(bytes: &[u8]) -> &str {
        std::str::from_utf8(bytes).unwrap()
    }

    #[test]
    fn commands_come_in_sorted_order_and_follow_the_directories() {
        let mut tree = Tree::new();
        tree.symlink("/z", "b/c").unwrap();
        tree.insert("/b/c/pipe", Node::new(Kind::Fifo, 0o640))
            .unwrap();
        tree.directory("/a", 0o700).unwrap();
        tree.set_owner("/b/c", Owner { uid: 5, gid: 0 }).unwrap();
        let expected = r#"
sif <2> mode 040755
mkdir "a"
sif "./a" mode 040700
mkdir "b"
sif "./b" mode 040755
cd "./b"
mkdir "c"
sif "./c" mode 040755
sif "./c" uid 5
cd "./c"
mknod "pipe" p
sif "./pipe" mode 010640
sif "./pipe" uid 5
cd ..
cd ..
symlink "z" "b/c"
"#;
        let (script, batch) = script(&tree);
        assert_eq!(text(&batch), expected.trim_start());
        assert_eq!(script.batch_commands, 16);
        assert!(script.singles.is_empty());
    }

    #[test]
    fn a_line_break_in_a_name_never_reaches_the_batch() {
        let mut tree = Tree::new();
        tree.directory("/a\nrm x/b\r", 0o755).unwrap();
        tree.directory("/vmcell-stand-in-0", 0o755).unwrap();
        tree.symlink("/link", "two\nlines").unwrap();
        let (script, batch) = script(&tree);
        let singles: Vec<&str> = script.singles.iter().map(|single| text(single)).collect();
        assert!(!text(&batch).contains("rm x"));
        assert_eq!(
            singles,
            [
                "symlink \"/link\" \"two\nlines\"",
                "ln \"/vmcell-stand-in-1/vmcell-stand-in-2\" \"/vmcell-stand-in-1/b\r\"",
                "unlink \"/vmcell-stand-in-1/vmcell-stand-in-2\"",
                "ln \"/vmcell-stand-in-1\" \"/a\nrm x\"",
                "unlink \"/vmcell-stand-in-1\"",
            ]
        );
    }

    #[test]
    fn a_hard_link_must_lead_to_a_file_of_the_tree() {
        for target in ["/missing", "/dir", "/self", "../x"] {
            let mut tree = Tree::new();
            tree.directory("/dir", 0o755).unwrap();
            tree.insert("/self", Node::new(Kind::HardLink(target.into()), 0))
                .unwrap();
            let result = Script::new(&tree, &Staging::new(&tree).unwrap(), Timestamps::default());
            let is_refused = matches!(
                result,
                Err(Error::Path {
                    problem: PathProblem::BadHardLink,
                    ..
                })
            );
            assert!(is_refused, "{target}");
        }
    }

    /// How `debugfs` splits a line into words (libss, `ss_parse`).
    fn words(line: &[u8]) -> Vec<Vec<u8>> {
        let mut words = vec![];
        let mut rest = line.iter().copied().peekable();
        while let Some(byte) = rest.next() {
            match byte {
                b' ' | b'\t' => {}
                b'"' => {
                    let mut word = vec![];
                    while let Some(byte) = rest.next() {
                        if byte == b'"' && rest.next_if_eq(&b'"').is_none() {
                            break;
                        }
                        word.push(byte);
                    }
                    words.push(word);
                }
                first => {
                    let mut word = vec![first];
                    while let Some(byte) = rest.next_if(|byte| !matches!(byte, b' ' | b'\t')) {
                        word.push(byte);
                    }
                    words.push(word);
                }
            }
        }
        words
    }

    proptest! {
        #[test]
        fn every_name_is_read_back_as_one_word(name in proptest::collection::vec(1u8.., 1..40)) {
            prop_assert_eq!(words(&quoted(&name)), vec![name]);
        }

        #[test]
        fn the_batch_has_as_many_lines_as_commands(
            names in proptest::collection::vec("[^/\0]{1,8}", 1..20)
        ) {
            let mut tree = Tree::new();
            for name in names.iter().filter(|name| !matches!(name.as_str(), "." | "..")) {
                tree.directory(name, 0o755).unwrap();
            }
            let (script, batch) = script(&tree);
            let lines = batch.iter().filter(|byte| **byte == b'\n').count();
            prop_assert_eq!(lines, script.batch_commands);
            prop_assert!(!batch.contains(&b'\r'));
        }
    }
}
