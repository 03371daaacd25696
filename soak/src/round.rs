use std::{
    fmt,
    time::{Duration, Instant},
};

use anyhow::Result;
use futures_util::future::join_all;

use crate::{random::Random, scenario::Scenario, setup::Setup};

/// Some scenarios at once.
pub(crate) struct Round {
    pub(crate) number: u64,
    parts: Vec<(Scenario, Random)>,
}

/// What came of a round.
pub(crate) struct Outcome {
    pub(crate) time: Duration,
    pub(crate) failures: Vec<String>,
}

impl Round {
    /// Chooses one. It is the same for the same seed and number.
    pub(crate) fn choose(seed: u64, number: u64, setup: &Setup) -> Self {
        let mut random = Random::new(seed ^ Random::new(number).number());
        let parts = (0..random.below(3) + 1).map(|_| {
            let mut random = random.fork();
            (Scenario::choose(setup.kind, &mut random), random)
        });
        Self {
            number,
            parts: parts.collect(),
        }
    }

    pub(crate) fn scenarios(&self) -> impl Iterator<Item = Scenario> {
        self.parts.iter().map(|(scenario, _)| *scenario)
    }

    pub(crate) async fn run(self, setup: &Setup) -> Outcome {
        let started_at = Instant::now();
        let runs = self.parts.into_iter().map(|(scenario, mut random)| {
            let setup = setup.clone();
            // A task of its own, so that a panic is an outcome too.
            let run = tokio::spawn(async move { scenario.run(&setup, &mut random).await });
            async move { run.await.map_err(Into::into).and_then(|outcome| outcome) }
        });
        let outcomes: Vec<Result<()>> = join_all(runs).await;
        let failures = outcomes.into_iter().filter_map(Result::err);
        Outcome {
            time: started_at.elapsed(),
            failures: failures.map(|error| format!("{error:#}")).collect(),
        }
    }
}

impl fmt::Display for Round {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "round {}:", self.number)?;
        self.scenarios()
            .try_for_each(|scenario| write!(f, " {scenario:?}"))
    }
}
