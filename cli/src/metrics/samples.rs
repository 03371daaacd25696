//! Samples for tests.

use serde_json::json;
use vmcell::metrics::Metrics;

/// Returns one sample for each second, with these percents of a processor.
pub(super) fn metrics_with(percents: &[f64]) -> Metrics {
    let samples = percents.iter().enumerate().map(|(second, percent)| {
        json!({
            "time": "2026-01-31T12:00:59Z",
            "elapsed_seconds": second + 1,
            "cpu_percent": percent,
            "cpu_percent_max": percent,
            "memory_bytes": 100 << 20,
            "memory_bytes_max": 100 << 20,
            "disk_bytes": null,
            "processes": 7,
            "received_bytes": 4096,
            "sent_bytes": 0,
        })
    });
    let samples: Vec<_> = samples.collect();
    serde_json::from_value(json!({ "tier": "10m", "samples": samples })).unwrap()
}
