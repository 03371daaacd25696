use serde::Serialize;

/// What a backend did and did not do.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Report {
    /// What the suite was called: the backend, and the link if it has several.
    pub name: String,
    /// One for each behaviour.
    pub rows: Vec<Row>,
}

/// One behaviour, and whether it was seen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Row {
    /// What it is part of: `exec`, `files`.
    pub group: &'static str,
    /// What is to be seen, in words.
    pub behaviour: &'static str,
    /// Whether it was.
    pub verdict: Verdict,
    /// How long it took to find out.
    pub milliseconds: u64,
}

/// Whether a behaviour was seen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Verdict {
    /// It was.
    Passed,
    /// It was not, for this reason.
    Failed(String),
    /// Nobody looked, for this reason.
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

    /// Whether nothing failed. What was skipped does not count.
    pub fn is_good(&self) -> bool {
        self.failures().next().is_none()
    }

    /// What failed, and why.
    pub fn failures(&self) -> impl Iterator<Item = (&Row, &str)> {
        self.rows.iter().filter_map(|row| match &row.verdict {
            Verdict::Failed(reason) => Some((row, reason.as_str())),
            Verdict::Passed | Verdict::Skipped(_) => None,
        })
    }

    /// The report for machines.
    pub fn to_json(&self) -> String {
        // There is nothing in it that JSON cannot say.
        serde_json::to_string(self).unwrap_or_default()
    }
}

impl Verdict {
    /// One word.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed(_) => "FAILED",
            Self::Skipped(_) => "skipped",
        }
    }
}
