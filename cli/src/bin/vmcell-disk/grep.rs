//! `vmcell-disk grep`: searches file contents.

use std::{
    ffi::OsString,
    io::{self, Write},
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use clap::{Args, value_parser};
use serde_json::{Value, json};
use vmcell::{
    disk::{Disk, Grep, GrepMatch, MatchedLine},
    files::{EntryKind, Walk},
};
use vmcell_cli::show::{Page, name};

use crate::{
    failure::say,
    image::{ImageOptions, rooted},
    problems::Problems,
};

const EXAMPLES: &str = "\
Files without a match are not counted by -c, and only the first match of a line is coloured. The
pattern is a regular expression as Rust's crate `regex` has it.

Examples:
  vmcell-disk grep stopped.qcow2 -n 'password *=' /etc
  vmcell-disk grep stopped.qcow2 -il error /var/log --glob '**/*.log'";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct GrepArguments {
    /// Disk image, raw or qcow2.
    #[arg(value_name = "IMAGE")]
    image: PathBuf,
    /// Regular expression to search for.
    #[arg(value_name = "PATTERN")]
    pattern: String,
    /// Files, or directories to search recursively.
    #[arg(value_name = "PATH", default_value = "/")]
    paths: Vec<PathBuf>,
    /// Ignore case.
    #[arg(long, short)]
    ignore_case: bool,
    /// Treat PATTERN as a fixed string, not a regular expression.
    #[arg(long, short = 'F')]
    fixed_strings: bool,
    /// Only print the paths of files with a match.
    #[arg(long, short = 'l')]
    files_with_matches: bool,
    /// Print line numbers.
    #[arg(long, short = 'n')]
    line_number: bool,
    /// Only print the number of matching lines of each file.
    #[arg(long, short, conflicts_with = "files_with_matches")]
    count: bool,
    /// Stop after N matching lines of each file.
    #[arg(long, short, value_name = "N", value_parser = value_parser!(u64).range(1..))]
    max_count: Option<u64>,
    /// Only search files whose path below the directory matches PATTERN: `*`
    /// and `?` match within a name, `**` matches any number of directories.
    #[arg(long, value_name = "PATTERN")]
    glob: Option<OsString>,
    /// Print JSON, one match on each line.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    options: ImageOptions,
}

/// The exit code if nothing matched, as that of grep(1).
const NOTHING: u8 = 1;
/// The exit code if not everything could be searched, as that of grep(1).
const TROUBLE: u8 = 2;

pub(crate) fn grep(arguments: &GrepArguments) -> anyhow::Result<u8> {
    let disk = arguments.options.open(&arguments.image)?;
    let paths: Vec<_> = arguments.paths.iter().map(|path| rooted(path)).collect();
    let mut search = Search {
        arguments,
        with_path: names_files(&disk, &paths),
        page: Page::new(),
        problems: Problems::new(arguments.json),
        has_found: false,
    };
    let grep = arguments.wanted();
    // An invalid pattern is an error of the command, not a problem of a path.
    disk.grep("/", &grep)?;
    let written = paths
        .iter()
        .try_for_each(|path| search.path(&disk, path, &grep));
    let code = search.page.finish(written)?;
    let found = if search.has_found { 0 } else { NOTHING };
    Ok(match code {
        0 => search.problems.finish_with(found, TROUBLE),
        unread => unread,
    })
}

/// Returns whether lines are printed with their file: not for a single file.
fn names_files(disk: &Disk, paths: &[PathBuf]) -> bool {
    match paths {
        [path] => disk
            .stat(path)
            .is_ok_and(|entry| entry.kind == EntryKind::Directory),
        _ => true,
    }
}

impl GrepArguments {
    fn wanted(&self) -> Grep {
        let mut walk = Walk::new();
        if let Some(pattern) = &self.glob {
            walk = walk.glob(pattern);
        }
        let mut grep = Grep::new(&self.pattern).within(walk);
        if self.ignore_case {
            grep = grep.ignore_case();
        }
        if self.fixed_strings {
            grep = grep.literal();
        }
        grep
    }

    /// Returns how many matches of a file are needed.
    fn most(&self) -> u64 {
        match self.files_with_matches {
            true => 1,
            false => self.max_count.unwrap_or(u64::MAX),
        }
    }
}

struct Search<'a> {
    arguments: &'a GrepArguments,
    with_path: bool,
    page: Page,
    problems: Problems,
    has_found: bool,
}

/// The file of the last match, and its number of matches so far.
struct Current {
    path: PathBuf,
    matches: u64,
}

impl Search<'_> {
    fn path(&mut self, disk: &Disk, path: &Path, grep: &Grep) -> io::Result<()> {
        let mut matches = match disk.grep(path, grep) {
            Ok(matches) => matches,
            Err(error) => return self.problems.add_at(path, &error, &mut self.page),
        };
        let mut current: Option<Current> = None;
        while let Some(found) = matches.next() {
            let found = match found {
                Ok(found) => found,
                Err(problem) => {
                    self.problems.add(&problem, &mut self.page)?;
                    continue;
                }
            };
            self.has_found = true;
            let path = path_of(&found);
            if current.as_ref().is_none_or(|current| current.path != path) {
                self.end_file(current.take())?;
            }
            let current = current.get_or_insert(Current { path, matches: 0 });
            current.matches += 1;
            if !self.arguments.count && !self.arguments.files_with_matches {
                self.show(&current.path, &found)?;
            }
            if current.matches >= self.arguments.most() {
                matches.skip_file();
            }
        }
        self.end_file(current)
    }

    /// Prints the path or count of a file, if that was asked for.
    fn end_file(&mut self, file: Option<Current>) -> io::Result<()> {
        let Some(Current { path, matches }) = file else {
            return Ok(());
        };
        let (arguments, page) = (self.arguments, &mut self.page);
        if !arguments.files_with_matches && !arguments.count {
            return Ok(());
        }
        if arguments.json {
            let mut told = match arguments.count {
                true => json!({ "count": matches }),
                false => json!({}),
            };
            name::put(&mut told, "path", path);
            return page.json(&told);
        }
        if arguments.files_with_matches {
            return page.named("", &path, PATH, "");
        }
        match self.with_path {
            true => page.named("", &path, PATH, &format!(":{matches}")),
            false => writeln!(page, "{matches}"),
        }
    }

    fn show(&mut self, path: &Path, found: &GrepMatch) -> io::Result<()> {
        if self.arguments.json {
            return self.page.json(&as_json(path, found));
        }
        match found {
            GrepMatch::Line(line) => self.show_line(path, line),
            _ => {
                // Keeps the order of matches if both outputs go to one
                // terminal.
                self.page.flush()?;
                say(&format!("{}: binary file matches", name::shown(path)));
                Ok(())
            }
        }
    }

    fn show_line(&mut self, path: &Path, line: &MatchedLine) -> io::Result<()> {
        let page = &mut self.page;
        if self.with_path {
            page.text(path.as_os_str().as_bytes(), PATH)?;
            page.text(b":", SEPARATOR)?;
        }
        if self.arguments.line_number {
            page.text(line.number.to_string().as_bytes(), NUMBER)?;
            page.text(b":", SEPARATOR)?;
        }
        let part = |range| line.text.get(range).unwrap_or_default();
        let (start, end) = (line.matched.start, line.matched.end);
        page.text(part(0..start), "")?;
        page.text(part(start..end), MATCH)?;
        page.text(part(end..line.text.len()), "")?;
        writeln!(page, "{}", if line.is_cut { "..." } else { "" })
    }
}

/// The colours of GNU grep.
const PATH: &str = "\x1b[35m";
const SEPARATOR: &str = "\x1b[36m";
const NUMBER: &str = "\x1b[32m";
const MATCH: &str = "\x1b[1;31m";

fn path_of(found: &GrepMatch) -> PathBuf {
    let path = match found {
        GrepMatch::Line(line) => &line.path,
        GrepMatch::Binary { path } => path,
        _ => Path::new(""),
    };
    Path::new("/").join(path)
}

fn as_json(path: &Path, found: &GrepMatch) -> Value {
    let mut told = match found {
        GrepMatch::Line(line) => {
            let mut told = json!({
                "line": line.number,
                "offset": line.offset,
                "matched": [line.matched.start, line.matched.end],
                "cut": line.is_cut,
                "binary": false,
            });
            name::put_bytes(&mut told, "text", &line.text);
            told
        }
        _ => json!({ "binary": true }),
    };
    name::put(&mut told, "path", path);
    told
}
