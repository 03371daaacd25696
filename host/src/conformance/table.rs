use std::fmt;

use super::{Report, Verdict};

/// Prints reports side by side: a row for each behaviour, a column for each
/// backend, and below them why something failed or was skipped.
#[derive(Debug)]
pub struct Table<'a> {
    reports: &'a [Report],
}

impl<'a> Table<'a> {
    /// Creates the table of these reports.
    pub fn new(reports: &'a [Report]) -> Self {
        Self { reports }
    }

    /// Returns the behaviours of all reports, each once, in the order in which
    /// they first appear.
    fn behaviours(&self) -> Vec<(&'static str, &'static str)> {
        let mut behaviours = Vec::new();
        for row in self.reports.iter().flat_map(|report| &report.rows) {
            let behaviour = (row.group, row.behaviour);
            if !behaviours.contains(&behaviour) {
                behaviours.push(behaviour);
            }
        }
        behaviours
    }
}

/// Printed where a report lacks a behaviour.
const UNKNOWN: &str = "-";

impl fmt::Display for Table<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let behaviours = self.behaviours();
        let label = |(group, behaviour): &(&str, &str)| format!("{group}: {behaviour}");
        let widest = behaviours.iter().map(|row| label(row).len()).max();
        let first = widest.unwrap_or(0);
        let widths = self.reports.iter().map(|report| report.name.len().max(7));
        let widths: Vec<_> = widths.collect();

        write!(f, "{:first$}", "")?;
        for (report, width) in self.reports.iter().zip(&widths) {
            write!(f, "  {:width$}", report.name)?;
        }
        for behaviour in &behaviours {
            write!(f, "\n{:first$}", label(behaviour))?;
            for (report, width) in self.reports.iter().zip(&widths) {
                let mut rows = report.rows.iter();
                let row = rows.find(|row| (row.group, row.behaviour) == *behaviour);
                let word = row.map_or(UNKNOWN, |row| row.verdict.word());
                write!(f, "  {word:width$}")?;
            }
        }
        for report in self.reports {
            write_reasons(report, f)?;
        }
        writeln!(f)
    }
}

/// Prints why checks did not pass. Repeated reasons are printed once.
fn write_reasons(report: &Report, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let mut last = None;
    for row in &report.rows {
        let (Verdict::Failed(reason) | Verdict::Skipped(reason)) = &row.verdict else {
            continue;
        };
        if last.replace(reason) != Some(reason) {
            let (name, word) = (&report.name, row.verdict.word());
            write!(f, "\n{name}: {}: {word}: {reason}", row.behaviour)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conformance::Row;

    fn report(name: &str, verdicts: [Verdict; 2]) -> Report {
        let behaviours = ["it starts", "it ends"];
        let rows = behaviours.into_iter().zip(verdicts);
        let rows = rows.map(|(behaviour, verdict)| Row {
            group: "life",
            behaviour,
            verdict,
            milliseconds: 5,
        });
        Report {
            name: name.to_owned(),
            rows: rows.collect(),
        }
    }

    #[test]
    fn backends_stand_side_by_side_and_reasons_beneath() {
        let one = report(
            "one",
            [Verdict::Passed, Verdict::Failed("it goes on".to_owned())],
        );
        let reason = || Verdict::Skipped("no such program".to_owned());
        let other = report("other/vsock", [reason(), reason()]);
        let lines = [
            "                 one      other/vsock",
            "life: it starts  passed   skipped    ",
            "life: it ends    FAILED   skipped    ",
            "one: it ends: FAILED: it goes on",
            "other/vsock: it starts: skipped: no such program",
            "",
        ];
        let table = Table::new(&[one, other]).to_string();
        assert_eq!(table, lines.join("\n"));
    }

    #[test]
    fn a_report_is_json_too_and_only_failures_make_it_bad() {
        let good = report("one", [Verdict::Passed, Verdict::Skipped("why".to_owned())]);
        assert!(good.is_good());
        assert_eq!(
            good.to_json(),
            r#"{"name":"one","rows":[{"group":"life","behaviour":"it starts","verdict":"passed","milliseconds":5},{"group":"life","behaviour":"it ends","verdict":{"skipped":"why"},"milliseconds":5}]}"#
        );
        let bad = report("one", [Verdict::Passed, Verdict::Failed("why".to_owned())]);
        assert!(!bad.is_good());
        assert_eq!(bad.failures().count(), 1);
    }
}
