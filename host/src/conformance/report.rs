use serde::Serialize;

/// The results of a suite.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Report {
    /// The name of the suite: the backend, and the link if it has several.
    pub name: String,
    /// One row for each behaviour.
    pub rows: Vec<Row>,
}

/// The result of one check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Row {
    /// The group of the behaviour: `exec`, `files`.
    pub group: &'static str,
    /// The expected behaviour, in words.
    pub behaviour: &'static str,
    /// The outcome.
    pub verdict: Verdict,
    /// How long the check took.
    pub milliseconds: u64,
}

/// The outcome of a check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Verdict {
    /// The behaviour is as expected.
    Passed,
    /// It is not, for this reason.
    Failed(String),
    /// It was not checked, for this reason.
    Skipped(String),
}

impl Report {
    /// The report of a backend that cannot be used here.
    pub fn skipped(name: impl Into<String>, reason: impl Into<String>) -> Self {
        let reason = reason.into();
        let rows = super::behaviour::all().map(|behaviour| Row {
            group: behaviour.group,
            behaviour: behaviour.name,
            verdict: Verdict::Skipped(reason.clone()),
            milliseconds: 0,
        });
        Self {
            name: name.into(),
            rows: rows.collect(),
        }
    }

    /// Returns whether nothing failed. Ignores skipped checks.
    pub fn is_good(&self) -> bool {
        self.failures().next().is_none()
    }

    /// Returns what failed, and why.
    pub fn failures(&self) -> impl Iterator<Item = (&Row, &str)> {
        self.rows.iter().filter_map(|row| match &row.verdict {
            Verdict::Failed(reason) => Some((row, reason.as_str())),
            Verdict::Passed | Verdict::Skipped(_) => None,
        })
    }

    /// Returns the report as JSON.
    pub fn to_json(&self) -> String {
        // Everything in it can be serialised.
        serde_json::to_string(self).unwrap_or_default()
    }
}

impl Verdict {
    /// Returns the outcome as one word.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed(_) => "FAILED",
            Self::Skipped(_) => "skipped",
        }
    }
}
