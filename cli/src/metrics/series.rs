//! What is drawn: numbers over time, with their scales.

use vmcell::metrics::{Metrics, Sample};
use vmcell_cli::options::size::human_readable;

use crate::ps;

/// Several series over the same time.
pub(super) struct Charts {
    pub(super) series: Vec<Series>,
    /// Where the time begins and ends, in seconds since the start of the VM.
    pub(super) start: f64,
    pub(super) end: f64,
    /// How long before its time a sample begins.
    resolution: f64,
}

/// One number over time.
pub(super) struct Series {
    pub(super) title: &'static str,
    pub(super) unit: Unit,
    pub(super) points: Vec<Point>,
    /// The largest value, of a single second if it is known.
    peak: f64,
}

/// A value, and the time until which it was measured.
#[derive(Clone, Copy)]
pub(super) struct Point {
    pub(super) elapsed: f64,
    pub(super) value: f64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    Percent,
    Bytes,
    BytesPerSecond,
    Count,
}

/// No chart shows fewer samples than these, so that a single one is not as wide as all of it.
const MIN_SAMPLES: f64 = 30.0;

impl Charts {
    pub(super) fn new(metrics: &Metrics) -> Self {
        let resolution = metrics.tier.resolution().as_secs_f64();
        let span = metrics.tier.span().as_secs_f64();
        let elapsed = |sample: Option<&Sample>| sample.map_or(0.0, |it| it.elapsed.as_secs_f64());
        let end = elapsed(metrics.samples.last());
        let shown = end - elapsed(metrics.samples.first()) + resolution;
        let start = end - shown.clamp(MIN_SAMPLES * resolution, span);
        let samples = &metrics.samples;
        let mut series = vec![
            Series::new(
                "processor",
                Unit::Percent,
                samples,
                |it, _| it.cpu_percent.into(),
                |it| it.cpu_percent_max.into(),
            ),
            Series::new(
                "memory",
                Unit::Bytes,
                samples,
                |it, _| it.memory_bytes as f64,
                |it| it.memory_bytes_max as f64,
            ),
        ];
        if samples.iter().any(|sample| sample.disk_bytes.is_some()) {
            let disk = |it: &Sample| it.disk_bytes.unwrap_or(0) as f64;
            series.push(Series::new(
                "disk",
                Unit::Bytes,
                samples,
                |it, _| disk(it),
                disk,
            ));
        }
        if samples.iter().any(|sample| sample.processes.is_some()) {
            series.push(Series::processes(samples));
        }
        let rate = Unit::BytesPerSecond;
        let received = |it: &Sample, seconds| it.received_bytes as f64 / seconds;
        let sent = |it: &Sample, seconds| it.sent_bytes as f64 / seconds;
        series.push(Series::new("received", rate, samples, received, |_| 0.0));
        series.push(Series::new("sent", rate, samples, sent, |_| 0.0));
        Self {
            series,
            start,
            end,
            resolution,
        }
    }

    /// Returns the largest value between two times. `None` if there is no sample of that
    /// time.
    pub(super) fn largest(&self, series: &Series, from: f64, to: f64) -> Option<f64> {
        let points = series.points.iter();
        let within = points.filter(|it| it.elapsed > from && it.elapsed <= to);
        let largest = within.map(|it| it.value).reduce(f64::max);
        largest.or_else(|| {
            // A sample is of the time before it. They are not taken exactly in time.
            let mut points = series.points.iter();
            let next = points.find(|it| it.elapsed > to)?;
            (next.elapsed - self.resolution * 1.5 < to).then_some(next.value)
        })
    }

    /// Returns the points between which there is no time without samples, in groups.
    pub(super) fn runs<'a>(&self, series: &'a Series) -> impl Iterator<Item = &'a [Point]> {
        let gap = self.resolution * 2.5;
        series
            .points
            .chunk_by(move |one, next| next.elapsed - one.elapsed < gap)
    }

    /// Describes a time, relative to the end: `-5m 0s`, `now`.
    pub(super) fn time_label(&self, time: f64) -> String {
        let ago = std::time::Duration::try_from_secs_f64((self.end - time).round());
        match ago {
            Ok(ago) if !ago.is_zero() => format!("-{}", ps::human_readable(ago)),
            _ => "now".to_owned(),
        }
    }
}

impl Series {
    fn new(
        title: &'static str,
        unit: Unit,
        samples: &[Sample],
        value: impl Fn(&Sample, f64) -> f64,
        peak: impl Fn(&Sample) -> f64,
    ) -> Self {
        let mut before = None;
        let points: Vec<_> = samples
            .iter()
            .map(|sample| {
                let elapsed = sample.elapsed.as_secs_f64();
                // Of the first sample it is not known when it began.
                let seconds = elapsed - before.replace(elapsed).unwrap_or(elapsed - 1.0);
                let value = value(sample, seconds.max(0.001));
                Point { elapsed, value }
            })
            .collect();
        let values = points.iter().map(|point| point.value);
        let peak = values.chain(samples.iter().map(peak)).fold(0.0, f64::max);
        Self {
            title,
            unit,
            points,
            peak,
        }
    }

    /// Returns the number of processes, with gaps where it is not known.
    fn processes(samples: &[Sample]) -> Self {
        let known = samples.iter().filter(|sample| sample.processes.is_some());
        let known: Vec<_> = known.copied().collect();
        let count = |it: &Sample| it.processes.unwrap_or(0).into();
        Self::new("processes", Unit::Count, &known, |it, _| count(it), count)
    }

    /// Returns the value at the top of its chart.
    pub(super) fn top(&self) -> f64 {
        let values = self.points.iter().map(|point| point.value);
        self.unit.round_up(values.fold(0.0, f64::max))
    }

    /// Describes the last value and the largest one: `12.5%, at most 98.0%`.
    pub(super) fn summary(&self) -> String {
        let last = self.points.last().map_or(0.0, |point| point.value);
        format!(
            "{}, at most {}",
            self.unit.label(last),
            self.unit.label(self.peak)
        )
    }
}

impl Unit {
    pub(super) fn label(self, value: f64) -> String {
        match self {
            Self::Percent => format!("{value:.1}%"),
            Self::Bytes => human_readable(whole(value)),
            Self::BytesPerSecond => format!("{}/s", human_readable(whole(value))),
            Self::Count => whole(value).to_string(),
        }
    }

    /// Returns a round number that is not smaller.
    fn round_up(self, value: f64) -> f64 {
        match self {
            Self::Percent => {
                let steps = [1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0];
                let step = steps.into_iter().find(|step| *step >= value);
                step.unwrap_or_else(|| (value / 100.0).ceil() * 100.0)
            }
            Self::Count => {
                let value = value.max(10.0);
                let power = 10_f64.powf(value.log10().floor());
                let steps = [1.0, 2.0, 5.0].map(|step| step * power);
                let step = steps.into_iter().find(|step| *step >= value);
                step.unwrap_or(10.0 * power)
            }
            Self::Bytes | Self::BytesPerSecond => {
                let power = whole(value).max(1024).checked_next_power_of_two();
                power.unwrap_or(u64::MAX) as f64
            }
        }
    }
}

/// Rounds to a number of bytes or things. What is too large or negative is the nearest one.
fn whole(value: f64) -> u64 {
    value.round() as u64
}

#[cfg(test)]
mod tests {
    use super::{super::samples::metrics_with, *};

    #[test]
    fn scales_are_round_and_hold_the_largest_value() {
        for (unit, value, expected) in [
            (Unit::Percent, 0.0, 1.0),
            (Unit::Percent, 12.5, 20.0),
            (Unit::Percent, 100.0, 100.0),
            (Unit::Percent, 250.0, 300.0),
            (Unit::Bytes, 0.0, 1024.0),
            (Unit::Bytes, 1025.0, 2048.0),
            (Unit::BytesPerSecond, f64::MAX, u64::MAX as f64),
            (Unit::Count, 0.0, 10.0),
            (Unit::Count, 10.0, 10.0),
            (Unit::Count, 11.0, 20.0),
            (Unit::Count, 1000.0, 1000.0),
            (Unit::Count, 5001.0, 10_000.0),
            (Unit::Count, u32::MAX.into(), 5e9),
        ] {
            assert_eq!(unit.round_up(value), expected, "{value}");
        }
    }

    #[test]
    fn a_time_without_samples_is_a_gap() {
        let mut metrics = metrics_with(&[10.0; 40]);
        metrics.samples.drain(10..20);
        let charts = Charts::new(&metrics);
        let cpu = &charts.series[0];
        assert_eq!(charts.largest(cpu, 5.0, 6.0), Some(10.0));
        assert_eq!(charts.largest(cpu, 14.0, 15.0), None);
        let runs: Vec<_> = charts.runs(cpu).map(<[_]>::len).collect();
        assert_eq!(runs, [10, 20]);
        assert_eq!((charts.start, charts.end), (0.0, 40.0));
    }

    #[test]
    fn processes_that_are_not_known_are_a_gap() {
        let mut metrics = metrics_with(&[10.0; 40]);
        for sample in &mut metrics.samples[10..20] {
            sample.processes = None;
        }
        let charts = Charts::new(&metrics);
        let processes = &charts.series[2];
        assert_eq!(processes.title, "processes");
        assert_eq!(processes.summary(), "7, at most 7");
        let runs: Vec<_> = charts.runs(processes).map(<[_]>::len).collect();
        assert_eq!(runs, [10, 20]);
        for sample in &mut metrics.samples {
            sample.processes = None;
        }
        let charts = Charts::new(&metrics);
        assert!(charts.series.iter().all(|it| it.title != "processes"));
    }

    #[test]
    fn rates_are_per_second_and_no_samples_are_no_error() {
        let charts = Charts::new(&metrics_with(&[1.0, 2.0]));
        let received = &charts.series[3];
        assert_eq!(received.title, "received");
        assert!(received.points.iter().all(|point| point.value == 4096.0));
        assert_eq!(received.summary(), "4.0K/s, at most 4.0K/s");
        let charts = Charts::new(&metrics_with(&[]));
        assert_eq!(charts.series[0].summary(), "0.0%, at most 0.0%");
        assert_eq!(charts.largest(&charts.series[0], 0.0, 1.0), None);
    }
}
