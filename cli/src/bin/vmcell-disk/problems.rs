//! Collects errors about single entries, which do not stop a command.

use std::{io, path::Path};

use serde_json::json;
use vmcell::disk::{DiskError, DiskProblem};
use vmcell_cli::{
    exit::INCOMPLETE,
    show::{Page, name},
};

use crate::failure::{as_json, say, words};

/// How many problems are printed one by one.
const TOLD: usize = 20;

/// The problems so far. As JSON they are printed at once, as text at the end.
pub(crate) struct Problems {
    json: bool,
    first: Vec<String>,
    count: u64,
}

impl Problems {
    pub(crate) fn new(json: bool) -> Self {
        Self {
            json,
            first: Vec::new(),
            count: 0,
        }
    }

    /// Adds a problem.
    pub(crate) fn add(&mut self, problem: &DiskProblem, page: &mut Page) -> io::Result<()> {
        self.add_at(&problem.path, &problem.error, page)
    }

    /// Adds an error at a path.
    pub(crate) fn add_at(
        &mut self,
        path: &Path,
        error: &DiskError,
        page: &mut Page,
    ) -> io::Result<()> {
        self.count += 1;
        if self.json {
            let mut told = as_json(error);
            name::put(&mut told, "path", Path::new("/").join(path));
            return page.json(&json!({ "problem": told }));
        }
        if self.first.len() < TOLD {
            self.first.push(words(error));
        }
        Ok(())
    }

    /// Adds a number of problems without details.
    pub(crate) fn add_more(&mut self, count: u64, page: &mut Page) -> io::Result<()> {
        let message = unnamed(count, self.count > 0);
        self.count += count;
        match self.json && count > 0 {
            true => page.json(&json!({ "problem": { "code": "more", "message": message } })),
            false => Ok(()),
        }
    }

    /// Prints the problems, and returns the exit code: `code`, or
    /// [`INCOMPLETE`] if there were problems.
    pub(crate) fn finish(self, code: u8) -> u8 {
        self.finish_with(code, INCOMPLETE)
    }

    /// Like [`finish`](Self::finish), with another exit code for problems.
    pub(crate) fn finish_with(self, code: u8, incomplete: u8) -> u8 {
        if self.count == 0 {
            return code;
        }
        if !self.json {
            self.first.iter().for_each(|problem| say(problem));
            match self.count - self.first.len() as u64 {
                0 => {}
                count => say(&unnamed(count, !self.first.is_empty())),
            }
        }
        match code {
            0 | INCOMPLETE => incomplete,
            code => code,
        }
    }
}

/// Returns a message about problems that are not printed one by one.
fn unnamed(count: u64, beside_others: bool) -> String {
    let more = if beside_others { " more" } else { "" };
    match count {
        1 => format!("one{more} entry could not be read"),
        count => format!("{count}{more} entries could not be read"),
    }
}
