//! Collects errors about single entries, which do not stop a command.

use std::{io, path::Path};

use serde_json::json;
use vmcell::disk::{Disk, DiskError, DiskProblem};
use vmcell_cli::{
    exit::INCOMPLETE,
    show::{SafeStdout, name},
};

use crate::failure::{describe, describe_disk_damage, report};

/// How many problems are printed one by one.
const MAX_PRINTED: usize = 20;

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

    /// Adds the damage of a whole disk. Every command does this first.
    pub(crate) fn add_disk(&mut self, disk: &Disk, out: &mut SafeStdout) -> io::Result<()> {
        disk.damage().iter().try_for_each(|damage| {
            let message = describe_disk_damage(damage);
            self.add_message("damaged", &message, Path::new("/"), out)
        })
    }

    /// Adds a problem.
    pub(crate) fn add(&mut self, problem: &DiskProblem, out: &mut SafeStdout) -> io::Result<()> {
        self.add_at(&problem.path, &problem.error, out)
    }

    /// Adds an error at a path.
    pub(crate) fn add_at(
        &mut self,
        path: &Path,
        error: &DiskError,
        out: &mut SafeStdout,
    ) -> io::Result<()> {
        self.add_message(error.code(), &describe(error), path, out)
    }

    fn add_message(
        &mut self,
        code: &str,
        message: &str,
        path: &Path,
        out: &mut SafeStdout,
    ) -> io::Result<()> {
        self.count += 1;
        if self.json {
            let mut object = json!({ "code": code, "message": message });
            name::insert(&mut object, "path", Path::new("/").join(path));
            return out.json(&json!({ "problem": object }));
        }
        if self.first.len() < MAX_PRINTED {
            self.first.push(message.to_owned());
        }
        Ok(())
    }

    /// Adds a number of problems without details.
    pub(crate) fn add_more(&mut self, count: u64, out: &mut SafeStdout) -> io::Result<()> {
        let message = count_message(count, self.count > 0);
        self.count += count;
        match self.json && count > 0 {
            true => out.json(&json!({ "problem": { "code": "more", "message": message } })),
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
            self.first.iter().for_each(|problem| report(problem));
            match self.count - self.first.len() as u64 {
                0 => {}
                count => report(&count_message(count, !self.first.is_empty())),
            }
        }
        match code {
            0 | INCOMPLETE => incomplete,
            code => code,
        }
    }
}

/// Returns a message about problems that are not printed one by one.
fn count_message(count: u64, after_others: bool) -> String {
    let more = if after_others { " more" } else { "" };
    match count {
        1 => format!("one{more} entry could not be read"),
        count => format!("{count}{more} entries could not be read"),
    }
}
