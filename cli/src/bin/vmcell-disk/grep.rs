//! `vmcell-disk grep`: searches file contents.

use std::{
    ffi::OsString,
    io::{self, Write},
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use clap::{Args, value_parser};
use serde_json::json;
use vmcell::{
    disk::{Disk, Grep, GrepMatch, MatchedLine},
    files::{EntryKind, WalkOptions},
};
use vmcell_cli::show::{SafeStdout, name};

use crate::{
    failure::report,
    image::{ImageOptions, absolute},
    problems::Problems,
};

const EXAMPLES: &str = "\
The pattern has the syntax of Rust's crate `regex`. -c omits files without a match, and only the
first match of a line is coloured.

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
const NO_MATCH: u8 = 1;
/// The exit code if not everything could be searched, as that of grep(1).
const INCOMPLETE_SEARCH: u8 = 2;

pub(crate) fn grep(arguments: &GrepArguments) -> anyhow::Result<u8> {
    let disk = arguments.options.open(&arguments.image)?;
    let paths: Vec<_> = arguments.paths.iter().map(|path| absolute(path)).collect();
    let mut search = Search {
        arguments,
        prints_paths: prints_paths(&disk, &paths),
        out: SafeStdout::new(),
        problems: Problems::new(arguments.json),
        has_matches: false,
    };
    let grep = arguments.to_grep();
    // An invalid pattern is an error of the command, not a problem of a path.
    disk.grep("/", &grep)?;
    let mut written = search.problems.add_disk(&disk, &mut search.out);
    for path in &paths {
        written = written.and_then(|()| search.path(&disk, path, &grep));
    }
    let code = search.out.finish(written)?;
    let found = if search.has_matches { 0 } else { NO_MATCH };
    Ok(match code {
        0 => search.problems.finish_with(found, INCOMPLETE_SEARCH),
        broken_pipe => broken_pipe,
    })
}

/// Returns whether lines are printed with their file: not for a single file.
fn prints_paths(disk: &Disk, paths: &[PathBuf]) -> bool {
    match paths {
        [path] => disk
            .stat(path)
            .is_ok_and(|entry| entry.kind == EntryKind::Directory),
        _ => true,
    }
}

impl GrepArguments {
    fn to_grep(&self) -> Grep {
        let mut walk = WalkOptions::new();
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
        if self.count {
            grep = grep.binary_lines();
        }
        grep
    }

    /// Returns how many matches of a file are needed.
    fn max_matches(&self) -> u64 {
        match self.files_with_matches {
            true => 1,
            false => self.max_count.unwrap_or(u64::MAX),
        }
    }
}

struct Search<'a> {
    arguments: &'a GrepArguments,
    prints_paths: bool,
    out: SafeStdout,
    problems: Problems,
    has_matches: bool,
}

/// The file of the last match, and its number of matches so far.
struct CurrentFile {
    path: PathBuf,
    matches: u64,
}

impl Search<'_> {
    fn path(&mut self, disk: &Disk, path: &Path, grep: &Grep) -> io::Result<()> {
        let mut matches = match disk.grep(path, grep) {
            Ok(matches) => matches,
            Err(error) => return self.problems.add_at(path, &error, &mut self.out),
        };
        let mut current: Option<CurrentFile> = None;
        while let Some(found) = matches.next() {
            let found = match found {
                Ok(found) => found,
                Err(problem) => {
                    self.problems.add(&problem, &mut self.out)?;
                    continue;
                }
            };
            self.has_matches = true;
            let path = path_of(&found);
            if current.as_ref().is_none_or(|current| current.path != path) {
                self.end_file(current.take())?;
            }
            let current = current.get_or_insert(CurrentFile { path, matches: 0 });
            current.matches += 1;
            if !self.arguments.count && !self.arguments.files_with_matches {
                self.show(&current.path, &found)?;
            }
            if current.matches >= self.arguments.max_matches() {
                matches.skip_file();
            }
        }
        self.end_file(current)
    }

    /// Prints the path or count of a file, if that was asked for.
    fn end_file(&mut self, file: Option<CurrentFile>) -> io::Result<()> {
        let Some(CurrentFile { path, matches }) = file else {
            return Ok(());
        };
        let (arguments, out) = (self.arguments, &mut self.out);
        if !arguments.files_with_matches && !arguments.count {
            return Ok(());
        }
        if arguments.json {
            let mut object = match arguments.count {
                true => json!({ "count": matches }),
                false => json!({}),
            };
            name::insert(&mut object, "path", path);
            return out.json(&object);
        }
        if arguments.files_with_matches {
            return out.path_line("", &path, PATH_COLOUR, "");
        }
        match self.prints_paths {
            true => out.path_line("", &path, PATH_COLOUR, &format!(":{matches}")),
            false => writeln!(out, "{matches}"),
        }
    }

    fn show(&mut self, path: &Path, found: &GrepMatch) -> io::Result<()> {
        if self.arguments.json {
            let mut object = json!(found);
            name::insert(&mut object, "path", path);
            return self.out.json(&object);
        }
        match found {
            GrepMatch::Line(line) => self.show_line(path, line),
            _ => {
                // Keeps the order of matches if both outputs go to one
                // terminal.
                self.out.flush()?;
                report(&format!("{}: binary file matches", name::printable(path)));
                Ok(())
            }
        }
    }

    fn show_line(&mut self, path: &Path, line: &MatchedLine) -> io::Result<()> {
        let out = &mut self.out;
        if self.prints_paths {
            out.untrusted_text(path.as_os_str().as_bytes(), PATH_COLOUR)?;
            out.untrusted_text(b":", SEPARATOR_COLOUR)?;
        }
        if self.arguments.line_number {
            out.untrusted_text(line.number.to_string().as_bytes(), NUMBER_COLOUR)?;
            out.untrusted_text(b":", SEPARATOR_COLOUR)?;
        }
        let part = |range| line.text.get(range).unwrap_or_default();
        let (start, end) = (line.matched.start, line.matched.end);
        out.untrusted_text(part(0..start), "")?;
        out.untrusted_text(part(start..end), MATCH_COLOUR)?;
        out.untrusted_text(part(end..line.text.len()), "")?;
        writeln!(out, "{}", if line.is_truncated { "..." } else { "" })
    }
}

/// The colours of GNU grep.
const PATH_COLOUR: &str = "\x1b[35m";
const SEPARATOR_COLOUR: &str = "\x1b[36m";
const NUMBER_COLOUR: &str = "\x1b[32m";
const MATCH_COLOUR: &str = "\x1b[1;31m";

fn path_of(found: &GrepMatch) -> PathBuf {
    let path = match found {
        GrepMatch::Line(line) => &line.path,
        GrepMatch::Binary { path } => path,
        _ => Path::new(""),
    };
    Path::new("/").join(path)
}
